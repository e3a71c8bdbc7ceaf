"""One log: appending, copying, refusing, rolling, cutting, opening."""

import pytest
from tests.rows import each
from tests.unit.log.logs import NOW, ROOT, append, content, fill, open_log, produced, ranges, small

from strandline.base.errors import ErrorCode
from strandline.base.ports import DiskError
from strandline.base.time import Instant
from strandline.log.config import LogConfig
from strandline.log.epochs import EpochStart
from strandline.log.files.epoch_file import EPOCHS_FILE
from strandline.log.log import Log
from strandline.log.reading import Read
from strandline.log.refusals import Refused
from strandline.log.tail import TailBudget
from strandline.log.timestamps import Found
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import Draft, build, patch, read_header
from strandline.wire.record import all_records


def placed(batch: bytes, base: int, epoch: int) -> bytes:
    buffer = bytearray(batch)
    patch(buffer, read_header(buffer), base, epoch)
    return bytes(buffer)


def transactional(records: list[Draft], *, control: bool = False) -> bytes:
    return build(records, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True, control=control)


# --- the leader


def test_offsets_and_epoch_are_written_into_the_batch() -> None:
    log = open_log(SimDisk())
    append(log, produced(3), 4)
    done = append(log, produced(2), 5)
    assert (done.base_offset, done.last_offset, done.log_append_time) == (3, 4, -1)
    second = list(all_records(content(log)))[3:]
    assert [r.offset for r in second] == [3, 4]
    assert log.epochs.entries == [EpochStart(4, 0), EpochStart(5, 3)]


def test_the_broker_stamps_the_batch_with_log_append_time() -> None:
    log = open_log(SimDisk(), small(message_timestamp_type="LogAppendTime"))
    done = append(log, produced(2, timestamp=3), now=NOW + 9)
    assert done.log_append_time == NOW + 9
    assert [r.timestamp for r in all_records(content(log))] == [NOW + 9] * 2
    assert log.offset_of_max_timestamp() == Found(NOW + 9, 0, 0)
    again = open_log(log.disk, clean=False)  # type: ignore[arg-type]
    assert again.log_end_offset == 2, "the checksum was written again"


def test_a_buffer_that_may_not_be_changed_is_copied() -> None:
    log = open_log(SimDisk())
    sent = produced(1)
    log.append_as_leader(memoryview(sent), 9, NOW)
    assert read_header(sent).partition_leader_epoch == -1
    assert read_header(content(log)).partition_leader_epoch == 9


def broken(batch: bytes) -> bytes:
    return batch[:-1] + bytes([batch[-1] ^ 1])


@each(
    ("sent", "error"),
    [
        (b"", ErrorCode.INVALID_RECORD),
        (b"junk", ErrorCode.CORRUPT_MESSAGE),
        (produced()[:-1], ErrorCode.CORRUPT_MESSAGE),
        (broken(produced()), ErrorCode.CORRUPT_MESSAGE),
        (produced() + produced(), ErrorCode.INVALID_RECORD),
        (produced(size=2000), ErrorCode.MESSAGE_TOO_LARGE),
        (produced(timestamp=NOW + 101), ErrorCode.INVALID_TIMESTAMP),
        (produced(timestamp=NOW - 101), ErrorCode.INVALID_TIMESTAMP),
        (placed(produced(), 5, 0), ErrorCode.INVALID_RECORD),
        (build([(NOW, b"\0\0\0\0", b"", ())], control=True), ErrorCode.INVALID_RECORD),
        (transactional([(NOW, b"k", b"v", ())]), ErrorCode.INVALID_TXN_STATE),
        (transactional([(NOW, b"\0\0\0\1", b"\0\0\0\0\0\0", ())], control=True), ErrorCode.INVALID_RECORD),
    ],
)
def test_a_refused_append_changes_nothing(sent: bytes, error: ErrorCode) -> None:
    disk = SimDisk()
    config = small(max_message_bytes=1000, message_timestamp_before_max_ms=100, message_timestamp_after_max_ms=100)
    log = open_log(disk, config)
    fill(log, 3)
    before, end, unsynced = disk.contents(), log.log_end_offset, log.unsynced()
    done = log.append_as_leader(bytearray(sent), 8, NOW)
    assert isinstance(done, Refused)
    assert done.error is error
    assert (disk.contents(), log.log_end_offset, log.unsynced(), log.latest_epoch) == (before, end, unsynced, 0)


def test_a_compacted_log_refuses_records_without_a_key_and_names_them() -> None:
    log = open_log(SimDisk(), small(cleanup_policy=("compact",)))
    keyless = build([(NOW, b"k", b"v", ()), (NOW, None, b"v", ()), (NOW, None, b"w", ())])
    done = log.append_as_leader(bytearray(keyless), 0, NOW)
    assert isinstance(done, Refused)
    assert (done.error, done.records, log.log_end_offset) == (ErrorCode.INVALID_RECORD, (1, 2), 0)
    append(log, build([(NOW, b"k", None, ())]))
    assert log.log_end_offset == 1


# --- the follower


def test_a_follower_leaves_out_what_it_has_and_what_a_later_leader_wrote() -> None:
    leader, follower = open_log(SimDisk()), open_log(SimDisk())
    for epoch in (1, 1, 2, 3):
        append(leader, produced(2), epoch)
    assert follower.append_as_follower(content(leader, 0)[:79], 2, NOW) in (0, 2)
    assert follower.append_as_follower(content(leader), 2, NOW) == 6
    assert follower.epochs.entries == [EpochStart(1, 0), EpochStart(2, 4)]
    assert follower.append_as_follower(content(leader), 3, NOW) == 8
    assert content(follower) == content(leader)


def test_a_damaged_batch_is_refused_with_all_that_follows_it() -> None:
    leader, follower = open_log(SimDisk()), open_log(SimDisk())
    fill(leader, 3)
    copied = bytearray(content(leader))
    size = len(copied) // 3
    copied[2 * size - 1] ^= 1
    done = follower.append_as_follower(copied, 0, NOW)
    assert isinstance(done, Refused)
    assert done.error is ErrorCode.CORRUPT_MESSAGE
    assert ranges(content(follower)) == [(0, 2)]


@pytest.mark.parametrize("base", [1, 3])
def test_a_batch_that_does_not_follow_the_end_is_refused(base: int) -> None:
    log = open_log(SimDisk())
    fill(log, 1)
    assert isinstance(log.append_as_follower(placed(produced(4), base, 0), 0, NOW), Refused)
    assert log.log_end_offset == 2


def test_bytes_that_are_no_batch_are_refused_and_half_a_batch_waits_for_its_rest() -> None:
    log = open_log(SimDisk())
    assert isinstance(log.append_as_follower(bytes(100), 0, NOW), Refused)
    assert log.append_as_follower(placed(produced(), 0, 0)[:-1], 0, NOW) == 0


# --- beginning


def test_a_log_that_is_created_is_as_one_that_is_opened_in_an_empty_directory() -> None:
    made, opened = SimDisk(), SimDisk()
    made.make_directory(ROOT)
    log, other = Log.create(made, ROOT, LogConfig(), NOW, TailBudget()), open_log(opened)
    log.check()
    assert made.list(ROOT) == opened.list(ROOT)
    assert log.unsynced() == other.unsynced()
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point, log.touched) == (0, 0, 0, other.touched)
    fill(log, 3)
    fill(other, 3)
    assert content(log) == content(other)
    assert log.epochs.entries == other.epochs.entries


# --- segments


def test_a_segment_is_rolled_by_size_and_each_begins_with_a_batch() -> None:
    log = open_log(SimDisk(), small(segment_bytes=200))
    fill(log, 6)
    assert len(log.segments) == 3
    assert all(s.size <= 200 for s in log.segments)
    assert log.bases == [0, 4, 8]


def test_a_batch_larger_than_a_segment_has_one_for_itself() -> None:
    log = open_log(SimDisk(), small(segment_bytes=200))
    fill(log, 1)
    append(log, produced(1, size=1000))
    fill(log, 1)
    assert log.bases == [0, 2, 3]


def test_a_segment_is_rolled_by_time_only_if_it_holds_something() -> None:
    log = open_log(SimDisk(), small(segment_ms=100))
    assert not log.roll_if_due(Instant(NOW + 1000))
    fill(log, 1)
    assert not log.roll_if_due(Instant(NOW + 99))
    assert log.roll_if_due(Instant(NOW + 100))
    assert not log.roll_if_due(Instant(NOW + 1000))
    assert log.bases == [0, 2]


def test_logs_that_began_together_do_not_roll_together_with_a_jitter() -> None:
    spans = []
    config = small(segment_ms=1_000, segment_jitter_ms=400)
    for number in range(20):
        where = (SimDisk(), f"/d/t-{number}", config, NOW)
        log = Log.open(*where, clean=True, recovery_point=0, log_start_offset=0)
        fill(log, 1)
        spans.append(next(span for span in range(2_000) if log.roll_if_due(Instant(NOW + span))))
    assert all(600 < span <= 1_000 for span in spans)
    assert len(set(spans)) > 10


def test_few_files_stay_open_and_a_clean_start_reads_little() -> None:
    disk = SimDisk()
    config = small(segment_bytes=20_000, index_interval_bytes=1000)
    log = open_log(disk, config, tail_bytes=0)
    for _ in range(400):
        append(log, produced(1, size=900))
    assert len(log.segments) > 15
    assert len(disk.opened) <= 2
    for offset in range(0, 400, 7):
        log.read(offset, 100, upto=400, min_one=True)
        assert next(log.headers(offset)).base_offset == offset
    log.offset_for_timestamp(NOW + 5)
    assert len(disk.opened) <= 2
    log.write_all()
    log.close()
    assert not disk.opened
    disk.bytes_read = 0
    log = open_log(disk, config)
    assert log.log_end_offset == 400
    assert disk.bytes_read < 30_000
    assert len(disk.opened) <= 2


# --- opening


@pytest.mark.parametrize("damage", ["gone", "torn", "empty", "junk"])
def test_a_clean_start_mends_its_indexes(damage: str) -> None:
    disk = SimDisk()
    log = open_log(disk, small())
    for i in range(20):
        append(log, produced(1, timestamp=NOW - 20 + i, size=50))
    log.close()
    sound = disk.contents()
    for path in [p for p in sound if p.endswith("index")]:
        if damage == "gone":
            disk.remove(path)
        elif damage == "torn":
            disk.write_file(path, sound[path][:-1])
        elif damage == "empty":
            disk.write_file(path, b"")
        else:
            disk.write_file(path, b"\xff" * len(sound[path]))
    log = open_log(disk, small())
    assert log.offset_for_timestamp(NOW - 7) == Found(NOW - 7, 13, 0)
    assert [s.max_timestamp for s in log.segments][-1] == NOW - 1
    log.close()
    assert {p: c for p, c in disk.contents().items() if p.endswith(".index")} == {
        p: c for p, c in sound.items() if p.endswith(".index")
    }


def test_leftovers_of_deletions_go_and_a_foreign_file_is_left_alone() -> None:
    disk = SimDisk()
    log = open_log(disk)
    fill(log, 1)
    log.close()
    for name in ("00000000000000000009.log.deleted", "00000000000000000009.index", "00000000000000000007.timeindex"):
        disk.write_file(f"{ROOT}/{name}", b"x")
    disk.write_file(f"{ROOT}/partition.metadata", b"x")
    disk.write_file(f"{ROOT}/notes.log", b"x")
    open_log(disk)
    stem = "00000000000000000000"
    assert disk.list(ROOT) == [
        f"{stem}.index",
        f"{stem}.log",
        f"{stem}.timeindex",
        EPOCHS_FILE,
        "notes.log",
        "partition.metadata",
    ]


@pytest.mark.parametrize("content_of_file", [None, b"", b"0\n9\n1 1\n", b"0\n2\n3 0\n1 4\n"])
def test_epochs_are_read_from_the_batches_if_their_file_is_invalid(content_of_file: bytes | None) -> None:
    disk = SimDisk()
    log = open_log(disk, small())
    for epoch in (1, 1, 2, 5, 5, 5, 5, 9):
        append(log, produced(2, size=60), epoch)
    log.close()
    if content_of_file is None:
        disk.remove(f"{ROOT}/{EPOCHS_FILE}")
    else:
        disk.write_file(f"{ROOT}/{EPOCHS_FILE}", content_of_file)
    again = open_log(disk, small())
    assert again.epochs.entries == log.epochs.entries
    assert disk.read_file(f"{ROOT}/{EPOCHS_FILE}") == b"0\n4\n1 0\n2 4\n5 6\n9 14\n"


def test_an_index_on_disk_is_kafkas() -> None:
    """By hand: (relative last offset, position) and (largest timestamp so far, its relative offset), big-endian."""
    disk = SimDisk()
    log = open_log(disk, small(segment_bytes=1 << 20))
    log.truncate_fully_and_start_at(1000)
    for i in range(3):
        append(log, produced(2, timestamp=5000 + 10 * i, size=50))
    size = log.segments[0].size // 3
    log.close()
    stem = f"{ROOT}/00000000000000001000"
    entries = [(3).to_bytes(4) + size.to_bytes(4), (5).to_bytes(4) + (2 * size).to_bytes(4)]
    assert disk.read_file(f"{stem}.index") == b"".join(entries)
    assert disk.read_file(f"{stem}.timeindex") == b"".join(
        (5000 + 10 * i + 1).to_bytes(8) + (2 * i + 1).to_bytes(4) for i in (1, 2)
    )


# --- cutting


def test_everything_goes_and_the_next_record_has_the_offset() -> None:
    disk = SimDisk()
    log = open_log(disk, small())
    fill(log, 12, epoch=3)
    log.truncate_fully_and_start_at(100)
    log.check()
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (100, 100, 100)
    assert log.epochs.entries == []
    assert append(log, produced(2), 4).base_offset == 100
    assert [n for n in disk.list(ROOT) if n.endswith(".log")] == ["00000000000000000100.log"]
    assert ranges(content(open_log(disk, clean=False, recovery_point=0))) == [(100, 102)]


def test_an_epoch_without_records_goes_though_nothing_is_cut() -> None:
    log = open_log(SimDisk())
    fill(log, 2)
    log.assign_epoch(7, log.log_end_offset)
    log.truncate_to(log.log_end_offset)
    assert log.latest_epoch == 0
    assert log.log_end_offset == 4


def test_records_below_the_log_start_are_out_of_range_and_their_segments_go_later() -> None:
    log = open_log(SimDisk(), small(segment_bytes=200, retention_ms=-1))
    fill(log, 6)
    assert log.advance_log_start(5)
    assert not log.advance_log_start(5)
    assert not log.advance_log_start(99)
    below = log.read(4, 100, upto=12, min_one=True)
    assert isinstance(below, Refused)
    assert below.error is ErrorCode.OFFSET_OUT_OF_RANGE
    assert isinstance(log.read(5, 100, upto=12, min_one=True), Read)
    assert log.delete_old_segments(NOW, 12) == 1
    assert log.bases == [4, 8]
    assert log.epochs.entries == [EpochStart(0, 5)]


# --- durability, memory, unreadable records


@pytest.mark.parametrize("log_start", [0, 9])
def test_what_follows_an_offset_is_counted_in_bytes_of_whole_batches(log_start: int) -> None:
    log = open_log(SimDisk((ROOT,)), small())
    fill(log, 20)
    log.advance_log_start(log_start)
    assert len(log.segments) > 2
    every = list(log.headers(0))
    for offset in range(log.log_end_offset + 2):
        lacking = [header.size for header in every if header.next_offset > max(offset, log_start)]
        assert log.bytes_from(offset) == sum(lacking), offset


def test_what_was_named_is_synced_and_what_came_later_is_not() -> None:
    log = open_log(SimDisk(), small(segment_bytes=200))
    fill(log, 3)
    assert f"{ROOT}/00000000000000000000.timeindex" in log.unsynced()
    end = log.log_end_offset
    log.assign_epoch(5, end)
    fill(log, 1, epoch=5)
    log.mark_synced(end)
    assert log.recovery_point == end
    assert f"{ROOT}/{EPOCHS_FILE}" in log.unsynced()
    log.mark_synced(log.log_end_offset)
    assert log.unsynced() == ()


def test_a_flush_makes_nothing_durable_that_is_not_there_under_its_name() -> None:
    """And what is durable is not looked at again."""
    disk = SimDisk()
    log = open_log(disk, small(segment_bytes=200))
    fill(log, 3)
    old = log.segments[0].path
    log.mark_synced(log.log_end_offset)
    disk.tamper(old, None)
    fill(log, 3)
    log.mark_synced(log.log_end_offset)
    point = log.recovery_point
    fill(log, 3)
    disk.tamper(log.segments[-2].path, None)
    with pytest.raises(DiskError, match=f"{log.segments[-2].path}: somebody has deleted it"):
        log.mark_synced(log.log_end_offset)
    assert log.recovery_point == point


def test_tails_share_a_budget_and_the_log_that_was_idle_longest_gives_way() -> None:
    disk, budget = SimDisk(), TailBudget(10_000)
    logs = [
        Log.open(disk, f"/d/t-{i}", small(), NOW, clean=True, recovery_point=0, log_start_offset=0, tail_budget=budget)
        for i in range(3)
    ]
    for log in logs:
        for _ in range(4):
            append(log, produced(1, size=700))
    assert [bool(log.tail.chunks) for log in logs] == [False, True, True]
    assert budget.used == sum(log.tail.size for log in logs) <= 10_000
    for _ in range(50):
        append(logs[1], produced(1, size=700))
        assert budget.used == sum(log.tail.size for log in logs) <= 10_000
    for log in logs:
        log.close()
    assert budget.used == 0
    assert not budget.tails


def test_records_that_can_not_be_read_count_as_one() -> None:
    """The checksum is right, so the batch is stored; what is in it is between the clients."""
    sound = bytearray(produced(2, timestamp=NOW))
    sound[61:] = b"\xff" * (len(sound) - 61)
    from crc32c import crc32c

    sound[17:21] = crc32c(memoryview(sound)[21:]).to_bytes(4)
    log = open_log(SimDisk())
    append(log, bytes(sound))
    assert log.offset_for_timestamp(NOW) == Found(NOW + 1, 0, 0)
