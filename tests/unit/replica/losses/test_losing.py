"""What brokers note of losses, and when: durable before it is done, and not at all where it cannot be noted."""

from typing import Any

import pytest
from tests.unit.replica.conftest import AT, World
from tests.unit.replica.storage.test_directories import HOME, Jbod

from strandline.base.effects import Save
from strandline.base.ids import NOBODY, NodeId, TopicIdPartition, TopicPartition
from strandline.base.ports import DiskError
from strandline.log.checkpoints import format_offsets
from strandline.metadata import records as r
from strandline.metadata.losses import AT_MOST, EXACTLY, NO_END, UNKNOWN
from strandline.metadata.registrations import RECOVERED, RECOVERING
from strandline.replica.hosting.follower import Cut, Follower
from strandline.replica.hosting.leader import Leader
from strandline.replica.hosting.ledger import FILE, Ledger
from strandline.replica.hosting.rows import HIGH_WATERMARKS
from strandline.replica.tokens import CheckpointSaved
from strandline.wire.batch import build

NAME = TopicPartition("t", 0)


@pytest.fixture
def world() -> World:
    """t-0 with 5 records on brokers 1, 2 and 3, of which broker 1 leads; committed, and known to be on all."""
    made = World()
    made.create()
    made.run(1_000)
    for _ in range(5):
        made.produce(1)
    made.run(6_000)
    return made


def noted(world: World, node: int) -> list[tuple[int, int, int]]:
    return [
        (lost.event.start, lost.event.end, lost.event.certainty) for lost in world.nodes[NodeId(node)].host.ledger.all()
    ]


def written(world: World, node: int, root: str | None = None) -> list[tuple[int, int, int]]:
    """What is in the file."""
    ledger = Ledger(world.disks[NodeId(node)])
    ledger.load(root or f"/data{node}")
    return [(lost.event.start, lost.event.end, lost.event.certainty) for lost in ledger.all()]


def led_uncleanly_by(world: World, node: int, **fields: Any) -> None:
    world.change(leader=node, isr=(node,), leader_recovery_state=RECOVERING, **fields)


def lose_tail(world: World, node: int, end: int) -> None:
    """The process dies, and its log ends at `end` afterwards."""
    hosted = world.nodes[NodeId(node)].host.partitions.find(AT)
    assert hosted is not None
    world.kill(NodeId(node))
    hosted.log.truncate_to(end)


# --- followers


def cut_of_committed(world: World) -> None:
    """Broker 2 loses its tail, and leads all the same: broker 3 follows it."""
    world.cut = {NodeId(1), NodeId(2), NodeId(3)}
    lose_tail(world, 2, 2)
    checkpointed(world, 2, 2)
    world.start(NodeId(2), clean=True)
    led_uncleanly_by(world, 2)
    world.produce(2, 2, acks=1)
    world.cut = {NodeId(1)}
    world.run(2_000)


def test_a_follower_that_cuts_what_was_committed_notes_it_with_epochs_and_cause(world: World) -> None:
    cut_of_committed(world)
    assert noted(world, 3) == written(world, 3) == [(2, 5, EXACTLY)]
    (lost,) = world.nodes[NodeId(3)].host.ledger.all()
    assert (lost.at, lost.topic) == (AT, "t")
    event = lost.event
    assert (event.replica, event.old_epoch, event.new_epoch) == (3, 0, 1)
    assert START_OF_TIME < event.time_ms <= world.now
    assert event.cause == "it followed broker 2, and the leader's log differs"
    assert any("offsets 2 to 4 were committed here and are cut" in text for text in world.reports)


START_OF_TIME = 1_600_000_000_000


def test_a_cut_of_what_was_not_committed_is_not_noted(world: World) -> None:
    world.cut = {NodeId(1)}
    world.produce(1, 3, acks=1)
    world.change(leader=2, isr=(2, 3), skip=(1,))
    world.produce(2, 1)
    world.run(2_000)
    world.cut = set()
    world.catch_up(NodeId(1))
    world.run(3_000)
    assert world.ends() == [6, 6, 6]
    assert [noted(world, node) for node in (1, 2, 3)] == [[], [], []]
    assert not any(disk.exists(f"/data{node}/{FILE}") for node, disk in world.disks.items())


class Refusing(Ledger):
    def write(self, directory: str, lost: Any) -> Any:
        if list(lost):
            raise DiskError("the ledger cannot be written")
        return []


def diverged(jbod: Jbod, ledger: Any = None) -> None:
    """Broker 2 leads with an empty log, and broker 3, which has 5 committed records, hears of it."""
    jbod.create_in(*HOME)
    jbod.run(1_000)
    jbod.produce(1, 5)
    jbod.run(6_000)
    hosted = jbod.nodes[NodeId(2)].host.partitions.find(AT)
    assert hosted is not None
    jbod.cut = {NodeId(1), NodeId(2), NodeId(3)}
    jbod.change(leader=NOBODY)
    hosted.log.truncate_to(0)
    assert hosted.role is not None
    hosted.role.high_watermark = 0
    jbod.change(leader=2, isr=(2,))
    jbod.produce(2, 1, acks=1)
    if ledger is not None:
        jbod.nodes[NodeId(3)].host.ledger = ledger
    jbod.cut = {NodeId(1)}
    jbod.run(2_000)


def test_where_the_ledger_cannot_be_written_nothing_is_cut_and_the_directory_has_failed() -> None:
    jbod = Jbod()
    diverged(jbod, Refusing(jbod.disks[NodeId(3)]))
    replicas = jbod.nodes[NodeId(3)]
    assert replicas.host.partitions.find(AT) is None
    assert [log_dir.path for log_dir in replicas.host.directories.live] == ["/d1"]
    jbod.kill(NodeId(3))
    jbod.start(NodeId(3), clean=False)
    again = jbod.nodes[NodeId(3)].host.partitions.find(AT)
    assert again is not None
    jbod.run(2_000)
    assert written(jbod, 3, "/d0") == [(0, 5, EXACTLY)], "the cut came after it had been noted"


def test_the_event_lies_in_the_directory_of_the_log() -> None:
    jbod = Jbod()
    diverged(jbod)
    assert written(jbod, 3, "/d0") == [(0, 5, EXACTLY)]
    assert written(jbod, 3, "/d1") == []


def test_the_saved_high_watermark_comes_down_with_the_log(world: World) -> None:
    """Or a process that dies now would find the loss a second time."""
    cut_of_committed(world)
    hosted = world.nodes[NodeId(3)].host.partitions.find(AT)
    assert hosted is not None
    world.kill(NodeId(3))
    world.start(NodeId(3), clean=False)
    assert noted(world, 3) == [(2, 5, EXACTLY)]


def test_a_save_that_was_on_its_way_does_not_bring_the_high_watermark_back(world: World) -> None:
    disk = world.disks[NodeId(3)]
    path = f"/data3/{HIGH_WATERMARKS}"
    on_its_way = [
        Save(
            path,
            format_offsets({NAME: 5}),
            CheckpointSaved(world.nodes[NodeId(3)].host.directories.live[0]),
            disk.saves(path),
        )
    ]
    cut_of_committed(world)
    assert disk.read_file(path) == format_offsets({NAME: 2})
    world.perform(NodeId(3), on_its_way)
    assert disk.read_file(path) == format_offsets({NAME: 2})


def test_many_followers_that_cut_at_once_wait_for_the_disk_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [TopicIdPartition(AT.topic_id, n) for n in range(1, 6)]
    for at in others:
        world.commit(
            r.PartitionRecord(
                partition_id=at.partition,
                topic_id=at.topic_id,
                replicas=(1, 2),
                isr=(1, 2),
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
                directories=(bytes([1]) * 16, bytes([2]) * 16),
            )
        )
    world.cut = {NodeId(1)}
    for at in others:
        hosted = world.nodes[NodeId(2)].host.partitions.find(at)
        assert hosted is not None
        role = hosted.role
        assert type(role) is Follower
        role.log.append_as_follower(bytes_of(3), 0, world.now)
        role.high_watermark = 3
    saves: list[str] = []
    disk = world.disks[NodeId(2)]
    save = disk.save

    def counted(path: str, content: bytes) -> None:
        saves.append(path)
        save(path, content)

    monkeypatch.setattr(disk, "save", counted)
    for at in others:
        world.commit(r.PartitionChangeRecord(partition_id=at.partition, topic_id=at.topic_id, leader=1))
    world.cut = set()
    world.run(2_000)
    assert noted(world, 2) == [(0, 3, EXACTLY)] * 5
    assert saves.count(f"/data2/{FILE}") == 1


def bytes_of(values: int) -> memoryview:
    return memoryview(bytearray(build([(0, None, b"v", ())] * values, base_offset=0, leader_epoch=0)))


# --- opening


def checkpointed(world: World, node: int, high_watermark: int) -> None:
    world.disks[NodeId(node)].write_file(f"/data{node}/{HIGH_WATERMARKS}", format_offsets({NAME: high_watermark}))


@pytest.mark.parametrize("clean", [True, False])
def test_a_log_that_ends_below_its_checkpointed_high_watermark_has_lost_the_rest(world: World, clean: bool) -> None:
    lose_tail(world, 3, 2)
    checkpointed(world, 3, 4)
    world.start(NodeId(3), clean=clean)
    assert noted(world, 3) == written(world, 3) == [(2, 4, EXACTLY)]
    (lost,) = world.nodes[NodeId(3)].host.ledger.all()
    stop = "a clean stop" if clean else "an unclean stop"
    assert lost.event.cause == f"after {stop} the log ended below its high watermark"
    assert (lost.event.replica, lost.event.old_epoch) == (3, 0)
    assert any("t-0: offsets 2 to 3 are lost here" in text for text in world.reports)


def test_a_log_that_has_all_up_to_its_checkpoint_has_lost_nothing_that_is_known(world: World) -> None:
    lose_tail(world, 3, 4)
    checkpointed(world, 3, 4)
    world.start(NodeId(3), clean=False)
    assert noted(world, 3) == []


def test_a_process_that_dies_again_before_its_checkpoint_is_saved_notes_it_once(world: World) -> None:
    lose_tail(world, 3, 2)
    checkpointed(world, 3, 4)
    world.cut = {NodeId(3)}
    for _ in range(3):
        world.start(NodeId(3), clean=False)
        world.kill(NodeId(3))
    world.start(NodeId(3), clean=False)
    assert noted(world, 3) == [(2, 4, EXACTLY)]


def test_one_that_has_led_meanwhile_notes_it_once_too(world: World) -> None:
    """It wrote less than was lost, so that its log ends below the old checkpoint again."""
    world.change(leader=3, isr=(3,))
    lose_tail(world, 3, 2)
    checkpointed(world, 3, 4)
    world.cut = {NodeId(1), NodeId(2), NodeId(3)}
    world.start(NodeId(3), clean=False)
    world.produce(3, 1, acks=1)
    world.kill(NodeId(3))
    world.start(NodeId(3), clean=False)
    assert [row for row in noted(world, 3) if row[2] == EXACTLY] == [(2, 4, EXACTLY)]


def test_a_log_that_is_not_there_any_more_may_have_had_all_up_to_its_checkpoint(world: World) -> None:
    world.kill(NodeId(3))
    checkpointed(world, 3, 4)
    world.disks[NodeId(3)].remove_tree("/data3/t-0")
    world.start(NodeId(3), clean=False)
    assert noted(world, 3) == written(world, 3) == [(0, 4, AT_MOST)]


def test_a_partition_that_is_new_to_the_broker_lost_nothing_by_a_leftover_row() -> None:
    world = World()
    world.kill(NodeId(3))
    checkpointed(world, 3, 4)
    world.start(NodeId(3))
    world.create()
    assert noted(world, 3) == []


# --- leading


def test_an_unclean_leader_that_was_led_last_may_have_lost_what_lies_beyond_its_log(world: World) -> None:
    world.change(leader=NOBODY, isr=())
    led_uncleanly_by(world, 2)
    assert type(role_of(world, 2)) is Leader
    assert noted(world, 2) == written(world, 2) == [(5, NO_END, AT_MOST)]
    (lost,) = world.nodes[NodeId(2)].host.ledger.all()
    assert (lost.event.replica, lost.event.old_epoch, lost.event.new_epoch) == (2, 1, 2)
    assert lost.event.cause == "it was elected to lead without being in sync or eligible"
    assert [noted(world, node) for node in (1, 3)] == [[], []]
    assert any("offsets from 5 on may be lost" in text for text in world.reports)


def role_of(world: World, node: int) -> Any:
    hosted = world.nodes[NodeId(node)].host.partitions.find(AT)
    assert hosted is not None
    return hosted.role


def test_one_whose_log_is_older_may_have_lost_what_lies_beyond_its_high_watermark(world: World) -> None:
    """Another led and wrote since: what this one has above its high watermark may be in the place of that."""
    world.cut = {NodeId(3)}
    world.change(leader=2, isr=(1, 2))
    world.produce(2, 2)
    world.change(leader=NOBODY, isr=())
    role_of(world, 3).high_watermark = 3
    led_uncleanly_by(world, 3)
    assert noted(world, 3) == [(3, NO_END, AT_MOST)]


def test_one_that_has_not_seen_the_partition_without_a_leader_counts_as_older(world: World) -> None:
    """Who led in the epoch before may have committed in the place of what this one has."""
    role_of(world, 3).high_watermark = 3
    world.change(leader=NOBODY, isr=(), skip=(3,))
    led_uncleanly_by(world, 3)
    assert noted(world, 3) == [(3, NO_END, AT_MOST)]


def test_it_is_noted_before_it_leads_and_where_that_cannot_be_it_does_not_lead() -> None:
    jbod = Jbod()
    jbod.create_in(*HOME)
    jbod.produce(1, 3)
    jbod.run(1_000)
    jbod.change(leader=NOBODY, isr=())
    jbod.nodes[NodeId(2)].host.ledger = Refusing(jbod.disks[NodeId(2)])
    jbod.change(leader=2, isr=(2,), leader_recovery_state=RECOVERING)
    assert jbod.nodes[NodeId(2)].host.partitions.find(AT) is None


def test_a_clean_leader_notes_nothing(world: World) -> None:
    world.change(leader=2, isr=(2, 3))
    world.change(leader=NOBODY, isr=())
    world.change(leader=3, isr=(3,), leader_recovery_state=RECOVERED)
    assert [noted(world, node) for node in (1, 2, 3)] == [[], [], []]


def test_a_leader_that_goes_on_in_a_new_epoch_has_recorded_it_already(world: World) -> None:
    world.change(leader=NOBODY, isr=())
    led_uncleanly_by(world, 2)
    world.change(leader=2)
    assert len(noted(world, 2)) == 1


def test_an_unclean_leader_that_returns_after_a_clean_stop_records_nothing_more(world: World) -> None:
    """Nobody else is in sync yet, or ever will be: the partition is still marked as recovering."""
    world.change(leader=NOBODY, isr=())
    led_uncleanly_by(world, 2, losses=(r.LossEvent(start=5, certainty=AT_MOST, old_epoch=1, new_epoch=2),))
    world.change(leader=NOBODY, isr=(), eligible_leader_replicas=(2,))
    world.change(leader=2, isr=(2,), eligible_leader_replicas=())
    assert type(role_of(world, 2)) is Leader
    assert noted(world, 2) == [(5, NO_END, AT_MOST)]


def test_many_leaders_that_begin_at_once_wait_for_the_disk_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [TopicIdPartition(AT.topic_id, n) for n in range(1, 6)]
    fields = {"replicas": (1, 2), "isr": (1, 2), "leader": 1, "leader_epoch": 0, "partition_epoch": 0}
    where = (bytes([1]) * 16, bytes([2]) * 16)
    for at in others:
        world.commit(
            r.PartitionRecord(partition_id=at.partition, topic_id=at.topic_id, directories=where, **fields)  # type: ignore[arg-type]
        )
    saves: list[str] = []
    disk = world.disks[NodeId(2)]
    save = disk.save

    def counted(path: str, content: bytes) -> None:
        saves.append(path)
        save(path, content)

    monkeypatch.setattr(disk, "save", counted)
    world.commit(
        *[
            r.PartitionChangeRecord(
                partition_id=at.partition, topic_id=at.topic_id, leader=2, isr=(2,), leader_recovery_state=RECOVERING
            )
            for at in others
        ]
    )
    assert noted(world, 2) == [(0, NO_END, AT_MOST)] * 5
    assert saves == [f"/data2/{FILE}"]


def test_the_only_one_in_sync_that_leads_on_after_an_unclean_stop_may_have_lost_its_tail(world: World) -> None:
    """Without Eligible Leader Replicas the last member stays in the ISR, and is elected as if nothing had been."""
    world.change(leader=2, isr=(2,))
    world.kill(NodeId(2))
    world.change(leader=NOBODY)
    world.start(NodeId(2), clean=False)
    world.change(leader=2)
    assert noted(world, 2) == [(5, NO_END, UNKNOWN)]


@pytest.mark.parametrize("what", ["after a clean stop", "having copied from a leader"])
def test_one_that_can_have_lost_nothing_notes_nothing(world: World, what: str) -> None:
    is_clean = what == "after a clean stop"
    if is_clean:
        world.change(leader=2, isr=(2,))
    world.kill(NodeId(2))
    if is_clean:
        world.change(leader=NOBODY)
    world.start(NodeId(2), clean=is_clean)
    world.run(1_000)
    world.change(leader=2)
    assert noted(world, 2) == []


def test_nothing_of_it_is_an_effect_that_a_crash_could_overtake(world: World) -> None:
    world.change(leader=NOBODY, isr=())
    world.sent_by.clear()
    led_uncleanly_by(world, 2)
    paths = [effect.path for _, effect in world.sent_by if isinstance(effect, Save)]
    assert not any(path.endswith(FILE) for path in paths)


def test_a_cut_of_a_single_committed_record_is_noted_too(world: World) -> None:
    hosted = world.nodes[NodeId(2)].host.partitions.find(AT)
    assert hosted is not None
    follower = hosted.role
    assert isinstance(follower, Follower)
    assert follower.high_watermark == 5
    follower.perform(Cut(4, False, "this is a test"), world.now)
    assert noted(world, 2) == written(world, 2) == [(4, 5, EXACTLY)]


def test_a_log_that_begins_anew_one_record_too_early_notes_that_one(world: World) -> None:
    hosted = world.nodes[NodeId(2)].host.partitions.find(AT)
    assert hosted is not None
    follower = hosted.role
    assert isinstance(follower, Follower)
    follower.perform(Cut(4, True, "this is a test"), world.now)
    assert noted(world, 2) == [(4, 5, AT_MOST)]
