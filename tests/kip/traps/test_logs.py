"""Traps T31–T39 and T43: epochs, cuts, and what lies on disk. Each test is named by its trap."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.kip.traps.scene import NOW, Leading, a_batch, following, partition
from tests.rows import each
from tests.sim.play import Play
from tests.unit.log.logs import ROOT, append, content, fill, open_log, produced, small
from tests.unit.replica.conftest import AT, CALLER, World
from tests.unit.replica.noted import Noted

from strandline.base.effects import Send, Sync, Synced
from strandline.base.errors import ErrorCode
from strandline.base.ids import LeaderEpoch, NodeId, Uuid
from strandline.base.ports import DiskError
from strandline.log.epochs import Epochs, EpochStart
from strandline.log.files.epoch_file import EPOCHS_FILE
from strandline.log.reading import Read
from strandline.metadata import records as r
from strandline.metadata.losses import AT_MOST, EXACTLY
from strandline.replica.hosting.follower import Follower, Next, Position, Served
from strandline.server.storage.disk import RealDisk
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import batches
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic

E = ErrorCode


# --- what a follower takes of an answer


def led_anew(follower: Follower, epoch: int) -> Follower:
    """Another leader, while an answer of the one before is under way: a new role over the same log."""
    of_another = partition((1, 2), leader=2, epoch=epoch)
    return Follower("t-0", follower.log, of_another, follower.high_watermark, follower.notes)


LATE = [
    ("a divergence", Served(E.NONE, 8, 0, diverging_epoch=0, diverging_end=2)),
    ("that the offset is out of range", Served(E.OFFSET_OUT_OF_RANGE, log_start_offset=3)),
    ("records", Served(E.NONE, 9, 0, records=a_batch(1, 8, 5))),
]


@pytest.mark.parametrize(("what", "answer"), LATE, ids=[row[0] for row in LATE])
def test_t31_what_a_leader_of_before_answers_is_dropped(what: str, answer: Served) -> None:
    follower = following(records=8, high_watermark=8, epoch=5)
    asked = follower.position()
    follower = led_anew(follower, 6)
    assert follower.served(asked, answer, NOW) is Next.STALE
    assert (follower.high_watermark, follower.log.log_end_offset) == (8, 8)
    assert follower.take_losses() == []


def test_t31_an_answer_to_another_offset_is_dropped() -> None:
    follower = following(records=8, high_watermark=4, epoch=5)
    asked = follower.position()
    follower.log.append_as_follower(a_batch(1, 8, 5), LeaderEpoch(5), NOW)
    answer = Served(E.NONE, 8, 0, diverging_epoch=0, diverging_end=5)
    assert follower.served(asked, answer, NOW) is Next.STALE
    assert follower.log.log_end_offset == 9


def test_t32_batches_of_a_later_epoch_than_asked_in_are_left_out() -> None:
    follower = following(records=2, high_watermark=2, epoch=5)
    records = bytes(a_batch(1, 2, 5)) + bytes(a_batch(1, 3, 6)) + bytes(a_batch(1, 4, 6))
    assert follower.served(follower.position(), Served(E.NONE, 5, 0, records=records), NOW) is Next.GO_ON
    assert follower.log.log_end_offset == 3
    assert follower.log.latest_epoch == 5, "its epochs do not lie about who wrote what"
    follower = led_anew(follower, 6)
    answer = Served(E.NONE, 5, 0, records=bytes(a_batch(1, 3, 6)) + bytes(a_batch(1, 4, 6)))
    follower.served(follower.position(), answer, NOW)
    assert (follower.log.log_end_offset, follower.log.latest_epoch) == (5, 6)


# --- the epochs of a log


def test_t33_an_epoch_that_began_at_the_end_goes_with_a_cut_that_takes_no_record() -> None:
    log = open_log(SimDisk())
    fill(log, 2, epoch=1)
    log.assign_epoch(LeaderEpoch(7), log.log_end_offset)
    assert log.latest_epoch == 7
    log.truncate_to(log.log_end_offset)
    assert log.latest_epoch == 1
    assert log.end_offset_for_epoch(LeaderEpoch(7)) == (-1, -1), "it is not asked about, for it never was"


def test_t33_and_with_a_cut_beyond_the_end() -> None:
    epochs = Epochs([EpochStart(1, 0), EpochStart(7, 20)])
    assert epochs.cut_end(20)
    assert epochs.entries == [EpochStart(1, 0)]


@each("seed", range(20))
def test_t34_after_a_power_loss_the_epochs_are_those_of_the_batches_that_are_left(seed: int) -> None:
    """Nothing is flushed when an epoch begins. What may be believed without reading batches, because it lies below the
    recovery point, has its epochs on the disk; the rest is read."""
    rng = Random(seed)
    disk = SimDisk()
    log = open_log(disk, small(segment_bytes=300))
    recovery_point = 0
    for epoch in range(1, 8):
        log.assign_epoch(LeaderEpoch(epoch), log.log_end_offset)
        for _ in range(rng.randrange(4)):
            append(log, produced(rng.randrange(1, 3)), epoch)
        if rng.randrange(2):
            end = log.log_end_offset
            disk.sync(log.unsynced())
            log.mark_synced(end)
            recovery_point = log.recovery_point
    disk.crash(rng)
    again = open_log(disk, small(segment_bytes=300), clean=False, recovery_point=recovery_point)
    assert again.log_end_offset >= recovery_point
    for header in batches(content(again)):
        assert again.epoch_at(header.base_offset) == header.partition_leader_epoch
    assert all(entry.start_offset <= again.log_end_offset for entry in again.epochs.entries)


def test_t34_an_epoch_is_flushed_before_records_of_it_are_called_recovered() -> None:
    log = open_log(SimDisk())
    log.assign_epoch(LeaderEpoch(1), 0)
    append(log, produced(2), 1)
    assert f"{ROOT}/{EPOCHS_FILE}" in log.unsynced()
    assert log.recovery_point == 0
    log.mark_synced(2)
    assert f"{ROOT}/{EPOCHS_FILE}" not in log.unsynced()
    log.assign_epoch(LeaderEpoch(2), 2)
    assert f"{ROOT}/{EPOCHS_FILE}" in log.unsynced()


def fetches_of(world: World, node: int) -> list[FetchPartition]:
    found = []
    for sender, effect in world.sent_by:
        if sender == node and isinstance(effect, Send) and isinstance(effect.message, FetchRequest):
            found += [row for topic in effect.message.topics for row in topic.partitions]
    return found


def test_t35_a_follower_always_says_the_last_epoch_of_its_log() -> None:
    """Also after answers without records, in a new session, and after a restart of either side."""
    world = World()
    world.create()
    world.run(1_000)
    world.produce(1, 3)
    world.run(5_000)  # answers are empty now
    world.sent_by.clear()
    world.kill(NodeId(1))
    world.start(NodeId(1))
    world.change(leader=1)
    world.run(3_000)
    world.kill(NodeId(3))
    world.start(NodeId(3))
    world.run(3_000)
    for node in (2, 3):
        asked = fetches_of(world, node)
        assert asked
        assert all(row.fetch_offset == 3 and row.last_fetched_epoch == 0 for row in asked), asked


def test_t35_an_answer_without_records_leaves_the_position_as_it_is() -> None:
    follower = following(records=3, high_watermark=3, epoch=5)
    before = follower.position()
    assert before == Position(5, 3, 0, 0)
    follower.served(before, Served(E.NONE, 3, 0), NOW)
    assert follower.position() == before


def test_t36_a_follower_must_have_what_the_leader_had_when_it_began_to_lead() -> None:
    """The new leader's high watermark is an old one: between it and the epoch's start lie committed records."""
    leading = Leading(1, 3, records=10, high_watermark=4)
    leading.fetch(2, 6)
    assert leading.leader.propose_expansion(NodeId(2), leading.now) is None
    leading.fetch(2, 9)
    assert leading.leader.propose_expansion(NodeId(2), leading.now) is None
    leading.fetch(2, 10)
    assert leading.leader.propose_expansion(NodeId(2), leading.now) is not None


def test_t36_a_new_leader_commits_what_followers_have_and_a_coordinator_reads_all() -> None:
    world = World()
    world.create(replicas=(1, 2))
    world.run(1_000)
    world.produce(1, 3)
    world.cut = {NodeId(1)}  # 2 has the records, and was not told that they are committed
    world.change(leader=2, isr=(2, 1), skip=(1,))
    assert world.row(2)[2:4] == (0, 3)
    assert len(world.consume(2, 0)().records) == 0
    read = world.nodes[NodeId(2)].read_internal("t", 0, 0, 1 << 20)
    assert isinstance(read, Read) and read.size > 0, "what was acknowledged may lie above the old high watermark"


# KIP-279: asked epoch -> the largest epoch up to it that the log has, and where that ends.
ENDS = [
    (-1, (-1, -1)),
    (0, (0, 5)),  # before all of ours: it ended where ours begin
    (1, (1, 8)),
    (2, (1, 8)),  # a leader of which nothing is left here
    (3, (3, 8 + 4)),
    (4, (3, 12)),
    (7, (7, 20)),  # the latest: the log's end
    (8, (-1, -1)),  # later than all that this log knows
]


@pytest.mark.parametrize(("epoch", "expected"), ENDS)
def test_t37_the_end_of_an_epoch_is_that_of_the_largest_not_after_it(epoch: int, expected: tuple[int, int]) -> None:
    epochs = Epochs([EpochStart(1, 5), EpochStart(3, 8), EpochStart(7, 12)])
    assert epochs.end_offset_for(epoch, 20) == expected


def test_t37_a_last_epoch_that_the_leader_never_had_is_a_divergence_even_at_an_offset_that_it_has() -> None:
    world = World()
    world.create(replicas=(1, 2))
    world.run(1_000)
    world.produce(1, 6)
    world.run(1_000)
    world.change(leader=1)
    world.change(leader=1)
    world.produce(1, 1)
    row = FetchPartition(partition=0, fetch_offset=5, last_fetched_epoch=1, partition_max_bytes=1 << 20)
    answer = fetched(world, FetchRequest(session_epoch=-1, topics=(FetchTopic(topic="t", partitions=(row,)),)))
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 6)
    assert len(answer.records) == 0


def fetched(world: World, request: FetchRequest) -> Any:
    to = world.to()
    world.perform(NodeId(1), world.nodes[NodeId(1)].fetch(to, CALLER, request, world.now))
    return world.answers[to.correlation_id].responses[0].partitions[0]


def test_t37_after_two_leader_changes_without_records_the_divergence_is_found() -> None:
    """KAFKA-6361. Nothing tells of the leaderships in between but their number, and the follower has a longer log."""
    world = World()
    world.create()
    world.run(1_000)
    world.produce(1, 2)
    world.run(1_000)
    world.cut = {NodeId(1)}
    world.produce(1, 3, acks=1)
    world.change(leader=2, isr=(2, 3), skip=(1,))
    world.change(leader=3, isr=(2, 3), skip=(1,))
    world.change(leader=2, isr=(2, 3), skip=(1,))
    world.produce(2, 1)
    world.run(2_000)
    world.cut = set()
    world.catch_up(NodeId(1))
    world.run(3_000)
    assert world.ends() == [3, 3, 3]
    assert world.reports == [], "nothing of it was committed"


def test_t37_a_follower_that_lacks_the_named_epoch_goes_down_to_its_own_and_asks_again() -> None:
    follower = following(records=4, high_watermark=2, epoch=5)  # of epoch 0
    for base in range(4, 8):
        follower.log.append_as_follower(a_batch(1, base, 2), LeaderEpoch(5), NOW)
    answer = Served(E.NONE, 9, 0, diverging_epoch=1, diverging_end=7)
    assert follower.served(follower.position(), answer, NOW) is Next.GO_ON
    assert follower.position() == Position(5, 4, 0, 0)


DIVERGED_AT_2 = Served(E.NONE, 9, 0, diverging_epoch=0, diverging_end=2)
BEGINS_AT_3 = Served(E.OFFSET_OUT_OF_RANGE, log_start_offset=3)


def notes_of(follower: Follower) -> Noted:
    assert isinstance(follower.notes, Noted)
    return follower.notes


@pytest.mark.parametrize(
    ("answer", "expected", "noted"),
    [
        (DIVERGED_AT_2, "offsets 2 to 5 were committed here and are cut", (2, 6, EXACTLY)),
        (BEGINS_AT_3, "offsets 3 to 5 were committed here and are copied anew", (3, 6, AT_MOST)),
    ],
    ids=["cut", "copied anew"],
)
def test_t38_what_was_committed_is_counted_before_it_is_cut(
    answer: Served, expected: str, noted: tuple[int, int, int]
) -> None:
    follower = following(records=8, high_watermark=6)
    follower.served(follower.position(), answer, NOW)
    (text,) = follower.take_losses()
    assert expected in text
    assert notes_of(follower).ranges() == [noted]
    (event,) = notes_of(follower).events
    assert (event.old_epoch, event.new_epoch, event.time_ms) == (0, 5, NOW)


@pytest.mark.parametrize("answer", [DIVERGED_AT_2, BEGINS_AT_3], ids=["cut", "copied anew"])
def test_t38_where_the_loss_cannot_be_noted_nothing_is_cut(answer: Served) -> None:
    follower = following(records=8, high_watermark=6)
    notes_of(follower).refuses = True
    with pytest.raises(DiskError):
        follower.served(follower.position(), answer, NOW)
    assert (follower.log.log_end_offset, follower.high_watermark, follower.cuts) == (8, 6, 0)


def test_t38_a_cut_within_a_batch_takes_all_of_it_and_the_rest_comes_again() -> None:
    """Compaction and other codecs may have left the leader with other batches."""
    follower = following(records=4, high_watermark=9)
    follower.log.append_as_follower(a_batch(6, 4, 0), LeaderEpoch(5), NOW)
    follower.served(follower.position(), Served(E.NONE, 9, 0, diverging_epoch=0, diverging_end=7), NOW)
    assert follower.log.log_end_offset == follower.high_watermark == 4
    assert notes_of(follower).ranges() == [(4, 7, AT_MOST), (7, 9, EXACTLY)]


def test_t38_a_cut_above_the_high_watermark_loses_nothing() -> None:
    follower = following(records=8, high_watermark=6)
    follower.served(follower.position(), Served(E.NONE, 9, 0, diverging_epoch=0, diverging_end=6), NOW)
    assert (follower.log.log_end_offset, follower.take_losses()) == (6, [])
    assert notes_of(follower).events == []


def test_t38_a_log_that_its_leaders_has_left_behind_loses_nothing_by_that() -> None:
    """Retention took what lay between: it was deleted, and not lost."""
    follower = following(records=8, high_watermark=8)
    follower.served(follower.position(), Served(E.OFFSET_OUT_OF_RANGE, log_start_offset=20), NOW)
    assert (follower.log.log_end_offset, follower.high_watermark) == (20, 20)
    assert notes_of(follower).events == []


# --- files of topics that are gone


def recreated(world: World, old: Uuid) -> None:
    new = Uuid(bytes(reversed(old)))
    fields = {"replicas": (1,), "isr": (1,), "leader": 1, "leader_epoch": 0, "partition_epoch": 0}
    world.commit(
        r.RemoveTopicRecord(topic_id=old),
        r.TopicRecord(name="t", topic_id=new),
        r.PartitionRecord(partition_id=0, topic_id=new, **fields),
    )


@pytest.mark.parametrize("is_down", [False, True], ids=["while it runs", "while it is down"])
def test_t39_a_topic_that_is_created_anew_under_its_name_has_nothing_of_the_old_log(is_down: bool) -> None:
    world = World()
    world.create(replicas=(1,))
    world.produce(1, 5)
    if is_down:
        world.kill(NodeId(1))
    recreated(world, AT.topic_id)
    if is_down:
        world.start(NodeId(1))
    assert world.row(1)[2:4] == (0, 0)


def test_t39_a_log_that_is_deleted_while_it_is_flushed_disturbs_nobody() -> None:
    world = World()
    world.create(replicas=(1,))
    world.produce(1, 5)
    node = world.nodes[NodeId(1)]
    effects = node.storage.flushing.flush(world.now)
    flushes = [effect for effect in effects if isinstance(effect, Sync)]
    assert flushes
    recreated(world, AT.topic_id)
    world.produce(1, 2)
    for flush in flushes:
        world.disks[NodeId(1)].sync(flush.paths)
        world.perform(NodeId(1), node.step(Synced(flush.token), world.now))
    hosted = node.host.partitions.named("t", 0)
    assert hosted is not None
    assert hosted.log.recovery_point == 0, "the flush was of another log"


def test_t39_what_is_gone_needs_no_flush(tmp_path: Path) -> None:
    RealDisk().sync([str(tmp_path / "t-0" / "00000000000000000000.log")])
    SimDisk().sync(["/d/t-0/00000000000000000000.log"])


def test_t39_a_broker_that_has_not_caught_up_with_metadata_deletes_no_log() -> None:
    play = Play()
    victim = next(machine for machine in play.machines if machine is not play.world.controller())
    victim.kill()

    def logs() -> dict[str, bytes]:
        return {path: content for path, content in victim.disk.contents().items() if "/orders-0/" in path}

    before = logs()
    assert any(before.values())
    for machine in play.machines:
        if machine is not victim:
            play.world.network.cut(victim.name, machine.name)
    victim.start()
    play.run(4_000)
    assert {path for path in before if path.endswith(".log")} <= set(logs())
    play.end()


# --- the last stable offset


@pytest.mark.parametrize("isolation_level", [0, 1])
def test_t43_records_and_last_stable_offset_come_of_one_high_watermark(isolation_level: int) -> None:
    world = World()
    world.create()
    world.run(1_000)
    world.produce(1, 2)
    world.run(1_000)
    world.cut = {NodeId(2), NodeId(3)}
    world.produce(1, 3, acks=1)
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        isolation_level=isolation_level, session_epoch=-1, topics=(FetchTopic(topic="t", partitions=(asked,)),)
    )
    row = fetched(world, request)
    assert (row.high_watermark, row.last_stable_offset) == (2, 2)
    assert [header.next_offset for header in batches(row.records)] == [2]
