"""The brokers' cleaners: by time, in steps, beside everything else."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.log.compaction.compacting import keyed, pairs
from tests.unit.replica.conftest import AT
from tests.unit.replica.storage.test_directories import HOME, Jbod, directory

from strandline.base.effects import Save, Sync
from strandline.base.ids import NodeId, TopicPartition
from strandline.log.directory import future_name
from strandline.log.log import Appended, Log
from strandline.metadata import records as r
from strandline.metadata.configs.config_key import ConfigValue
from strandline.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, TOPIC_RESOURCE
from strandline.replica.storage.cleaning import Cleaner
from strandline.replica.tokens import LogFlushed
from strandline.wire.batch import build
from strandline.wire.control import EndTxnMarker

COMPACT = {"cleanup.policy": "compact", "internal.segment.bytes": "300"}
CHECKPOINT = "cleaner-offset-checkpoint"
OFTEN: dict[str, ConfigValue] = {"log.flush.offset.checkpoint.interval.ms": 3_000, "log.cleaner.backoff.ms": 2_000}
FLUSHED = 3_100  # all is durable by then
AT_NAME = TopicPartition("t", 0)
LOOK = 2_100  # and log.cleaner.backoff.ms is over


def configure(world: Jbod, kind: int = TOPIC_RESOURCE, resource: str = "t", **values: str) -> None:
    rows = [(key.replace("_", "."), value) for key, value in values.items()]
    world.commit(*(r.ConfigRecord(resource_type=kind, resource_name=resource, name=k, value=v) for k, v in rows))


@pytest.fixture
def world() -> Jbod:
    jbod = Jbod(static=OFTEN)
    jbod.create_in(*HOME)
    configure(jbod, **COMPACT)
    return jbod


def write(world: Jbod, count: int, first: int = 0, keys: int = 3) -> None:
    for number in range(first, first + count):
        answer = world.produce(1, batch=keyed((f"k{number % keys}", f"{number}"), timestamp=world.now))
        world.run(10)
        assert answer().error_code == 0


def log_of(world: Jbod, node: int) -> Log:
    hosted = world.nodes[NodeId(node)].host.partitions.find(AT)
    assert hosted is not None
    return hosted.log


def cleaner_of(world: Jbod, node: int) -> Cleaner:
    return world.nodes[NodeId(node)].cleaner


def stored(world: Jbod, node: int) -> list[tuple[int, str, str | None]]:
    return pairs(log_of(world, node))


def checkpoint(world: Jbod, node: int, root: str = "/d0") -> list[str]:
    content = world.disks[NodeId(node)].read_file(f"{root}/{CHECKPOINT}")
    return [] if content is None else content.decode().splitlines()[2:]


def test_every_replica_is_compacted_by_its_own_broker(world: Jbod) -> None:
    write(world, 30)
    world.run(FLUSHED + LOOK)
    for node in (1, 2, 3):
        log = log_of(world, node)
        assert log.cleaned_to == log.active.base_offset
        assert [o for o, _, _ in stored(world, node) if o < log.active.base_offset] == [
            log.active.base_offset - n for n in (3, 2, 1)
        ]
        assert checkpoint(world, node) == [f"t 0 {log.cleaned_to}"]
        log.check()


def test_a_log_that_is_to_be_compacted_has_its_row_before_it_can_have_gaps(world: Jbod) -> None:
    for node in (1, 2, 3):
        assert checkpoint(world, node) == ["t 0 0"]


def test_a_log_that_is_not_to_be_compacted_has_no_row_and_keeps_everything() -> None:
    world = Jbod(static=OFTEN)
    world.create_in(*HOME)
    configure(world, **{"internal.segment.bytes": "300"})
    write(world, 30)
    world.run(FLUSHED + LOOK)
    assert len(stored(world, 1)) == 30
    assert checkpoint(world, 1) == []


def test_what_is_not_cached_is_compacted_once_it_was_read_elsewhere(world: Jbod) -> None:
    write(world, 30)
    world.disks[NodeId(1)].draw_cached = lambda: False
    world.run(FLUSHED + LOOK)
    assert log_of(world, 1).cleaned_to == 0
    answered = 0
    while not log_of(world, 1).cleaned_to and answered < 100:
        asked = world.cold_reads(1)
        for effect in asked[answered:]:
            world.warmed(1, effect)
        answered = len(asked)
        world.run(100)
    assert stored(world, 1) == stored(world, 2)


def test_a_log_that_waits_only_to_be_durable_is_flushed_and_compacted_at_the_next_look(world: Jbod) -> None:
    write(world, 30)
    assert log_of(world, 1).recovery_point == 0
    world.run(LOOK)
    for node in (1, 2, 3):
        assert len(stored(world, node)) < 10
        assert log_of(world, node).cleaned_to == log_of(world, node).active.base_offset


def test_nothing_is_compacted_before_it_is_durable(world: Jbod, monkeypatch: pytest.MonkeyPatch) -> None:
    flushes: list[tuple[NodeId, Sync | Save]] = []
    answered = world.flushed
    monkeypatch.setattr(world, "flushed", lambda node, effect: flushes.append((node, effect)))
    write(world, 30)
    world.run(FLUSHED + LOOK)
    assert len(stored(world, 1)) == 30
    asked = [effect for node, effect in flushes if node == 1 and type(effect.token) is LogFlushed]
    assert len(asked) == 1, "one flush of a log is under way at a time"
    monkeypatch.setattr(world, "flushed", answered)
    for node, effect in flushes:
        world.flushed(node, effect)
    world.run(LOOK)
    assert len(stored(world, 1)) < 10


def test_nothing_is_compacted_from_the_first_open_transaction_on(world: Jbod) -> None:
    """KIP-98: whether its records count is not decided."""
    write(world, 12)
    leader = log_of(world, 1)
    rows = [(world.now, b"k0", b"open", ())]
    batch = build(rows, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    assert isinstance(leader.append_as_leader(bytearray(batch), 0, world.now, may_begin=True), Appended)
    write(world, 20)
    world.run(FLUSHED + LOOK)
    for node in (1, 2, 3):
        cleaned_to = log_of(world, node).cleaned_to
        assert cleaned_to is not None
        assert 0 < cleaned_to <= 12
    assert isinstance(leader.append_marker(7, 1, EndTxnMarker(True, 0), 0, world.now, 2), Appended)
    write(world, 8)
    world.run(FLUSHED + LOOK)
    assert leader.cleaned_to is not None
    assert leader.cleaned_to > 12


def test_a_log_that_is_not_dirty_enough_is_not_flushed_for_the_cleaner(world: Jbod) -> None:
    configure(world, min_cleanable_dirty_ratio="1.0")
    write(world, 30)
    world.run(LOOK)
    assert log_of(world, 1).recovery_point == 0


def test_a_cleaner_that_is_switched_off_does_nothing() -> None:
    world = Jbod(static=OFTEN)
    for node in (1, 2, 3):
        world.nodes[NodeId(node)].host.static = {"log.cleaner.enable": False}
    world.create_in(*HOME)
    configure(world, **COMPACT)
    write(world, 30)
    world.run(FLUSHED + LOOK)
    assert len(stored(world, 1)) == 30


def test_its_rate_may_be_limited_while_it_runs(world: Jbod) -> None:
    configure(world, BROKER_RESOURCE, CLUSTER_DEFAULT, log_cleaner_io_max_bytes_per_second="1")
    write(world, 60)
    world.run(FLUSHED + LOOK + 3_000)
    slow = cleaner_of(world, 1)
    assert slow.run is not None
    assert not slow.run.compaction.is_done
    configure(world, BROKER_RESOURCE, CLUSTER_DEFAULT, log_cleaner_io_max_bytes_per_second="1e9")
    world.run(30_000)
    assert slow.run is None
    assert len(stored(world, 1)) < 10


def test_it_rests_for_the_backoff_that_is_set_while_it_runs(world: Jbod) -> None:
    write(world, 30)
    world.run(FLUSHED + LOOK)
    configure(world, BROKER_RESOURCE, CLUSTER_DEFAULT, log_cleaner_backoff_ms="60000")
    world.run(LOOK)
    write(world, 30, 30)
    world.run(FLUSHED + LOOK)
    assert len(stored(world, 1)) > 30
    world.run(60_000)
    assert len(stored(world, 1)) < 10


def test_a_start_goes_on_where_the_log_was_compacted_to(world: Jbod) -> None:
    write(world, 30)
    world.run(FLUSHED + LOOK)
    kept, to = stored(world, 2), log_of(world, 2).cleaned_to
    for clean in (False, True):
        if clean:
            world.nodes[NodeId(2)].shutdown(world.now)
        world.kill(NodeId(2))
        world.start(NodeId(2), clean=clean)
        assert stored(world, 2) == kept
        assert log_of(world, 2).cleaned_to == to


def test_a_replica_that_begins_anew_copies_a_compacted_log(world: Jbod) -> None:
    write(world, 30)
    world.run(FLUSHED + LOOK)
    world.kill(NodeId(3))
    world.disks[NodeId(3)].wipe("/d0")  # type: ignore[attr-defined]
    log_of(world, 1).tail.clear()
    world.start(NodeId(3))
    world.run(5_000)
    assert stored(world, 3) == stored(world, 1)
    assert log_of(world, 3).log_end_offset == 30
    write(world, 3, 30)
    assert log_of(world, 3).log_end_offset == 33
    world.run(FLUSHED)
    world.kill(NodeId(3))
    world.start(NodeId(3), clean=False)
    latest = [{key: value for _, key, value in stored(world, node)} for node in (1, 3)]  # each compacts by itself
    assert latest[0] == latest[1] == {"k0": "30", "k1": "31", "k2": "32"}


def test_a_consumer_that_asks_in_a_gap_gets_what_is_behind_it(world: Jbod) -> None:
    write(world, 30)
    world.run(FLUSHED + LOOK)
    log_of(world, 1).tail.clear()
    answer = world.consume(1, 1)()
    assert answer.error_code == 0
    assert bytes(b"".join(bytes(x) for x in parts(answer.records)))[7] > 1


def parts(records: Any) -> tuple[Any, ...]:
    return records if isinstance(records, tuple) else (records,)


def test_a_deleted_topic_ends_the_pass_over_it(world: Jbod) -> None:
    configure(world, BROKER_RESOURCE, CLUSTER_DEFAULT, log_cleaner_io_max_bytes_per_second="1")
    write(world, 60)
    world.run(FLUSHED + LOOK + 3_000)
    assert cleaner_of(world, 1).run is not None
    world.commit(r.RemoveTopicRecord(topic_id=AT.topic_id))
    world.run(1_000)
    assert cleaner_of(world, 1).run is None
    assert not [name for name in world.disks[NodeId(1)].list("/d0") if name.startswith("t-0")]


def test_a_directory_that_fails_over_it_is_offline_and_the_broker_lives_on(world: Jbod) -> None:
    configure(world, BROKER_RESOURCE, CLUSTER_DEFAULT, log_cleaner_io_max_bytes_per_second="1")
    write(world, 60)
    world.run(FLUSHED + LOOK + 3_000)
    assert cleaner_of(world, 2).run is not None
    world.fail(2, "/d0")
    configure(world, BROKER_RESOURCE, CLUSTER_DEFAULT, log_cleaner_io_max_bytes_per_second="1e9")
    world.run(LOOK)
    assert [d.path for d in world.nodes[NodeId(2)].host.directories.live] == ["/d1"]
    assert cleaner_of(world, 2).run is None


def test_damage_is_reported_once_and_the_log_is_left_alone(world: Jbod) -> None:
    configure(world, BROKER_RESOURCE, CLUSTER_DEFAULT, log_scrub_max_bytes_per_second="0")
    write(world, 30)
    first = log_of(world, 1).segments[0]
    world.disks[NodeId(1)].flip(first.path, 70, 0)  # type: ignore[attr-defined]
    world.run(FLUSHED + 3 * LOOK)
    assert len([text for text in world.reports if "not compacted any more" in text]) == 1
    assert log_of(world, 1).cleaned_to == 0
    assert len(stored(world, 2)) < 10


def test_a_log_that_takes_the_place_of_a_damaged_one_is_compacted(world: Jbod) -> None:
    configure(world, BROKER_RESOURCE, CLUSTER_DEFAULT, log_scrub_max_bytes_per_second="0")
    write(world, 30)
    world.disks[NodeId(2)].flip(log_of(world, 2).segments[0].path, 70, 0)  # type: ignore[attr-defined]
    world.run(FLUSHED + LOOK)
    assert AT in cleaner_of(world, 2).uncleanable
    world.disks[NodeId(2)].flip(log_of(world, 2).segments[0].path, 70, 0)  # type: ignore[attr-defined]
    world.nodes[NodeId(2)].futures.alter(AT_NAME, "/d1", world.now)
    world.run(5_000)
    assert world.path(2) == "/d1"
    write(world, 30, 30)
    world.run(FLUSHED + 2 * LOOK)
    assert len(stored(world, 2)) < 10


def test_a_log_that_was_repaired_is_compacted_again(world: Jbod) -> None:
    configure(world, BROKER_RESOURCE, CLUSTER_DEFAULT, log_scrub_max_bytes_per_second="0")
    for node in ("1", "3"):  # they have the batch still
        configure(world, BROKER_RESOURCE, node, log_cleaner_io_max_bytes_per_second="1")
    write(world, 30)
    world.disks[NodeId(2)].flip(log_of(world, 2).segments[0].path, 70, 0)  # type: ignore[attr-defined]
    world.run(FLUSHED + LOOK)
    log = log_of(world, 2)
    assert log.cleaned_to == 0
    hosted = world.nodes[NodeId(2)].host.partitions.find(AT)
    assert hosted is not None
    hosted.log.tail.clear()
    world.nodes[NodeId(2)].host.suspects.add(hosted, 0, world.now)
    world.run(LOOK)
    assert any("are repaired" in text for text in world.reports)
    assert log.cleaned_to == log.active.base_offset


def test_a_compacted_log_moves_to_another_directory(world: Jbod) -> None:
    write(world, 30)
    world.run(FLUSHED + LOOK)
    kept = stored(world, 2)
    world.nodes[NodeId(2)].futures.alter(AT_NAME, "/d1", world.now)
    world.run(5_000)
    assert world.path(2) == "/d1"
    assert world.known()[1] == directory(2, 1)
    assert stored(world, 2) == kept
    assert [row.split()[:2] for row in checkpoint(world, 2, "/d1")] == [["t", "0"]]
    world.kill(NodeId(2))
    world.start(NodeId(2), clean=False)
    assert stored(world, 2) == kept


def with_an_old_value() -> Jbod:
    """Of the key that a test deletes then, at the log's start; tombstones do not stay."""
    world = Jbod(static=OFTEN)
    world.create_in(*HOME)
    configure(world, **COMPACT, **{"delete.retention.ms": "0", "min.cleanable.dirty.ratio": "0.0"})
    world.produce(1, batch=keyed(("gone", "old"), timestamp=world.now))
    world.run(10)
    write(world, 30, 0, 30)
    return world


def test_no_log_is_compacted_while_it_moves_so_no_deleted_key_comes_back() -> None:
    """The future log copied a value; were the tombstone gone before that is copied, the value would stay for good."""
    world = with_an_old_value()
    slow = "replica.alter.log.dirs.io.max.bytes.per.second"
    configure(world, BROKER_RESOURCE, "1", **{slow: "1"})
    futures = world.nodes[NodeId(1)].futures
    futures.alter(AT_NAME, "/d1", world.now)
    world.run(50)
    assert 0 < futures.moving[AT].log.log_end_offset < 31
    world.produce(1, batch=keyed(("gone", None), timestamp=world.now))
    for turn in range(3):
        write(world, 6, 100 + 10 * turn)
        world.run(FLUSHED + LOOK)
    assert AT in futures.moving
    assert log_of(world, 1).cleaned_to == 0
    configure(world, BROKER_RESOURCE, "1", **{slow: "100000000"})
    for turn in range(4):
        write(world, 6, 200 + 10 * turn)
        world.run(FLUSHED + LOOK)
    assert world.path(1) == "/d1"
    for node in (1, 2, 3):
        assert [row for row in stored(world, node) if row[1] == "gone"] == []


def test_a_move_to_a_directory_that_is_offline_is_over_once_the_log_is_compacted() -> None:
    """The directory comes back with a value whose tombstone has gone meanwhile."""
    world = with_an_old_value()
    configure(world, BROKER_RESOURCE, "2", **{"replica.alter.log.dirs.io.max.bytes.per.second": "1"})
    world.nodes[NodeId(2)].futures.alter(AT_NAME, "/d1", world.now)
    world.run(FLUSHED)
    assert world.nodes[NodeId(2)].futures.moving[AT].log.log_end_offset > 0
    world.kill(NodeId(2))
    world.dead = ("/d1",)
    world.start(NodeId(2))
    world.produce(1, batch=keyed(("gone", None), timestamp=world.now))
    for turn in range(3):
        write(world, 6, 100 + 10 * turn)
        world.run(FLUSHED + LOOK)
    assert [row for row in stored(world, 2) if row[1] == "gone"] == []
    world.kill(NodeId(2))
    world.dead = ()
    world.start(NodeId(2))
    configure(world, BROKER_RESOURCE, "2", **{"replica.alter.log.dirs.io.max.bytes.per.second": "100000000"})
    world.run(10_000)
    assert not world.nodes[NodeId(2)].futures.moving
    assert world.path(2) == "/d0"
    assert [row for row in stored(world, 2) if row[1] == "gone"] == []


def test_a_move_that_begins_ends_the_pass(world: Jbod) -> None:
    configure(world, BROKER_RESOURCE, CLUSTER_DEFAULT, log_cleaner_io_max_bytes_per_second="1")
    write(world, 60)
    world.run(FLUSHED + LOOK + 3_000)
    assert cleaner_of(world, 1).run is not None
    configure(world, BROKER_RESOURCE, "1", **{"replica.alter.log.dirs.io.max.bytes.per.second": "1"})
    world.nodes[NodeId(1)].futures.alter(AT_NAME, "/d1", world.now)
    world.run(1_000)
    assert AT in world.nodes[NodeId(1)].futures.moving
    assert cleaner_of(world, 1).run is None


@pytest.mark.parametrize("policy", ["compact", "delete"])
def test_a_future_log_that_takes_the_place_of_a_lost_one_has_its_gaps(world: Jbod, policy: str) -> None:
    """Nobody says any more how far it was cleaned, or that it was ever to be."""
    write(world, 30)
    world.run(FLUSHED + LOOK)
    kept = stored(world, 2)
    assert len(kept) < 10
    configure(world, cleanup_policy=policy)
    world.kill(NodeId(2))
    disk = world.disks[NodeId(2)]
    disk.rename("/d0/t-0", f"/d1/{future_name(AT_NAME, AT.topic_id)}")
    where = (directory(1, 0), directory(2, 1), directory(3, 0))
    world.commit(r.PartitionChangeRecord(topic_id=AT.topic_id, partition_id=0, directories=where))
    world.start(NodeId(2), clean=False)
    assert world.path(2) == "/d1"
    assert any("what it was a copy of is gone" in text for text in world.reports)
    assert stored(world, 2) == kept
    assert checkpoint(world, 2, "/d1") == ["t 0 0"]
    world.kill(NodeId(2))
    world.start(NodeId(2), clean=False)
    assert stored(world, 2) == kept


def test_logs_that_are_made_in_later_steps_have_their_rows_too() -> None:
    world = Jbod(1, OFTEN)
    settings = [
        r.ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name="t", name=k, value=v) for k, v in COMPACT.items()
    ]
    rows = [
        r.PartitionRecord(partition_id=n, topic_id=AT.topic_id, replicas=(1,), isr=(1,), leader=1, leader_epoch=0)
        for n in range(250)
    ]
    world.commit(r.TopicRecord(name="t", topic_id=AT.topic_id), *settings, *rows)
    world.run(100)
    assert sorted(checkpoint(world, 1) + checkpoint(world, 1, "/d1")) == sorted(f"t {n} 0" for n in range(250))


@pytest.mark.parametrize("look", ["filthiest", "flush_dirty"])
def test_a_directory_that_fails_over_one_log_is_not_asked_for_the_next_one(world: Jbod, look: str) -> None:
    at = {"partition_id": 1, "topic_id": AT.topic_id, "directories": (directory(1, 0),)}
    who = {"replicas": (1,), "isr": (1,), "leader": 1, "leader_epoch": 0, "partition_epoch": 0}
    world.commit(r.PartitionRecord(**at, **who))
    write(world, 30)
    world.fail(1, "/d0")
    for log in (log_of(world, 1), world.nodes[NodeId(1)].host.partitions.named("t", 1).log):  # type: ignore[union-attr]
        log.config = replace(log.config, max_compaction_lag_ms=1)
        for segment in log.segments:
            segment.release()
    cleaner = cleaner_of(world, 1)
    assert not getattr(cleaner, look)(world.now)
    world.perform(NodeId(1), [])
    assert world.nodes[NodeId(1)].host.partitions.find(AT) is None
