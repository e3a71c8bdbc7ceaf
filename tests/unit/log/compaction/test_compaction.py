"""What one pass of the cleaner leaves of a log, and what it leaves alone."""

import pytest
from tests.unit.log.compaction.compacting import (
    all_of,
    compact,
    compacted,
    headers,
    keyed,
    pairs,
    reopen,
    roll,
    sync,
    write,
)
from tests.unit.log.logs import NOW, ROOT, append, content, open_log, produced, small

from strandline.base.time import Instant
from strandline.log.cleaning.cleanable import cleanable
from strandline.log.log import Appended, Log
from strandline.log.reading import Read
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import batches, build
from strandline.wire.compress import Codec

DAY = 24 * 3600 * 1000


# --- what may be compacted


def test_the_active_segment_is_left_alone(disk: SimDisk, log: Log) -> None:
    write(log, ("a", "1"), ("a", "2"))
    sync(log, disk)
    assert not cleanable(log, 2, NOW).is_due(0.0)


def test_nothing_at_or_above_the_high_watermark_is_looked_at(disk: SimDisk, log: Log) -> None:
    write(log, ("a", "1"), ("a", "2"))
    roll(log, disk)
    write(log, ("a", "3"))
    roll(log, disk)
    assert cleanable(log, 1, NOW).end == 0
    assert cleanable(log, 2, NOW).end == 2
    compact(log, disk, high_watermark=2)
    assert pairs(log) == [(1, "a", "2"), (2, "a", "3")]


def test_nothing_that_a_power_loss_may_take_decides_over_what_is_durable(disk: SimDisk, log: Log) -> None:
    write(log, ("a", "1"))
    roll(log, disk)
    write(log, ("a", "2"))
    log.roll(log.log_end_offset)
    assert cleanable(log, 2, NOW).end == 1


def test_a_record_younger_than_the_lag_stays_and_so_does_all_behind_it(disk: SimDisk) -> None:
    log = open_log(disk, compacted(min_compaction_lag_ms=1000))
    for stamp in (0, 500, 900):
        append(log, keyed(("a", "x"), timestamp=NOW + stamp))
        roll(log, disk)
    assert cleanable(log, 3, Instant(NOW + 999)).end == 0
    assert cleanable(log, 3, Instant(NOW + 1000)).end == 1
    assert cleanable(log, 3, Instant(NOW + 1600)).end == 2


def test_a_log_is_due_when_enough_of_it_is_dirty_or_something_is_too_old(disk: SimDisk) -> None:
    log = open_log(disk, compacted(max_compaction_lag_ms=DAY))
    write(log, ("a", "x" * 100), ("b", "x" * 100))
    roll(log, disk)
    compact(log, disk)
    write(log, ("a", "y"))
    roll(log, disk)
    plan = cleanable(log, 3, NOW)
    assert 0 < plan.dirty_ratio < 0.5
    assert not plan.is_due(0.5)
    assert cleanable(log, 3, Instant(NOW + DAY + 1)).is_due(0.5)


def test_a_compacted_logs_segment_rolls_by_the_longest_lag(disk: SimDisk) -> None:
    log = open_log(disk, compacted(max_compaction_lag_ms=1000))
    write(log, ("a", "1"))
    assert not log.roll_if_due(Instant(NOW + 999))
    assert log.roll_if_due(Instant(NOW + 1000))


def test_a_checkpoint_beyond_the_log_counts_for_nothing(disk: SimDisk, log: Log) -> None:
    write(log, ("a", "1"), ("a", "2"))
    roll(log, disk)
    log.gaps.cleaned_to = 99
    assert cleanable(log, 2, NOW).first_dirty == 0


def test_what_is_written_after_a_start_that_lost_the_end_is_dirty(disk: SimDisk, log: Log) -> None:
    """The checkpoint has the end of before the loss: the new records would count as cleaned for ever."""
    write(log, ("a", "1"), ("a", "2"))
    sync(log, disk)
    again = reopen(disk, log.config, clean=False, cleaned_to=30)
    assert again.cleaned_to == 2
    write(again, *[("a", "x")] * 40)
    roll(again, disk)
    write(again, ("z", "1"))
    compact(again, disk)
    assert [offset for offset, _, _ in pairs(again) if offset >= 2] == [41, 42]


# --- what stays


def test_of_each_key_the_last_record_stays_at_its_offset(disk: SimDisk, log: Log) -> None:
    write(log, (("a", "1"), ("b", "1")), (("a", "2"), ("c", "1")), ("a", "3"))
    roll(log, disk)
    write(log, ("c", "2"))
    compact(log, disk)
    assert pairs(log) == [(1, "b", "1"), (3, "c", "1"), (4, "a", "3"), (5, "c", "2")]
    assert log.cleaned_to == 5


@pytest.mark.parametrize("codec", list(Codec))
def test_what_stays_of_a_batch_keeps_codec_producer_epoch_headers_and_times(disk: SimDisk, codec: Codec) -> None:
    log = open_log(disk, compacted(segment_bytes=1 << 20))
    append(log, keyed(("a", "1"), ("b", "1"), ("c", "1"), codec=codec, producer=(7, 3, 5), timestamp=NOW + 9), epoch=4)
    append(log, keyed(("b", "2"), ("c", "2")), epoch=5)
    before = {record.offset: record for record in all_of(log)}
    (first, _) = headers(log)
    roll(log, disk)
    compact(log, disk)
    (batch, _) = headers(log)
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (0, 2, 1)
    assert (batch.codec, batch.partition_leader_epoch) == (codec, 4)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence) == (7, 3, 5, 7)
    assert (batch.base_timestamp, batch.max_timestamp) == (first.base_timestamp, first.max_timestamp)
    assert all_of(log) == [before[0], before[3], before[4]]


def test_a_batch_of_which_everything_stays_is_the_same_bytes(disk: SimDisk, log: Log) -> None:
    write(log, (("a", "1"), ("b", "1")), ("c", "1"))
    before = headers(log)
    roll(log, disk)
    compact(log, disk)
    assert [h.crc for h in headers(log)] == [h.crc for h in before]


def test_a_record_without_a_key_goes_where_the_log_was_not_always_compacted(disk: SimDisk) -> None:
    log = open_log(disk, small())
    append(log, produced(1))
    append(log, keyed(("a", "1")))
    roll(log, disk)
    log.reconfigure(compacted())
    compact(log, disk)
    assert pairs(log) == [(1, "a", "1")]


def test_long_keys_are_distinguished(disk: SimDisk, log: Log) -> None:
    write(log, ("k" * 40 + "1", "1"), ("k" * 40 + "2", "1"), ("k" * 40 + "1", "2"))
    roll(log, disk)
    compact(log, disk)
    assert [offset for offset, _, _ in pairs(log)] == [1, 2]


# --- tombstones


def test_a_tombstone_stays_for_its_retention_after_the_first_pass_that_saw_it(disk: SimDisk) -> None:
    log = open_log(disk, compacted(delete_retention_ms=1000))
    write(log, ("a", "1"), (("a", None), ("b", "1")))
    roll(log, disk)
    compact(log, disk, now=NOW + 50)
    assert pairs(log) == [(1, "a", None), (2, "b", "1")]
    (_, batch) = headers(log)
    assert batch.has_delete_horizon
    assert batch.base_timestamp == NOW + 1050
    assert [record.timestamp for record in all_of(log)] == [NOW, NOW]

    write(log, ("c", "1"))
    roll(log, disk)
    compact(log, disk, now=NOW + 1049)  # not yet, and its time does not begin anew
    assert pairs(log)[0] == (1, "a", None)
    assert headers(log)[1].base_timestamp == NOW + 1050
    write(log, ("d", "1"))
    roll(log, disk)
    compact(log, disk, now=NOW + 1050)
    assert pairs(log) == [(2, "b", "1"), (3, "c", "1"), (4, "d", "1")]


def test_a_tombstone_that_has_a_later_value_goes_at_once(disk: SimDisk, log: Log) -> None:
    write(log, ("a", None), ("a", "1"))
    roll(log, disk)
    compact(log, disk)
    assert pairs(log) == [(1, "a", "1")]


# --- batches that stay though they are empty


def test_a_producers_batches_stay_empty_so_that_its_sequence_is_known(disk: SimDisk, log: Log) -> None:
    append(log, keyed(("a", "1"), producer=(7, 0, 0)))
    append(log, keyed(("a", "2"), ("a", "3"), producer=(7, 0, 1)))
    append(log, keyed(("a", "4")))
    roll(log, disk)
    write(log, ("b", "1"))
    compact(log, disk)
    first = headers(log)[1]
    assert (first.base_offset, first.last_offset, first.record_count, first.last_sequence) == (1, 2, 0, 2)
    again = reopen(disk, log.config, clean=False)
    assert again.producers.known[7].batches[-1].last_sequence == 2
    retry = keyed(("a", "2"), ("a", "3"), producer=(7, 0, 1))
    assert append(again, retry).duplicate


def test_a_retry_is_known_though_a_power_loss_took_its_producers_last_batch(disk: SimDisk) -> None:
    """All batches that a producer may have in flight stay: which of them is the last may yet change."""
    log = open_log(disk, compacted(segment_bytes=1 << 20))
    batches_of_7 = [keyed(("k", "1"), producer=(7, 0, number)) for number in range(2)]
    write(log, ("a", "1"))
    append(log, batches_of_7[0])
    write(log, ("k", "2"))
    roll(log, disk)
    append(log, batches_of_7[1])
    compact(log, disk)
    assert [(h.base_offset, h.record_count) for h in headers(log)] == [(0, 1), (1, 0), (2, 1), (3, 1)]
    log.truncate_to(3)
    again = reopen(disk, log.config, clean=False, cleaned_to=log.cleaned_to)
    assert again.log_end_offset == 3
    retried = append(again, batches_of_7[0])
    assert isinstance(retried, Appended)
    assert retried.duplicate


def test_the_batch_before_the_high_watermark_stays_so_that_the_logs_end_is_known(disk: SimDisk, log: Log) -> None:
    write(log, ("a", "1"), ("b", "1"))
    roll(log, disk)
    write(log, ("b", "2"))
    roll(log, disk)
    compact(log, disk)
    assert [(h.base_offset, h.record_count) for h in headers(log)] == [(0, 1), (2, 1)]
    write(log, ("b", "3"))
    roll(log, disk)
    compact(log, disk, high_watermark=4)
    assert [(h.base_offset, h.record_count) for h in headers(log)] == [(0, 1), (3, 1)]


def test_the_first_batch_of_each_epoch_stays_so_that_a_copy_knows_them_all(disk: SimDisk) -> None:
    """Or a leader that has but a copy would not find where an old leader's log parts from it."""
    log = open_log(disk, compacted(segment_bytes=1 << 20))
    for epoch in (1, 2, 3):
        write(log, *[(f"k{number}", f"{epoch}") for number in range(5)], epoch=epoch)
    roll(log, disk)
    write(log, ("z", "1"), epoch=3)
    compact(log, disk)
    assert [(h.base_offset, h.record_count) for h in headers(log)][:3] == [(0, 0), (5, 0), (10, 1)]
    copy = Log.open(SimDisk(), ROOT, log.config, NOW, clean=True, recovery_point=0, log_start_offset=0)
    copy.append_as_follower(content(log), 3)
    again = reopen(disk, log.config, clean=False, cleaned_to=log.cleaned_to)
    assert [tuple(entry) for entry in log.epochs.entries] == [(1, 0), (2, 5), (3, 10)]
    assert copy.epochs.entries == again.epochs.entries == log.epochs.entries


def test_an_epoch_whose_start_was_deleted_begins_with_the_batch_that_is_left(disk: SimDisk, log: Log) -> None:
    write(log, (("a", "1"), ("b", "1")), ("a", "2"), ("b", "2"), epoch=1)
    write(log, ("a", "3"), ("b", "3"), epoch=2)
    roll(log, disk)
    log.advance_log_start(1)
    compact(log, disk)
    left = [(h.base_offset, h.partition_leader_epoch, h.record_count) for h in headers(log)]
    assert left == [(0, 1, 0), (4, 2, 1), (5, 2, 1)]


# --- a log with gaps


@pytest.fixture
def gappy(disk: SimDisk) -> Log:
    """Offsets 0, 4 and 9 of ten."""
    log = open_log(disk, compacted(segment_bytes=1 << 20))
    for key in "a" + "bbbb" + "ccccc":
        write(log, (key, "1"))
    roll(log, disk)
    write(log, ("z", "1"))
    compact(log, disk)
    log.tail.clear()
    assert [offset for offset, _, _ in pairs(log)] == [0, 4, 9, 10]
    return log


@pytest.mark.parametrize(("asked", "found"), [(0, 0), (1, 4), (4, 4), (5, 9), (9, 9), (10, 10)])
def test_a_read_in_a_gap_goes_on_behind_it(gappy: Log, asked: int, found: int) -> None:
    read = gappy.read(asked, 1, upto=gappy.log_end_offset, min_one=True, is_checked=True)
    assert isinstance(read, Read)
    assert next(iter(batches(read.buffers[0]))).base_offset == found


def test_a_segment_ends_where_the_next_begins_also_where_its_last_records_are_gone(disk: SimDisk, log: Log) -> None:
    write(log, ("a", "1"), ("b", "1"))
    roll(log, disk)
    write(log, ("b", "2"), ("b", "3"), ("c", "x" * 250))
    roll(log, disk)
    compact(log, disk)
    assert len(log.bases) == 3
    assert [(h.base_offset, h.record_count) for h in headers(log)] == [(0, 1), (1, 0), (3, 1), (4, 1)]
    again = reopen(disk, log.config, clean=False)  # its checkpoints are older than what the cleaner did
    assert pairs(again) == [(0, "a", "1"), (3, "b", "3"), (4, "c", "x" * 250)]


def test_a_read_in_the_gap_at_the_end_of_a_segment_that_kafka_left_goes_on_in_the_next(disk: SimDisk) -> None:
    log = open_log(disk, compacted(segment_bytes=1 << 20))
    write(log, ("a", "1"), ("b", "1"))
    roll(log, disk)
    write(log, ("b", "2"))
    first = log.segments[0]
    first.file.truncate(next(first.headers(0)).end)
    again = reopen(disk, log.config, clean=False, recovery_point=3, cleaned_to=2)
    again.tail.clear()
    read = again.read(1, 1, upto=3, min_one=True, is_checked=True)
    assert isinstance(read, Read)
    assert next(iter(batches(read.buffers[0]))).base_offset == 2


def test_a_time_is_found_where_records_before_it_are_gone(disk: SimDisk, log: Log) -> None:
    for number, key in enumerate("aab"):
        append(log, keyed((key, "1"), timestamp=NOW + number))
    roll(log, disk)
    compact(log, disk)
    found = log.offset_for_timestamp(NOW)
    assert found is not None
    assert (found.offset, found.timestamp) == (1, NOW + 1)


def test_a_copy_of_a_log_with_gaps_is_the_same(disk: SimDisk, gappy: Log) -> None:
    copy = Log.open(disk, "/d/t-1", gappy.config, NOW, clean=True, recovery_point=0, log_start_offset=0)
    while copy.log_end_offset < gappy.log_end_offset:
        read = gappy.read(copy.log_end_offset, 1, upto=gappy.log_end_offset, min_one=True)
        assert isinstance(read, Read)
        assert copy.append_as_follower(read.buffers[0], 0) == copy.log_end_offset
    assert pairs(copy) == pairs(gappy)
    assert copy.log_end_offset == gappy.log_end_offset


def test_a_log_that_is_compacted_no_longer_has_its_gaps_still(disk: SimDisk, gappy: Log) -> None:
    gappy.reconfigure(small())
    assert gappy.has_gaps
    sync(gappy, disk)
    gappy.close()
    again = reopen(disk, small(), clean=False, cleaned_to=gappy.cleaned_to)
    assert pairs(again) == pairs(gappy)


def test_a_cut_in_a_gap_ends_the_log_there(disk: SimDisk, log: Log) -> None:
    log.append_as_follower(build([(NOW, b"a", b"1", ())], base_offset=0, leader_epoch=0), 0)
    log.append_as_follower(build([(NOW, b"b", b"1", ())], base_offset=9, leader_epoch=0), 0)
    log.gaps.cleaned_to = 10
    log.truncate_to(5)
    assert log.log_end_offset == 5
    log.check()
    sync(log, disk)
    log.close()
    again = reopen(disk, log.config, clean=True, recovery_point=5, cleaned_to=5)
    assert again.log_end_offset == 5
    again.append_as_follower(build([(NOW, b"c", b"1", ())], base_offset=5, leader_epoch=1), 1)
    assert pairs(again) == [(0, "a", "1"), (5, "c", "1")]


def test_a_segment_that_a_power_loss_emptied_is_no_gap(disk: SimDisk, log: Log) -> None:
    write(log, ("a", "1"))
    roll(log, disk)
    write(log, ("b", "1"))
    lost = log.active
    log.roll(log.log_end_offset)
    write(log, ("c", "1"))
    lost.file.truncate(0)
    again = reopen(disk, log.config, clean=False, recovery_point=1)
    assert pairs(again) == [(0, "a", "1")]
    assert again.log_end_offset == 1
