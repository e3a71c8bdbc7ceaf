"""KIP-101 (leader epochs instead of the high watermark) with KIP-279's answer: a test for each sentence that binds us.

Two brokers as in the text: A is 2, B is 1 and leads first. Real `Replicas` on both sides, metadata as the controller
would write it.
"""

import pytest
from tests.kip.scenes import (
    World,
    a_compressed_batch,
    content,
    distinct,
    epochs,
    epochs_on_disk,
    log_of,
    lose_power,
    restart,
)
from tests.unit.controller.cluster import Cluster
from tests.unit.log.logs import NOW, ROOT, fill, open_log, small
from tests.unit.replica.conftest import a_batch

from strandline.base.effects import Caller, Sync
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.base.time import Instant
from strandline.log.checkpoints import parse_epochs
from strandline.log.epochs import EpochStart
from strandline.log.files.epoch_file import EPOCHS_FILE
from strandline.sim.world.disk import SimDisk
from strandline.wire.messages.records.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

CALLER = Caller("client", "127.0.0.1", "PLAINTEXT", is_node=True)
A, B = NodeId(2), NodeId(1)


def two_brokers() -> World:
    """B leads, A follows, and nothing is written yet."""
    world = World(brokers=2)
    world.create(leader=B, replicas=(B, A))
    world.run(1_000)
    return world


def elect(world: World, leader: NodeId, *isr: NodeId, unclean: bool = False) -> None:
    """A new leader epoch; whoever lives hears of it."""
    world.change(leader=leader, isr=isr, **({"leader_recovery_state": 1} if unclean else {}))


def three_epochs() -> World:
    """Offsets 0–2, 3–5 and 6–8, each in an epoch of its own, on both brokers."""
    world = two_brokers()
    for _ in range(3):
        world.produce(B, 3)
        world.run(1_000)
        elect(world, B, B, A)
    world.run(1_000)
    return world


def end_of_epoch(world: World, node: int, epoch: int, current: int = -1) -> tuple[int, int, int]:
    asked = OffsetForLeaderPartition(partition=0, current_leader_epoch=current, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic="t", partitions=(asked,)),))
    to = world.to(4)
    world.perform(NodeId(node), world.nodes[NodeId(node)].offsets_for_leader_epoch(to, CALLER, request, world.now))
    row = world.answers[to.correlation_id].topics[0].partitions[0]
    return row.error_code, row.leader_epoch, row.end_offset


def write_alone(world: World, leader: NodeId, count: int) -> None:
    """An unclean election, and records that only this broker has."""
    elect(world, leader, leader, unclean=True)
    world.produce(leader, count, acks=1)


# --- scenario 1: high watermark truncation followed by immediate leader election


def scenario_1() -> World:
    """A has m2, B has committed it, and A was not told so. A restarts, and B fails before A can ask it anything."""
    world = two_brokers()
    assert world.produce(B, batch=distinct(b"m1"))().error_code == ErrorCode.NONE
    world.run(1_000)
    m2 = world.produce(B, batch=distinct(b"m2"))
    assert m2().error_code == ErrorCode.NONE
    assert (world.row(B)[2], world.row(A)[2:4]) == (2, (1, 2))
    world.kill(A)
    world.cut = {A}
    restart(world, A)
    world.kill(B)
    return world


def test_scenario_1_a_follower_that_restarts_and_leads_at_once_keeps_what_it_did_not_know_was_committed() -> None:
    world = scenario_1()
    assert world.row(A)[3] == 2  # a restart alone cuts nothing
    elect(world, A, A)
    assert world.row(A)[2:4] == (2, 2)
    assert len(content(world, A)) == 2


def test_scenario_1_the_old_leader_comes_back_and_both_have_m2() -> None:
    world = scenario_1()
    before = content(world, A)
    elect(world, A, A)
    world.cut = set()
    restart(world, B)
    world.run(2_000)
    assert content(world, A) == content(world, B) == before


def test_scenario_1_a_follower_whose_leader_lives_cuts_nothing_either() -> None:
    """It asks where its epoch ends: at the leader's log end, not at its own old high watermark."""
    world = two_brokers()
    world.produce(B)
    world.run(1_000)
    world.produce(B)
    world.kill(A)
    cuts: list[int] = []
    restart(world, A)
    log = log_of(world, A)
    log.truncate_to = cuts.append  # type: ignore[method-assign]
    world.run(2_000)
    assert (cuts, world.row(A)[2:4]) == ([], (2, 2))


# --- scenario 2: replica divergence on restart after multiple hard failures


def scenario_2(tail: bytes, over: bytes) -> World:
    """Both lose power. B has lost m2, and leads; A has it, and comes back when B has written m3 at its place."""
    world = two_brokers()
    world.produce(B, batch=distinct(b"m1"))
    world.run(1_000)
    world.produce(B, batch=tail)
    world.run(1_000)
    lose_power(world, A, keep=1_000)
    lose_power(world, B, keep=1)
    restart(world, B)
    elect(world, B, B)
    assert world.row(B)[3] == 1
    world.produce(B, batch=over)
    restart(world, A)
    world.run(3_000)
    return world


def test_scenario_2_the_follower_finds_its_orphaned_message_and_cuts_it() -> None:
    world = scenario_2(distinct(b"m2"), distinct(b"m3"))
    assert content(world, A) == content(world, B)
    assert [epoch for _, epoch, _ in content(world, A)] == [0, 1]
    assert epochs(world, A) == epochs(world, B) == [(0, 0), (1, 1)]


@pytest.mark.parametrize(("orphans", "successors"), [(10, 3), (3, 10), (1, 10), (10, 1)])
def test_scenario_2_message_sets_whose_offsets_straddle_each_other_leave_no_replica_stuck(
    orphans: int, successors: int
) -> None:
    """The end of a compressed set in one log points to the middle of a set in the other."""
    world = scenario_2(a_compressed_batch(orphans), a_compressed_batch(successors))
    assert world.ends() == [1 + successors] * 2
    assert content(world, A) == content(world, B)
    assert world.produce(B)().error_code == ErrorCode.NONE
    world.run(1_000)
    assert world.row(B)[4] == (B, A)
    assert content(world, A) == content(world, B)


def test_scenario_2_a_follower_whose_log_is_the_shorter_one_cuts_nothing() -> None:
    world = two_brokers()
    world.produce(B, batch=distinct(b"m1"))
    world.run(1_000)
    world.produce(B, batch=distinct(b"m2"))
    world.run(1_000)
    lose_power(world, A, keep=1)
    lose_power(world, B, keep=1_000)
    restart(world, B)
    elect(world, B, B)
    world.produce(B, batch=distinct(b"m3"))
    restart(world, A)
    world.run(3_000)
    assert content(world, A) == content(world, B)
    assert [epoch for _, epoch, _ in content(world, A)] == [0, 0, 1]


# --- the appendix: two unclean elections, the second of which covers up the first


@pytest.mark.parametrize("count", [1, 3], ids=["as in the text", "A's epoch 2 ends behind B's whole log"])
def test_the_appendixs_divergence_below_two_unclean_elections_is_found(count: int) -> None:
    """KIP-101 leaves offset 0 different, for B cannot say where epoch 2 of A would end. With the leader's answer of
    KIP-279, the largest epoch that is not larger and *its* end, A asks again from there and finds it. Where that end
    lies behind all that B has, only the epoch says that the logs differ, and only B's own epochs say where to cut."""
    world = two_brokers()
    world.kill(A)
    elect(world, B, B)
    world.produce(B, acks=1, batch=distinct(b"B's first"))
    turns = ((A, B, b"A's first", count), (B, A, b"B's second", 1), (A, B, b"A's second", 1))
    for leader, other, text, records in turns:
        world.kill(other)
        world.start(leader)
        elect(world, leader, leader, unclean=True)
        for _ in range(records):
            world.produce(leader, acks=1, batch=distinct(text))
    assert epochs(world, A) == [(2, 0), (4, count)]
    world.start(B)
    assert epochs_on_disk(world, A) == [(2, 0), (4, count)]
    world.run(3_000)
    assert content(world, A) == content(world, B)
    assert epochs(world, B) == [(2, 0), (4, count)]
    assert [epoch for _, epoch, _ in content(world, B)] == [2] * count + [4]


def test_kip_279_a_follower_whose_last_epoch_its_leader_never_had_cuts_where_the_last_common_epoch_ends() -> None:
    """T37. B: epoch 0 to 12, epoch 2 to 15. A: epoch 0 to 10, epoch 1 to 20, epoch 3. Asked for epoch 2, A answers that
    its epoch 1 ends at 20, which lies behind B's whole log; what they have in common ends at 10."""
    world = two_brokers()
    world.produce(B, 10)
    world.run(1_000)
    world.cut = {A, B}
    world.produce(B, 2, acks=1)
    write_alone(world, A, 10)
    write_alone(world, B, 3)
    write_alone(world, A, 1)
    assert (world.row(B)[2:4], world.row(A)[2:4]) == ((15, 15), (21, 21))
    world.cut = set()
    world.run(3_000)
    assert content(world, A) == content(world, B)
    assert epochs(world, A) == epochs(world, B)
    assert world.row(B)[3] == 21


# --- steps 1 to 3: the leader


def test_every_message_set_carries_the_epoch_in_which_its_leader_accepted_it() -> None:
    world = two_brokers()
    world.produce(B)
    world.run(1_000)
    elect(world, A, A, B)
    world.produce(A)
    world.produce(A)
    world.run(1_000)
    assert [epoch for _, epoch, _ in content(world, A)] == [0, 1, 1]
    assert content(world, A) == content(world, B)


def test_a_replica_that_becomes_leader_adds_the_epoch_and_its_log_end_to_the_file_before_it_writes_in_it() -> None:
    world = two_brokers()
    world.produce(B, 3)
    world.run(1_000)
    elect(world, A, A, B)
    assert epochs_on_disk(world, A) == [(0, 0), (1, 3)]
    assert world.row(A)[3] == 3


def test_the_footnote_an_epoch_is_durable_before_the_recovery_point_passes_its_first_record() -> None:
    """(*): the file is not flushed on becoming leader, but with the segment in which an epoch starts."""
    world = two_brokers()
    world.produce(B, 3)
    syncs = [effect for effect in world.nodes[B].storage.flushing.flush(world.now) if isinstance(effect, Sync)]
    (sync,) = [effect for effect in syncs if any(path.endswith("00.log") for path in effect.paths)]
    assert any(path.endswith("leader-epoch-checkpoint") for path in sync.paths)
    assert epochs_on_disk(world, B) == epochs(world, B) != []
    assert world.nodes[B].host.partitions.named("t", 0).log.recovery_point == 0  # type: ignore[union-attr]


@pytest.mark.parametrize("lost", ["all", "the last entry"])
def test_the_footnote_a_hard_crash_rebuilds_what_is_missing_from_the_batches(lost: str) -> None:
    world = two_brokers()
    world.produce(B, 3)
    world.run(1_000)
    elect(world, B, B, A)
    world.produce(B, 2)
    world.run(1_000)
    world.kill(B)
    path = "/data1/t-0/leader-epoch-checkpoint"
    if lost == "all":
        world.disks[B].remove(path)
    else:
        world.disks[B].write_file(path, b"0\n1\n0 0\n")
    restart(world, B)
    assert epochs(world, B) == [(0, 0), (1, 3)]


def test_t34_an_epoch_whose_entry_a_power_loss_took_is_never_led_again() -> None:
    """Nothing was written in it, and the registration that follows begins a higher one, so nobody can have been told of
    an epoch that the log later denies."""
    cluster = Cluster(brokers=2, elr=False)
    cluster.create("t", (1, 2))
    cluster.alter("t", (1,))
    was = cluster.partition("t").leader_epoch
    cluster.disconnect(cluster.connection(1))
    cluster.fence(1)
    cluster.join(1)
    assert (cluster.partition("t").leader, cluster.partition("t").leader_epoch > was) == (1, True)


# --- steps 4.1 to 4.7: the follower


def test_a_follower_resets_its_last_epoch_to_the_leaders_end_and_the_file_says_so() -> None:
    world = two_brokers()
    world.produce(B, 2)
    world.run(1_000)
    world.cut = {B}
    world.change(leader=B, skip=(A,))  # an epoch that only B ever leads in
    world.produce(B, 4, acks=1)
    world.change(leader=A, isr=(A,), skip=(B,))
    world.produce(A, 1)
    assert epochs_on_disk(world, B) == [(0, 0), (1, 2)]
    world.cut = set()
    world.catch_up(B)
    world.run(3_000)
    assert epochs_on_disk(world, B) == epochs_on_disk(world, A) == [(0, 0), (2, 2)]
    assert content(world, A) == content(world, B)


def test_a_follower_that_sees_a_larger_epoch_in_a_message_set_adds_it_to_its_file_before_it_appends_the_set() -> None:
    world = two_brokers()
    world.produce(B, 2)
    world.run(1_000)
    elect(world, B, B, A)
    assert epochs_on_disk(world, A) == [(0, 0)]
    log, order = log_of(world, A), []
    write, save = log.write, log.epoch_file.save
    log.write = lambda *args: (order.append("records"), write(*args))[1]  # type: ignore[method-assign]
    log.epoch_file.save = lambda: (order.append("epoch"), save())[1]  # type: ignore[method-assign]
    world.produce(B)
    world.run(1_000)
    assert order == ["epoch", "records"]
    assert epochs_on_disk(world, A) == [(0, 0), (1, 2)]


# --- OffsetForLeaderEpoch


LINEAGE = [(0, 0), (2, 3), (5, 7)]
ENDS = [
    ("its own epoch ends at the log's end", 5, (5, 9)),
    ("an epoch ends where the next begins", 2, (2, 7)),
    ("the first epoch", 0, (0, 3)),
    ("an epoch that is not in the log: the largest below it, and where that ends (KIP-279)", 1, (0, 3)),
    ("another one", 4, (2, 7)),
    ("an epoch beyond all", 6, (-1, -1)),
    ("no epoch", -1, (-1, -1)),
]


@pytest.mark.parametrize(("title", "epoch", "found"), ENDS, ids=[row[0] for row in ENDS])
def test_the_offset_that_is_returned_is_where_the_requested_epoch_ends(
    title: str, epoch: int, found: tuple[int, int]
) -> None:
    world = two_brokers()
    world.produce(B, 3)
    world.change(leader=B)  # epoch 1, without a record
    world.change(leader=B)
    world.produce(B, 4)
    for _ in range(3):
        world.change(leader=B)
    world.produce(B, 2)
    assert epochs(world, B) == LINEAGE
    assert end_of_epoch(world, B, epoch) == (ErrorCode.NONE, *found)


def test_only_partitions_whose_leader_is_asked_are_answered() -> None:
    world = two_brokers()
    assert end_of_epoch(world, A, 0)[0] == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("current", "error"), [(0, ErrorCode.FENCED_LEADER_EPOCH), (1, ErrorCode.NONE), (2, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_a_request_in_another_leader_epoch_is_rejected(current: int, error: ErrorCode) -> None:
    """KIP-320."""
    world = two_brokers()
    world.produce(B)
    world.run(1_000)
    elect(world, A, A, B)
    assert end_of_epoch(world, A, 0, current)[0] == error


# --- additional concerns


def test_a_leader_that_returns_without_an_election_leads_in_a_new_epoch() -> None:
    """All replicas crashed, and the first to come back is who led before: its registration alone begins the epoch."""
    cluster = Cluster(brokers=1, elr=False)
    cluster.create("t", (1,))
    before = cluster.partition("t")
    cluster.fence(1)
    cluster.join(1)
    after = cluster.partition("t")
    assert (before.leader, after.leader, after.isr) == (1, 1, (1,))
    assert after.leader_epoch > before.leader_epoch


def test_entries_of_deleted_segments_are_removed_from_the_file() -> None:
    world = two_brokers()
    world.commit()
    world.produce(B, 3)
    elect(world, B, B, A)
    world.produce(B, 3)
    world.run(1_000)
    log = log_of(world, B)
    log.advance_log_start(4)
    assert epochs_on_disk(world, B) == [(1, 4)]
    assert end_of_epoch(world, B, 1)[1:] == (1, 6)


def test_entries_of_segments_that_retention_deletes_are_removed_from_the_file() -> None:
    disk = SimDisk()
    log = open_log(disk, small(segment_bytes=200, retention_ms=1000))
    fill(log, 6, epoch=0)
    fill(log, 6, epoch=1)
    assert log.epochs.entries == [EpochStart(0, 0), EpochStart(1, 12)]
    assert log.delete_old_segments(Instant(NOW + 5000), 24) > 3
    assert log.log_start_offset > 12
    kept = [EpochStart(1, log.log_start_offset)]
    assert log.epochs.entries == kept
    assert parse_epochs(disk.read_file(f"{ROOT}/{EPOCHS_FILE}") or b"") == kept


def test_after_an_unclean_shutdown_entries_beyond_the_log_are_removed() -> None:
    """As in Kafka also one that begins just at the end: no batch proves it."""
    world = three_epochs()
    assert epochs_on_disk(world, B) == [(0, 0), (1, 3), (2, 6), (3, 9)]
    lose_power(world, B, keep=3)
    world.cut = {B}
    elect(world, A, A)
    world.start(B, clean=False)
    assert log_of(world, B).log_end_offset == 3
    assert epochs(world, B) == [(0, 0)]
    world.cut = set()
    world.run(3_000)
    assert content(world, B) == content(world, A)


def test_epochs_that_neither_leader_wrote_in_leave_no_trace_and_no_confusion() -> None:
    """T37: several elections in a row, none of which anybody wrote in."""
    world = two_brokers()
    world.produce(B, 2)
    world.run(1_000)
    for leader in (A, B, A, B):
        elect(world, leader, A, B)
        world.run(200)
    world.produce(B, batch=a_batch(2))
    world.run(1_000)
    assert content(world, A) == content(world, B)
    assert epochs(world, B)[-1] == (4, 2)


def test_an_epoch_of_which_the_leader_knows_nothing_has_no_end() -> None:
    """The error code of the KIP is, in later versions, an epoch and an offset of -1."""
    world = two_brokers()
    world.produce(B, 2)
    assert end_of_epoch(world, B, 7) == (0, -1, -1)


def test_where_a_leader_knows_no_epoch_up_to_the_asked_one_the_follower_begins_anew_and_not_at_its_high_watermark() -> (
    None
):
    """For messages of before epochs the KIP falls back on the high watermark. There are none here: every batch has one,
    so that a follower with epochs that its leader never heard of has nothing in common with it."""
    world = two_brokers()
    world.produce(B, 3)
    world.run(1_000)
    elect(world, B, B)
    world.cut = {A}
    for _ in range(2):
        elect(world, B, B)
    world.kill(B)
    lost = world.disks[B]
    for path in [path for path in lost.files if "/t-0/" in path]:
        del lost.files[path]
    world.start(B, clean=False)
    elect(world, A, A, unclean=True)
    world.produce(A, 2, acks=1)
    elect(world, B, B, unclean=True)
    world.produce(B, 1, acks=1)
    world.cut = set()
    world.run(3_000)
    assert content(world, A) == content(world, B)
