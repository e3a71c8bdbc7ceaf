"""Traps T25–T29: registrations, sessions, and what a broker says of its last stop. Each test is named by its trap."""

from random import Random

import pytest
from msgspec.structs import replace
from tests.sim.play import Play
from tests.unit.controller.cluster import Cluster

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId, TopicIdPartition, Uuid
from strandline.base.ports import DiskError
from strandline.broker.parts import prepare
from strandline.controller.basis import ControllerConfig
from strandline.controller.controller import Controller
from strandline.log.evidence.clean_shutdown import FILE, Place, Stop, take_clean_shutdown, write_clean_shutdown
from strandline.log.evidence.inventory import Left
from strandline.metadata.image import Image
from strandline.metadata.records import FeatureLevelRecord
from strandline.sim.world.disk import SimDisk, SimFile
from strandline.sim.world.machine import Machine
from strandline.wire.messages.brokers.broker_heartbeat import BrokerHeartbeatRequest

E = ErrorCode
ELR_ON = FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1)


def eligible_second() -> Cluster:
    """Broker 1 leads alone, broker 2 is fenced and eligible."""
    cluster = Cluster(brokers=2, static={"min.insync.replicas": 2})
    cluster.controller.write([ELR_ON], cluster.now)
    cluster.create("t", (1, 2))
    cluster.fence(2)
    assert cluster.partition("t").elr == (2,)
    return cluster


# --- the same incarnation, and a controller that is new


def test_t25_a_registration_that_is_made_again_changes_neither_epoch_nor_fencing_nor_any_partition() -> None:
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    before, epoch = cluster.partition("t"), cluster.epochs[2]
    proposal = cluster.proposal("t", (1, 2))
    answer = cluster.ask(cluster.registration(2, life=1), version=4)
    assert (answer.error_code, answer.broker_epoch) == (E.NONE, epoch)
    assert not cluster.image.brokers[NodeId(2)].fenced
    assert cluster.partition("t") is before
    (row,) = cluster.ask(proposal, version=3).topics[0].partitions
    assert row.error_code == E.NONE, "what was under way with the old epoch is still good"


def test_t25_a_fenced_broker_that_registers_again_stays_fenced() -> None:
    cluster = Cluster()
    cluster.register(1)
    answer = cluster.ask(cluster.registration(1, life=1), version=4)
    assert answer.broker_epoch == cluster.epochs[1]
    assert cluster.image.brokers[NodeId(1)].fenced


def test_t25_an_incarnation_that_is_over_can_do_nothing() -> None:
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    late = cluster.proposal("t", (1,))
    cluster.fence(1)
    heartbeat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=cluster.epochs[1], current_metadata_offset=1 << 40)
    cluster.join(1)
    before = len(cluster.log.records)
    assert cluster.ask(heartbeat, 1).error_code == E.STALE_BROKER_EPOCH
    assert cluster.ask(late, 3).error_code == E.STALE_BROKER_EPOCH
    assert len(cluster.log.records) == before


def test_t26_a_broker_that_died_with_the_controller_is_fenced_by_the_next_one() -> None:
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    image = Image()
    image.apply_all(cluster.log.records)
    cluster.controller = Controller(NodeId(101), ControllerConfig(), {}, Random(2), cluster.log)
    cluster.take(cluster.controller.activate(image, 2, cluster.now))
    assert not cluster.image.brokers[NodeId(1)].fenced, "it has as long as any broker"
    cluster.wait(8_000)
    cluster.beat(2)
    cluster.wait(1_000)
    assert [cluster.image.brokers[NodeId(n)].fenced for n in (1, 2)] == [True, False]
    assert (cluster.partition("t").leader, cluster.partition("t").isr) == (2, (2,))


# --- the marker of a clean stop


class Watched(SimDisk):
    """Remembers what is opened, removed and synced, in order."""

    def __init__(self) -> None:
        super().__init__(("/d1", "/d2"))
        self.acts: list[str] = []

    def remove(self, path: str) -> None:
        self.acts.append(f"remove {path}")
        super().remove(path)

    def sync(self, paths: object) -> None:
        self.acts.append(f"sync {' '.join(paths)}")  # type: ignore[call-overload]
        super().sync(paths)  # type: ignore[arg-type]


IDS = tuple(Uuid(bytes([n] * 16)) for n in (1, 2))
ONE = Place("cluster", 1, (("/d1", IDS[0]),))
BOTH = Place("cluster", 1, (("/d1", IDS[0]), ("/d2", IDS[1])))


def test_t27_the_marker_is_taken_away_durably_and_believed_once() -> None:
    disk = Watched()
    write_clean_shutdown(disk, ONE, 42)
    disk.acts.clear()
    assert take_clean_shutdown(disk, ONE) == Stop(42, {"/d1": ()})
    assert disk.acts == [f"remove /d1/{FILE}", "sync /d1"]
    disk.crash(Random(1))
    assert take_clean_shutdown(disk, ONE) is None, "a crash while logs are loaded was no clean stop"


def marked(machine: Machine) -> list[bool]:
    return [machine.disk.exists(f"{root}/{FILE}") for root in machine.log_dirs]


def test_t27_a_process_whose_logs_could_not_be_loaded_leaves_no_marker() -> None:
    play = Play()
    machine = play.machines[0]
    machine.shut_down()
    play.until("it has stopped in order", lambda: not machine.is_running)
    assert marked(machine) == [True]
    broken = next(
        path for path in machine.disk.contents() if path.startswith("/d0/orders-0/") and path.endswith(".log")
    )
    open_file = machine.disk.open

    def failing(path: str) -> SimFile:
        if path == broken:
            raise DiskError(f"{path}: Input/output error")
        return open_file(path)

    machine.disk.open = failing  # type: ignore[method-assign]
    machine.start()
    play.run(3_000)
    assert not machine.is_running
    assert marked(machine) == [False]
    machine.disk.open = open_file  # type: ignore[method-assign]
    machine.start()
    play.heal()
    play.end()


def test_t27_a_process_that_never_registered_knows_no_epoch_and_vouches_for_nothing() -> None:
    """Its logs are whole, and its marker says −1, which is nobody's epoch: also after a clean stop, whose epoch is that
    of another process."""
    play = Play()
    alone, *others = play.machines
    alone.shut_down()
    play.until("it has stopped in order", lambda: not alone.is_running)
    for machine in others:
        machine.kill()
    alone.start()
    play.run(500)
    alone.shut_down()
    play.until("it has stopped", lambda: not alone.is_running)
    assert marked(alone) == [True]
    parts = prepare(alone.config, alone.disk, Random(1), alone.where, alone.clock.now())
    assert (parts.identity.previous_broker_epoch, parts.clean_start) == (-1, True)
    for machine in (alone, *others):
        machine.start()
    play.heal()
    play.end()


def test_t27_only_a_start_after_a_clean_stop_trusts_its_logs() -> None:
    play = Play()
    for machine, stop in zip(play.machines, (Machine.kill, Machine.shut_down), strict=False):
        stop(machine)
        play.until("it has stopped", lambda machine=machine: not machine.is_running)
        parts = prepare(machine.config, machine.disk, Random(1), machine.where, machine.clock.now())
        assert parts.clean_start == (stop is Machine.shut_down)
        assert (parts.identity.previous_broker_epoch >= 0) == parts.clean_start


def test_t27_what_the_marker_vouches_for_outlives_the_power() -> None:
    play = Play(log_flush_offset_checkpoint_interval_ms="60000")
    for machine in play.machines:
        machine.shut_down()
    play.run(6_000)
    for machine in play.machines:
        assert not machine.is_running
        assert machine.has_left
        machine.power_cut()
    for machine in play.machines:
        machine.start()
    play.heal()
    play.end()


@pytest.mark.parametrize("age", ["an older life's", "none"])
def test_t28_a_marker_of_another_life_is_no_clean_stop(age: str) -> None:
    """As after a backup was restored."""
    cluster = eligible_second()
    previous = cluster.epochs[2] - 1 if age != "none" else -1
    assert cluster.register(2, previous=previous).error_code == E.NONE
    assert (cluster.partition("t").elr, cluster.partition("t").last_known_elr) == ((), (2,))


def test_t28_the_marker_of_the_last_life_is_one() -> None:
    cluster = eligible_second()
    assert cluster.register(2, previous=cluster.epochs[2]).error_code == E.NONE
    assert cluster.partition("t").elr == (2,)


def marker_of(place: Place, epoch: int = 42, path: str = "/d2") -> bytes:
    disk = Watched()
    write_clean_shutdown(disk, place, epoch)
    content = disk.read_file(f"{path}/{FILE}")
    assert content is not None
    return content


ELSEWHERE = {
    "missing": None,
    "of another stop": marker_of(BOTH, 41),
    "of another cluster": marker_of(replace(BOTH, cluster_id="other")),
    "of another node": marker_of(replace(BOTH, node_id=2)),
    "of the other directory": marker_of(BOTH, path="/d1"),
    "of a disk that is no longer here": marker_of(
        replace(BOTH, directories=(BOTH.directories[0], ("/d2", Uuid(b"x" * 16))))
    ),
    "of a node with one directory": marker_of(replace(BOTH, directories=BOTH.directories[1:])),
    "of a node with a third": marker_of(replace(BOTH, directories=(*BOTH.directories, ("/d2", IDS[1])))),
    "that does not say whose it is": b'{"version":0,"brokerEpoch":42}',
}


@pytest.mark.parametrize("content", ELSEWHERE.values(), ids=list(ELSEWHERE))
def test_t28_all_directories_must_have_a_marker_of_the_same_stop_of_this_node(content: bytes | None) -> None:
    """A disk can come here from elsewhere, and the epoch of its marker can be ours by chance."""
    disk = Watched()
    write_clean_shutdown(disk, BOTH, 42)
    disk.remove(f"/d2/{FILE}")
    if content is not None:
        disk.save(f"/d2/{FILE}", content)
    assert take_clean_shutdown(disk, BOTH) is None
    assert not any(disk.exists(f"{root}/{FILE}") for root in ("/d1", "/d2"))


def test_t28_a_directory_less_than_there_was_is_no_clean_stop() -> None:
    """Its replicas would begin empty in another one, and be eligible for what they do not have."""
    disk = Watched()
    write_clean_shutdown(disk, BOTH, 42)
    assert take_clean_shutdown(disk, ONE) is None


WITHOUT_SECOND = replace(ONE, dead=1)
LAY_THERE = (Left.in_doubt(TopicIdPartition(Uuid(b"t" * 16), 0), 0, -1),)


def stopped_without_second() -> Watched:
    disk = Watched()
    write_clean_shutdown(disk, WITHOUT_SECOND, 42, None, {IDS[1]: LAY_THERE})
    return disk


def test_t28_a_directory_that_was_offline_at_the_stop_and_is_back_takes_nothing_from_the_others() -> None:
    """It is not vouched for, and what lay there is in doubt."""
    assert take_clean_shutdown(stopped_without_second(), BOTH) == Stop(42, {"/d1": LAY_THERE})
    assert take_clean_shutdown(stopped_without_second(), WITHOUT_SECOND) == Stop(42, {"/d1": ()}), "it is not back"


def second_has(content: bytes) -> Watched:
    disk = stopped_without_second()
    disk.save(f"/d2/{FILE}", content)
    return disk


def no_other_marker() -> Watched:
    disk = second_has(marker_of(BOTH))
    disk.remove(f"/d1/{FILE}")
    return disk


@pytest.mark.parametrize(
    ("disk", "place"),
    [
        (stopped_without_second(), ONE),
        (stopped_without_second(), replace(BOTH, dead=1)),
        (stopped_without_second(), replace(BOTH, directories=(BOTH.directories[0], ("/d2", Uuid(b"x" * 16))))),
        (second_has(marker_of(BOTH, 41)), BOTH),
        (second_has(marker_of(BOTH)), BOTH),
        (no_other_marker(), BOTH),
    ],
    ids=["it is gone", "one more is dead", "it is another disk", "an older stop's", "of both", "the other has none"],
)
def test_t28_but_then_too_all_that_stopped_are_here_and_nothing_else_is(disk: Watched, place: Place) -> None:
    assert take_clean_shutdown(disk, place) is None


def test_t28_what_lay_in_a_directory_that_was_offline_is_checked_as_all_of_the_marker() -> None:
    disk = stopped_without_second()
    content = disk.read_file(f"/d1/{FILE}")
    assert content is not None
    changed = content.replace(b"-1,0,null", b"-1,1,null")
    assert changed != content
    disk.save(f"/d1/{FILE}", changed)
    assert take_clean_shutdown(disk, BOTH) is None


def test_t28_where_they_all_agree_the_stop_was_clean() -> None:
    disk = Watched()
    write_clean_shutdown(disk, BOTH, 42)
    assert take_clean_shutdown(disk, BOTH) == Stop(42, {"/d1": (), "/d2": ()})


# --- back before the session has ended


def test_t29_another_incarnation_waits_for_the_session_of_the_one_that_lives() -> None:
    cluster = Cluster(brokers=2)
    cluster.create("t", (1, 2))
    before = cluster.partition("t")
    assert cluster.register(1).error_code == E.DUPLICATE_BROKER_REGISTRATION
    assert cluster.partition("t") is before


def test_t29_a_restart_within_the_session_leaves_every_isr_before_its_new_epoch_can_be_used() -> None:
    """In the batch of the registration, and ahead of it: nothing between may show the new epoch in sync."""
    cluster = eligible_second()
    cluster.join(2)
    cluster.alter("t", (1, 2))
    cluster.disconnect(cluster.connection(2))
    before = len(cluster.log.batches)
    assert cluster.register(2).error_code == E.NONE
    (batch,) = cluster.log.batches[before:]
    assert [type(record).__name__ for record in batch] == ["PartitionChangeRecord", "RegisterBrokerRecord"]
    assert (cluster.partition("t").isr, cluster.partition("t").elr) == ((1,), ())
    assert cluster.image.brokers[NodeId(2)].fenced
