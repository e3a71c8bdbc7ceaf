"""The laws about the controller, votes and groups fire: what they forbid is done to a running cluster, by hand."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs
from tests.sim.laws.test_laws import other
from tests.sim.play import SETTINGS, Play

from strandline.base.errors import ErrorCode
from strandline.base.ids import NOBODY, NodeId, Uuid
from strandline.broker.lifecycle import ShutDown
from strandline.group.coordinator import Groups
from strandline.metadata.image import RECOVERING, Broker, Image, Partition, merged
from strandline.metadata.records import LossEvent
from strandline.quorum.ports import EpochEnd, Unfit
from strandline.sim.clients.committer import Committer
from strandline.sim.laws.clients.groups import Replayed
from strandline.sim.laws.partitions.recoveries import Said, Term
from strandline.sim.laws.partitions.standing import look_at_roles
from strandline.sim.world.machine import Machine
from strandline.sim.world.options import Options
from strandline.sim.world.violation import Violation
from strandline.wire.batch import build, read_header
from strandline.wire.messages.groups.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)

# --- groups


def coordinator(play: Play) -> Groups:
    for machine in play.machines:
        if machine.node is not None and machine.node.broker is not None:
            groups = machine.node.broker.groups
            if any("ga" in shard.offsets for shard in groups.shards.loaded.values()):
                return groups
    raise AssertionError("nobody coordinates the group")


def offsets_are_acknowledged_unwritten(play: Play) -> None:
    shards = coordinator(play).shards
    shards.write = lambda shard, records, now, done: done(ErrorCode.NONE, 0, now)  # type: ignore[method-assign]


def offsets_are_forgotten(play: Play) -> None:
    for shard in coordinator(play).shards.loaded.values():
        shard.offsets.clear()
    writer = next(client for client in play.scene.clients if client.name == "ga")
    assert isinstance(writer, Committer)
    writer.is_stopped = True


@pytest.mark.parametrize(
    ("harm", "law"),
    [
        (offsets_are_acknowledged_unwritten, "acknowledges offset .*, and it is not committed"),
        (offsets_are_forgotten, r"says that -1 is the offset of \('ga'"),
    ],
)
def test_a_coordinator_that_says_what_is_not_in_its_log_is_noticed(harm: Callable[[Play], None], law: str) -> None:
    play = Play()
    harm(play)
    with pytest.raises(Violation, match=law):
        play.run(3000)


def test_an_offset_that_expires_under_its_group_is_noticed() -> None:
    replayed = Replayed(0, set())
    group, at = encode_key(GroupMetadataKey(group="g")), encode_key(OffsetCommitKey(group="g", topic="orders"))
    full = encode_value(GroupMetadataValue(generation=2, members=(MemberMetadata(),)))

    def take(key: bytes, value: bytes | None) -> None:
        batch = build([(0, key, value, ())], base_offset=replayed.end)
        replayed.take_batch(read_header(batch), memoryview(batch))

    take(at, encode_value(OffsetCommitValue(offset=7)))
    take(group, encode_value(GroupMetadataValue(generation=1)))
    take(at, None)
    take(group, full)
    with pytest.raises(AssertionError, match="an offset of g is removed, which has members"):
        take(at, None)


# --- how brokers stop


def broker_of(play: Play, image: Image) -> tuple[Machine, Broker]:
    machine = other(play)
    return machine, image.brokers[machine.node_id]


def test_a_broker_that_leaves_before_it_may_is_noticed() -> None:
    play = Play()
    node = other(play).node
    assert node is not None and node.broker is not None
    node.broker.lifecycle.role = ShutDown(clean=True)
    with pytest.raises(Violation, match="leaves with the controller's consent, and is not fenced"):
        play.run(1000)


def test_a_broker_that_vouches_for_an_epoch_that_it_never_had_is_noticed() -> None:
    play = Play()
    machine = other(play)
    machine.shut_down()
    play.until("it has left", lambda: not machine.is_running)
    play.world.laws.standing.last[machine.node_id] = 4711
    with pytest.raises(Violation, match="and its last process had 4711"):
        machine.start()


@pytest.mark.parametrize(
    ("before", "after", "law"),
    [
        ({"in_controlled_shutdown": True}, {}, "no longer shuts down"),
        (
            {"in_controlled_shutdown": True, "fenced": True},
            {"in_controlled_shutdown": True},
            "shuts down, and is let in again",
        ),
    ],
)
def test_a_shutdown_that_is_taken_back_is_noticed(before: Any, after: Any, law: str) -> None:
    play = Play()
    standing, image = play.world.laws.standing, play.world.laws.metadata.image.copy()
    machine, broker = broker_of(play, image)
    standing.known[machine.node_id] = structs.replace(broker, **before)
    image.brokers[machine.node_id] = structs.replace(broker, **after)
    with pytest.raises(AssertionError, match=law):
        standing.looked(image)


def test_a_broker_that_stays_in_sync_after_an_unclean_stop_is_noticed() -> None:
    play = Play(options=Options(settings=SETTINGS, elr=True))
    standing, image = play.world.laws.standing, play.world.laws.metadata.image.copy()
    machine, broker = broker_of(play, image)
    again = structs.replace(broker, epoch=broker.epoch + 100, incarnation_id=Uuid(bytes(16)), fenced=True)
    image.brokers[machine.node_id] = again
    with pytest.raises(AssertionError, match=r"did not stop in order .* and is in sync or eligible"):
        standing.looked(image)
    standing.vouched[machine.node_id, again.incarnation_id] = broker.epoch
    standing.known = {machine.node_id: broker}
    standing.looked(image)


@pytest.mark.parametrize(
    ("change", "law"),
    [
        ({"fenced": True}, "is fenced or shuts down"),
        ({"in_controlled_shutdown": True}, "is fenced or shuts down"),
        ({"log_dirs": (Uuid(bytes(16)),)}, "its directory is offline"),
    ],
)
def test_a_leader_that_may_not_lead_is_noticed(change: Any, law: str) -> None:
    play = Play()
    image = play.world.laws.metadata.image.copy()
    at = play.at()
    partition = image.partition(at)
    assert partition is not None
    look_at_roles("orders-0", image, partition, partition)
    image.brokers[partition.leader] = structs.replace(image.brokers[partition.leader], **change)
    with pytest.raises(AssertionError, match=law):
        look_at_roles("orders-0", image, partition, partition)


def test_a_recovering_leader_that_is_not_alone_is_noticed() -> None:
    play = Play()
    image = play.world.laws.metadata.image
    partition = image.partition(play.at())
    assert partition is not None
    with pytest.raises(AssertionError, match="recovers, and is not alone in the ISR"):
        look_at_roles("orders-0", image, partition, structs.replace(partition, leader_recovery_state=RECOVERING))


def test_an_answer_to_a_proposal_that_is_not_what_is_committed_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play()
    monkeypatch.setattr(
        "strandline.controller.partitions.isr.merged",
        lambda old, change: structs.replace(merged(old, change), isr=old.isr),
    )
    follower = other(play)
    follower.kill()
    play.run(500)
    with pytest.raises(Violation, match="answers a proposal with"):
        follower.start()
        play.run(6000)


# --- recoveries


def recovery(cause: str = "unclean recovery, Balanced", leader: int = 1) -> tuple[Play, Partition, Partition]:
    """A partition that nobody leads, of which 1 and 3 were eligible last, and then somebody does."""
    play = Play(options=Options(settings=SETTINGS | {"unclean.recovery.manager.enabled": "true"}, elr=True))
    partition = play.world.laws.metadata.image.partition(play.at())
    assert partition is not None
    lost = structs.replace(partition, leader=NOBODY, isr=(), last_known_elr=(NodeId(1), NodeId(3)))
    led = structs.replace(
        lost,
        leader=NodeId(leader),
        isr=(NodeId(leader),),
        leader_epoch=lost.leader_epoch + 1,
        partition_epoch=lost.partition_epoch + 1,
        losses=(LossEvent(replica=leader, cause=cause),),
    )
    return play, lost, led


def answer(play: Play, node: int, rank: tuple[int, int], leader_epoch: int, behind: int = 0) -> Said:
    epoch = play.world.laws.metadata.image.brokers[NodeId(node)].epoch
    return Said(epoch - behind, leader_epoch, rank)


@pytest.mark.parametrize(
    ("ranks", "cause", "behind", "law"),
    [
        ({2: (0, 9), 3: (0, 9)}, "unclean recovery, Aggressive", 0, "1 is elected, and has not said what it has"),
        ({1: (0, 9), 2: (0, 9)}, "unclean recovery, Aggressive", 1, "1 is elected, and has not said what it has"),
        ({1: (0, 9), 2: (0, 10)}, "unclean recovery, Aggressive", 0, r"1 is elected, and \[2\] have more"),
        ({1: (0, 9), 2: (1, 2)}, "longest_log_aggressive election, asked for by x", 0, r"\[2\] have more"),
        ({1: (0, 9), 2: (0, 2)}, "unclean recovery, Balanced", 0, r"1 is elected, and \[3\] were not waited for"),
        ({1: (0, 9), 2: (0, 10), 3: (0, 9)}, "designation election, asked for by x", 0, ""),
        ({1: (0, 9), 2: (0, 9), 3: (0, 9)}, "unclean recovery, Balanced", 0, ""),
        ({}, "unclean election, asked for", 0, ""),
    ],
)
def test_a_recovery_that_elects_another_than_the_one_with_the_most_is_noticed(
    ranks: dict[int, tuple[int, int]], cause: str, behind: int, law: str
) -> None:
    play, before, after = recovery(cause)
    image, laws = play.world.laws.metadata.image, play.world.laws.recoveries
    said = {NodeId(node): answer(play, node, rank, before.leader_epoch, behind=behind) for node, rank in ranks.items()}
    if not law:
        laws.elects("orders-0", said, before, after, image)
        return
    with pytest.raises(AssertionError, match=law):
        laws.elects("orders-0", said, before, after, image)


def test_the_unclean_election_of_a_replica_that_was_not_asked_is_noticed() -> None:
    play, before, after = recovery("the last known leader leads again")
    at, laws = play.at(), play.world.laws.recoveries
    with pytest.raises(AssertionError, match="was not asked what it has"):
        laws.changed("orders-0", at, before, after)
    laws.asked.add((at, NodeId(1), before.leader_epoch))
    laws.changed("orders-0", at, before, after)


def test_the_election_of_another_replica_than_the_designated_one_is_noticed() -> None:
    play, before, after = recovery("designation election, asked for by x")
    at, laws = play.at(), play.world.laws.recoveries
    laws.asked.add((at, NodeId(1), before.leader_epoch))
    with pytest.raises(AssertionError, match="nobody designated 1"):
        laws.changed("orders-0", at, before, after)
    laws.designated.add(("orders-0", NodeId(1)))
    laws.changed("orders-0", at, before, after)


def test_an_aggressive_recovery_that_never_ends_is_noticed() -> None:
    play, before, _ = recovery()
    image, laws, at = play.world.laws.metadata.image.copy(), play.world.laws.recoveries, play.at()
    image.configs = {(2, "orders"): {"unclean.recovery.strategy": "Aggressive"}}
    term = Term(1)
    term.said[at] = {NodeId(2): answer(play, 2, (0, 1), before.leader_epoch)}
    machine = play.machines[0]
    laws.elects_in_time(machine, term, at, before, image)
    term.since[at] -= 10_000_000
    with pytest.raises(AssertionError, match="nobody is elected for"):
        laws.elects_in_time(machine, term, at, before, image)


def test_answers_of_replicas_are_heard_when_their_controller_takes_them() -> None:
    options = Options(settings=SETTINGS | {"unclean.recovery.manager.enabled": "true"}, elr=True, is_ruthless=True)
    play = Play(options=options)
    play.admin.wish(lambda: play.admin.configure("orders", "unclean.recovery.strategy", "Aggressive"))
    play.run(300)
    for machine in play.machines:
        machine.power_cut()
    play.run(300)
    for machine in play.machines:
        machine.start()
    play.heal()
    assert {at for at, _, _ in play.world.laws.recoveries.asked} >= {play.at()}


# --- votes


def test_a_pre_vote_of_a_voter_that_hears_from_its_leader_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Play()
    controller = play.world.controller()
    assert controller is not None
    monkeypatch.setattr("strandline.quorum.voting.why_not_pre_vote", lambda role, **_: None)
    cut_off = next(machine for machine in play.machines if machine is not controller)
    play.world.network.cut(controller.name, cut_off.name)
    with pytest.raises(Violation, match="grants a pre-vote, and hears from"):
        play.run(5000)


def test_a_candidate_that_cannot_apply_its_metadata_is_noticed() -> None:
    play = Play()
    node = other(play).node
    assert node is not None
    node.quorum.state.unfit = Unfit(EpochEnd(0, 0), 1, "a record of tomorrow")
    for machine in play.machines:
        if machine.node is not node:
            machine.kill()
    with pytest.raises(Violation, match="stands for election, and cannot apply its metadata"):
        play.run(5000)
