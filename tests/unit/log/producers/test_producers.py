"""Idempotent producers: sent again, out of order, a new epoch, wrap-around, and after a restart."""

import pytest
from tests.unit.log.logs import NOW, append, content, open_log, produced, small

from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.log.config import DAY_MS as EXPIRATION_MS
from strandline.log.log import Appended, Log
from strandline.log.producers.producers import Producers, Remembered
from strandline.log.refusals import Refused
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import batches

SEQUENCE_MAX = (1 << 31) - 1


def send(log: Log, sequence: int, count: int = 1, *, epoch: int = 0, pid: int = 7) -> Appended | ErrorCode:
    done = log.append_as_leader(bytearray(produced(count, producer=(pid, epoch, sequence))), 0, NOW)
    return done.error if isinstance(done, Refused) else done


def test_each_of_the_last_five_batches_is_a_duplicate_and_none_before() -> None:
    log = open_log(SimDisk())
    first = [send(log, 2 * i, 2) for i in range(7)]
    end = log.log_end_offset
    for i in range(2, 7):
        again, was = send(log, 2 * i, 2), first[i]
        assert isinstance(again, Appended)
        assert isinstance(was, Appended)
        assert again.duplicate
        assert (again.base_offset, again.last_offset) == (was.base_offset, was.last_offset)
    assert send(log, 2, 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(log, 12, 1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "begins like a duplicate but is shorter"
    assert log.log_end_offset == end


def test_a_gap_is_refused_and_changes_nothing() -> None:
    disk = SimDisk()
    log = open_log(disk)
    send(log, 0)
    before = disk.contents()
    assert send(log, 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert disk.contents() == before
    assert isinstance(send(log, 1), Appended)


def test_a_producer_that_is_not_known_may_begin_anywhere() -> None:
    assert isinstance(send(open_log(SimDisk()), 41), Appended)


def test_a_new_epoch_begins_at_zero_and_fences_the_old_one() -> None:
    log = open_log(SimDisk())
    send(log, 0)
    assert send(log, 1, epoch=1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert isinstance(send(log, 0, epoch=1), Appended)
    assert send(log, 1, epoch=0) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert isinstance(send(log, 1, epoch=1), Appended)


def test_the_sequence_after_the_largest_is_zero() -> None:
    log = open_log(SimDisk())
    send(log, SEQUENCE_MAX - 1, 2)
    assert send(log, 1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert isinstance(send(log, 0), Appended)


def test_a_batch_that_wraps_is_continued_where_it_ended() -> None:
    log = open_log(SimDisk())
    send(log, SEQUENCE_MAX - 1, 4)  # …, max, 0, 1
    again = send(log, SEQUENCE_MAX - 1, 4)
    assert isinstance(again, Appended)
    assert again.duplicate
    assert isinstance(send(log, 2), Appended)


@pytest.mark.parametrize("clean", [True, False])
def test_what_was_known_is_known_after_a_restart(clean: bool) -> None:
    disk = SimDisk()
    log = open_log(disk, small())
    for i in range(9):
        send(log, i)
    if clean:
        log.close()
    log = open_log(disk, small(), clean=clean)
    again = send(log, 5)
    assert isinstance(again, Appended)
    assert again.duplicate
    assert again.base_offset == 5
    assert send(log, 10) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert isinstance(send(log, 9), Appended)


def test_what_a_truncation_removed_is_no_duplicate() -> None:
    log = open_log(SimDisk(), small())
    for i in range(6):
        send(log, i)
    log.truncate_to(4)
    done = send(log, 4)
    assert isinstance(done, Appended)
    assert not done.duplicate
    assert done.base_offset == 4


def test_a_follower_that_becomes_leader_knows_the_duplicates() -> None:
    leader, follower = open_log(SimDisk()), open_log(SimDisk())
    send(follower, 0, pid=1)  # so that its states are loaded before the copies come
    send(leader, 0, pid=1)
    for i in range(3):
        send(leader, i)
    assert follower.append_as_follower(content(leader, 1), 0, NOW) == 4
    again = send(follower, 2)
    assert isinstance(again, Appended)
    assert again.duplicate


def test_old_records_written_today_do_not_make_a_producer_idle() -> None:
    log = open_log(SimDisk(), small(retention_ms=-1))
    today = Instant(NOW + 3 * EXPIRATION_MS)
    append(log, produced(1, timestamp=5, producer=(7, 0, 0)), now=today)
    log.delete_old_segments(today, log.log_end_offset)
    assert append(log, produced(1, timestamp=5, producer=(7, 0, 0)), now=today).duplicate
    log.delete_old_segments(Instant(today + EXPIRATION_MS + 1), log.log_end_offset)
    assert 7 not in log.producers.known


def test_a_duplicate_bears_the_time_of_its_first_append() -> None:
    log = open_log(SimDisk(), small(message_timestamp_type="LogAppendTime"))
    append(log, produced(1, producer=(7, 0, 0)), now=NOW)
    again = append(log, produced(1, producer=(7, 0, 0)), now=NOW + 50)
    assert again.duplicate
    assert again.log_append_time == NOW


@pytest.mark.parametrize(("pid", "epoch", "sequence"), [(7, 0, 1 << 28), (8, 0, 0), (7, 9, 0), (-1, -1, -1)])
def test_what_was_learned_of_a_damaged_header_goes_when_the_batch_is_repaired(
    pid: int, epoch: int, sequence: int
) -> None:
    producers = Producers()
    (damaged,) = batches(produced(1, producer=(pid, epoch, sequence)))
    (right,) = batches(produced(1, producer=(7, 0, 0)))
    if pid >= 0:
        producers.appended(damaged, 0, NOW)
    assert producers.mend([right], 0, 1, NOW)
    assert list(producers.known) == [7]
    assert isinstance(producers.judge(right), Remembered)
    assert not producers.mend([right], 0, 1, NOW), "nothing was learned that is wrong: snapshots are kept"


def test_a_cut_takes_what_a_repair_has_taught() -> None:
    """A damaged header named no producer, so nothing was known of the batch when the log was opened."""
    log = open_log(SimDisk())
    append(log, produced(1))
    append(log, produced(1, producer=(7, 0, 0)))
    log.producer_state.producers = Producers()
    (at_0, at_1) = (bytes(log.read(at, 1, upto=2, min_one=True).buffers[0]) for at in (0, 1))
    log.mended(memoryview(at_0 + at_1), 0, 2, NOW)
    assert 7 in log.producers.known
    log.check()
    log.truncate_to(1)
    assert not log.producers.known, "its batch is gone"
