"""The six invariants of the chapter on replication, each watched by an oracle of its own over plays of chance.

Three brokers (real `Replicas`), the plans of the real controller, one partition. Brokers are cut off, stop, lose the
tail of their logs, come back as new incarnations; the controller's answers and the metadata come late. After every
step the oracle looks, and knows nothing of how the code decides.
"""

import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.kip.scenes import Governed, log_of, lose_power
from tests.unit.replica.conftest import AT, CALLER

from strandline.base.effects import Effect, ToController
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.metadata.image import Partition
from strandline.metadata.records import PartitionChangeRecord
from strandline.replica.config import ReplicaConfig
from strandline.replica.hosting.leader import Leader
from strandline.wire.messages.brokers.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState

SEEDS = range(16)
STEPS = 150
MIN_ISR = 2
Batches = list[tuple[int, int, int]]


class Chances(Governed):
    """What may happen, and when the oracle looks. No fault exceeds what the configuration promises to survive."""

    def __init__(self, seed: int, oracle: "Callable[[Chances], Oracle]") -> None:
        self.oracle: Oracle | None = None
        super().__init__(config=ReplicaConfig(lag_time_max_ms=3_000))
        self.rng = random.Random(seed)
        self.lost: dict[int, None] = {}  # brokers that are down without the tail of their logs
        self.seen = dict.fromkeys(("election", "expansion", "shrink", "tail lost", "commit"), 0)
        self.create(min_insync_replicas=str(MIN_ISR))
        self.oracle = oracle(self)

    def play(self) -> None:
        moves = [
            (self.write, 10),
            (self.wait, 10),
            (self.stop, 4),
            (self.come_back, 5),
            (self.notice, 3),
            (self.cut_off, 4),
            (self.join_up, 3),
            (self.depose, 2),
            (self.go_deaf, 2),
            (self.hear, 3),
            (self.hold_answers, 1),
            (self.give_answers, 3),
        ]
        for move in self.rng.choices([m for m, _ in moves], [weight for _, weight in moves], k=STEPS):
            move()
        self.calm()

    def calm(self) -> None:
        """Faults end."""
        self.join_up()
        self.give_answers()
        for node in (1, 2, 3):
            self.back(node)
        self.hear()
        self.run(10_000)

    def perform(self, node: NodeId, effects: list[Effect]) -> None:
        # The controller may be faster than any follower: else a newcomer has what it lacks before anybody decides.
        super().perform(node, sorted(effects, key=lambda effect: not isinstance(effect, ToController)))
        if self.oracle is not None:
            self.oracle.look()

    def alter(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        before = self.partition
        response = super().alter(request)
        if self.oracle is not None and self.partition is not before:
            self.seen["expansion" if len(self.partition.isr) > len(before.isr) else "shrink"] += 1
            self.oracle.altered(request, before)
        return response

    def decide(self, records: Any) -> None:
        before = self.partition
        super().decide(records)
        if self.partition.leader_epoch > before.leader_epoch:
            self.seen["election"] += 1

    # --- moves

    def write(self) -> None:
        leader = self.partition.leader
        if leader in self.nodes and leader not in self.lost:
            self.produce(leader, self.rng.randint(1, 4), acks=self.rng.choice((-1, 1)))

    def wait(self) -> None:
        if self.nodes:
            self.run(self.rng.choice((1, 20, 500, 2_000, 5_000)))

    def stop(self) -> None:
        node = self.rng.choice((1, 2, 3))
        if node not in self.nodes or len(self.nodes) < 3:
            return
        self.held = [held for held in self.held if held[0] != node]
        others = [n for n in self.partition.isr if n != node]
        # One that has lost its tail must not be needed: then who holds what is committed is alive.
        is_safe = not self.lost and len(others) >= MIN_ISR - 1 and all(n in self.nodes for n in others)
        if is_safe and self.rng.random() < 0.5:
            end = log_of(self, node).log_end_offset
            lose_power(self, node, keep=max(0, end - self.rng.randint(0, 6)))
            self.lost[node] = None
            self.seen["tail lost"] += 1
        else:
            self.kill(NodeId(node))

    def come_back(self) -> None:
        self.back(self.rng.choice((1, 2, 3)))

    def back(self, node: int) -> None:
        if node in self.nodes:
            if self.image.brokers[NodeId(node)].fenced:
                self.beat(node)
            return
        self.register(node, clean=False)
        self.lost.pop(node, None)
        self.start(NodeId(node), clean=False)
        self.beat(node)

    def notice(self) -> None:
        for node in (1, 2, 3):
            if node not in self.nodes and not self.image.brokers[NodeId(node)].fenced:
                self.fence(node)

    def depose(self) -> None:
        """The controller elects another of the ISR, as in a balancing."""
        others = [n for n in self.partition.isr if n in self.nodes and n != self.partition.leader]
        if others and self.partition.leader >= 0:
            self.decide([PartitionChangeRecord(partition_id=0, topic_id=AT.topic_id, leader=self.rng.choice(others))])

    def cut_off(self) -> None:
        self.cut = {NodeId(self.rng.choice((1, 2, 3)))}

    def join_up(self) -> None:
        self.cut = set()

    def go_deaf(self) -> None:
        self.deaf = (self.rng.choice((1, 2, 3)),)

    def hear(self) -> None:
        self.deaf = ()
        for node in list(self.nodes):
            self.catch_up(node)

    def hold_answers(self) -> None:
        self.controller_answers = False

    def give_answers(self) -> None:
        self.controller_answers = True
        self.answer_controller()


class Oracle:
    def __init__(self, world: Chances) -> None:
        self.world = world

    def look(self) -> None:
        """After every step of every broker."""

    def altered(self, request: AlterPartitionRequest, before: Partition) -> None:
        """A proposal has become metadata."""

    def end(self) -> None:
        """All is well again."""

    def roles(self) -> list[tuple[NodeId, Any]]:
        found = []
        for node, replicas in self.world.nodes.items():
            hosted = replicas.host.partitions.named("t", 0)
            if hosted is not None and hosted.role is not None:
                found.append((node, hosted.role))
        return found

    def leaders(self) -> list[tuple[NodeId, Leader]]:
        return [(node, role) for node, role in self.roles() if type(role) is Leader]


def played(seed: int, oracle: Callable[[Chances], Oracle]) -> Chances:
    world = Chances(seed, oracle)
    world.play()
    assert world.oracle is not None
    world.oracle.end()
    return world


# --- 1


class Monotonic(Oracle):
    def __init__(self, world: Chances) -> None:
        super().__init__(world)
        self.known: dict[int, tuple[object, int]] = {}  # of each log: the high watermark
        self.cuts: dict[int, list[int]] = {}

    def look(self) -> None:
        for node, role in self.roles():
            log, high_watermark = role.log, role.high_watermark
            assert high_watermark <= log.log_end_offset
            before = self.known.get(node)
            if before is not None and before[0] is log and high_watermark < before[1]:
                raise AssertionError(f"{node}: {before[1]} -> {high_watermark}")
            self.known[node] = (log, high_watermark)


@pytest.mark.parametrize("seed", SEEDS)
def test_1_the_high_watermark_is_monotonic_on_a_given_log_and_never_exceeds_its_end(seed: int) -> None:
    played(seed, Monotonic)


# --- 2


class Minimum(Oracle):
    def __init__(self, world: Chances) -> None:
        super().__init__(world)
        self.known: dict[NodeId, tuple[object, int]] = {}
        self.highest = 0

    def look(self) -> None:
        for node, role in sorted(self.roles(), key=lambda found: type(found[1]) is not Leader):
            log, before = self.known.get(node, (None, 0))
            if log is not role.log:
                before = self.highest  # what it finds on its disk says no more than what leaders have said
            if role.high_watermark > before:
                assert type(role) is Leader or role.high_watermark <= self.highest, "only a leader moves it"
                if type(role) is Leader:
                    self.moved(node, role)
            self.known[node] = (role.log, role.high_watermark)
            self.highest = max(self.highest, role.high_watermark)

    def moved(self, node: NodeId, leader: Leader) -> None:
        assert len(leader.isr.isr) >= min(MIN_ISR, len(leader.replicas)), leader.isr
        for member in leader.isr.maximal:
            if member != node and member in self.world.nodes and member not in self.world.lost:
                assert log_of(self.world, member).log_end_offset >= leader.high_watermark, (member, leader.isr)

    def end(self) -> None:
        """And it is not only at most the minimum."""
        ((_, leader),) = self.leaders()
        assert len(leader.isr.isr) >= MIN_ISR
        assert leader.high_watermark == min(log_of(self.world, n).log_end_offset for n in leader.isr.maximal)


@pytest.mark.parametrize("seed", SEEDS)
def test_2_it_is_the_minimum_over_the_maximal_isr_and_never_advances_while_the_isr_is_below_the_effective_min_isr(
    seed: int,
) -> None:
    played(seed, Minimum)


# --- 3


class Committed(Oracle):
    def __init__(self, world: Chances) -> None:
        super().__init__(world)
        self.truth: Batches = []
        self.end_offset = 0
        self.compared: tuple[object, ...] = ()

    def look(self) -> None:
        for _, leader in self.leaders():
            if leader.high_watermark > self.end_offset:
                found = [
                    (h.base_offset, h.partition_leader_epoch, h.crc)
                    for h in leader.log.headers(self.end_offset)
                    if self.end_offset <= h.base_offset < leader.high_watermark
                ]
                self.truth += found
                self.end_offset = leader.high_watermark
                self.world.seen["commit"] += 1
        isr = self.world.partition.isr
        state = (self.end_offset, isr, *(node for node in isr if node in self.world.nodes))
        if state == self.compared:
            return
        self.compared = state
        for node in isr:
            if node in self.world.nodes and self.world.nodes[node].host.partitions.named("t", 0) is not None:
                self.has_everything(node)

    def has_everything(self, node: NodeId) -> None:
        broker = self.world.image.brokers[node]
        if self.world.nodes[node].broker_epoch != broker.epoch:
            return
        log = log_of(self.world, node)
        found = [(h.base_offset, h.partition_leader_epoch, h.crc) for h in log.headers(0)]
        assert found[: len(self.truth)] == self.truth, f"{node} is in the ISR and lacks what is committed"

    def end(self) -> None:
        assert self.truth
        for node in (1, 2, 3):
            self.has_everything(NodeId(node))


@pytest.mark.parametrize("seed", SEEDS)
def test_3_every_committed_record_is_on_every_member_of_the_isr_so_that_a_clean_election_keeps_it(seed: int) -> None:
    played(seed, Committed)


# --- 4


class Contained(Oracle):
    def look(self) -> None:
        partition = self.world.partition
        assert set(partition.isr) <= set(partition.replicas)
        assert len(set(partition.isr)) == len(partition.isr)
        assert partition.leader in (-1, *partition.isr)
        for node, leader in self.leaders():
            assert node in leader.isr.isr
            assert set(leader.isr.isr) <= set(leader.isr.maximal) <= set(leader.replicas)


@pytest.mark.parametrize("seed", SEEDS)
def test_4_the_isr_contains_the_leader_and_is_a_subset_of_the_assignment(seed: int) -> None:
    played(seed, Contained)


# --- 5


class Epochs(Oracle):
    def __init__(self, world: Chances) -> None:
        super().__init__(world)
        self.partition = world.partition
        self.led_by: dict[int, int] = {}

    def look(self) -> None:
        old, new = self.partition, self.world.partition
        if new is not old:
            assert new.partition_epoch > old.partition_epoch
            assert new.leader_epoch >= old.leader_epoch
            assert new.leader == old.leader or new.leader_epoch > old.leader_epoch
            self.partition = new
        for node, leader in self.leaders():
            assert self.led_by.setdefault(leader.epoch, node) == node, "two leaders in one epoch"

    def altered(self, request: AlterPartitionRequest, before: Partition) -> None:
        (row,) = request.topics[0].partitions
        assert (row.partition_epoch, row.leader_epoch) == (before.partition_epoch, before.leader_epoch)
        assert self.world.partition.partition_epoch == before.partition_epoch + 1
        # The network may deliver it once more, when what it rests on is past.
        after = self.world.partition
        (late,) = Governed.alter(self.world, request).topics[0].partitions
        assert late.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert self.world.partition == after


@pytest.mark.parametrize("seed", SEEDS)
def test_5_both_epochs_are_strictly_monotonic_and_an_alter_partition_commits_only_at_the_matching_epoch(
    seed: int,
) -> None:
    played(seed, Epochs)


# --- 6


class Joining(Oracle):
    def __init__(self, world: Chances) -> None:
        super().__init__(world)
        self.committed = 0  # the largest high watermark that any leader had
        self.starts: dict[int, int] = {}  # where each leader epoch began

    def look(self) -> None:
        for _, leader in self.leaders():
            self.committed = max(self.committed, leader.high_watermark)
            self.starts.setdefault(leader.epoch, leader.log.log_end_offset)

    def altered(self, request: AlterPartitionRequest, before: Partition) -> None:
        for node in self.world.partition.isr:
            running = self.world.nodes.get(node)
            if node in before.isr or running is None or node in self.world.lost:
                continue
            end = log_of(self.world, node).log_end_offset
            assert end >= self.committed, f"{node} joins with {end}, {self.committed} are committed"
            assert end >= self.starts[before.leader_epoch], f"{node} joins with {end}, below the start of the epoch"


@pytest.mark.parametrize("seed", SEEDS)
def test_6_a_replica_joins_the_isr_only_when_its_log_reaches_the_high_watermark_and_the_start_of_the_epoch(
    seed: int,
) -> None:
    played(seed, Joining)


def fetch_by_third(world: Governed, leader: int, offset: int | None) -> None:
    """Broker 3's process is ours to play. None: a fetch that does not name the partition."""
    asked = FetchPartition(partition=0, fetch_offset=offset or 0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        replica_state=ReplicaState(replica_id=3, replica_epoch=103),
        max_wait_ms=0,
        session_epoch=-1,
        topics=() if offset is None else (FetchTopic(topic_id=AT.topic_id, partitions=(asked,)),),
    )
    replicas = world.nodes[NodeId(leader)]
    world.perform(NodeId(leader), replicas.fetch(world.to(17), CALLER, request, world.now))


def third_outside() -> Governed:
    """Broker 3 left the ISR with one record; five more are committed since."""
    world = Governed()
    world.create()
    world.produce(1)
    world.run(1_000)
    world.kill(NodeId(3))
    world.change(isr=(1, 2))
    world.fence(3)
    world.produce(1, 5)
    assert world.row(1)[2:4] == (6, 6)
    world.beat(3)
    return world


def test_6_a_replica_that_has_the_old_high_watermark_and_not_the_start_of_the_epoch_stays_outside() -> None:
    """T36. Broker 2 was not told yet what is committed when it is elected: its high watermark is no measure."""
    world = third_outside()
    world.cut = {NodeId(1)}
    world.change(leader=2, isr=(2, 1))
    assert world.row(2)[2:4] == (1, 6)
    fetch_by_third(world, 2, 1)
    assert 3 not in world.partition.isr
    fetch_by_third(world, 2, 6)
    assert 3 in world.partition.isr


def test_6_a_replica_below_the_high_watermark_stays_outside() -> None:
    world = third_outside()
    for offset in (1, 5):
        fetch_by_third(world, 1, offset)
        assert world.partition.isr == (1, 2)
    fetch_by_third(world, 1, 6)
    assert world.partition.isr == (1, 2, 3)


def test_6_a_replica_that_has_asked_for_something_else_only_is_not_taken_for_complete() -> None:
    """Any fetch of a broker is a reason to look at all partitions that it is a replica of."""
    world = third_outside()
    world.change(leader=1, isr=(1, 2))  # a new epoch: nothing is known of 3
    fetch_by_third(world, 1, None)
    assert world.partition.isr == (1, 2)


def test_the_plays_contain_what_the_invariants_are_about() -> None:
    seen: dict[str, int] = {}
    for seed in SEEDS:
        for what, count in played(seed, Committed).seen.items():
            seen[what] = seen.get(what, 0) + count
    assert min(seen.values()) >= 20, seen
