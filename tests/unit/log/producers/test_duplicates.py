"""A duplicate's answer names a batch that is there: after a snapshot, after a cut, and for no other batch."""

import pytest
from tests.unit.log.compaction.compacting import compacted, keyed
from tests.unit.log.logs import NOW, append, open_log, produced, small
from tests.unit.log.producers.test_producers import send

from strandline.base.errors import ErrorCode
from strandline.log.log import Appended, Log
from strandline.log.producers import producer_snapshot
from strandline.log.producers.producers import BATCHES_MAX, Producers, Remembered
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import read_header


def there(log: Log, answer: Appended | ErrorCode) -> tuple[int, int, int]:
    """Producer, first sequence and last offset of the batch that an answer names, as it lies in the log."""
    assert isinstance(answer, Appended)
    found = log.read(answer.base_offset, 1, upto=log.log_end_offset, min_one=True)
    header = read_header(found.buffers[0])  # type: ignore[union-attr]
    assert header.base_offset == answer.base_offset
    return header.producer_id, header.base_sequence, header.last_offset


def forge(disk: SimDisk, log: Log, batch: Remembered, *, pid: int = 7) -> None:
    """A snapshot at the log's end that says so of a producer, as an older image of the disk might have had it."""
    producers = Producers()
    producers.restore(pid, 0, [batch], NOW)
    disk.write_file(producer_snapshot.path_of(log.directory, log.log_end_offset), producer_snapshot.encode(producers))


def test_what_a_snapshot_says_is_answered_with_the_batch_that_is_there() -> None:
    disk = SimDisk()
    log = open_log(disk, small())
    for sequence in range(BATCHES_MAX + 2):
        append(log, produced(1))  # of nobody, so that offsets are not sequences
        send(log, sequence)
    for path in log.write_all():
        disk.sync((path,))
    log.close()
    log = open_log(disk, small())
    assert log.producer_state.snapshots[-1] == log.log_end_offset, "nothing had to be read of the log"
    for sequence in range(2, BATCHES_MAX + 2):
        again = send(log, sequence)
        assert isinstance(again, Appended)
        assert again.duplicate
        assert there(log, again) == (7, sequence, 2 * sequence + 1)
    assert send(log, 1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "older than what is remembered: nothing is claimed"


@pytest.mark.parametrize(
    "said",
    [
        Remembered(3, 3, 0, 0, NOW),  # another sequence lies there
        Remembered(0, 3, 0, 3, NOW),  # a batch that is longer
        Remembered(3, 3, 1, 1, NOW),  # a batch of nobody
    ],
    ids=["sequence", "length", "producer"],
)
def test_a_batch_that_a_snapshot_alone_knows_is_no_duplicate(said: Remembered) -> None:
    disk = SimDisk()
    log = open_log(disk)
    send(log, 0)
    append(log, produced(3))
    forge(disk, log, said)
    log.close()
    log = open_log(disk)
    assert log.producers.known[7].batches == [said], "it was believed"
    count = said.last_sequence - said.first_sequence + 1
    reported = send(log, said.first_sequence, count)
    assert reported is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "as the log says, which has 0 alone"
    assert there(log, send(log, 1)) == (7, 1, 4)
    assert log.producer_state.snapshots == []


def test_a_snapshot_that_says_more_than_its_name_is_damaged() -> None:
    disk = SimDisk()
    log = open_log(disk)
    send(log, 0)
    forge(disk, log, Remembered(1, 1, 1, 1, NOW))
    log.close()
    log = open_log(disk)
    assert log.producer_state.snapshots == []
    assert there(log, send(log, 0)) == (7, 0, 0)


def test_a_producer_that_a_snapshot_alone_knows_begins_anew() -> None:
    disk = SimDisk()
    log = open_log(disk)
    append(log, produced(2))
    forge(disk, log, Remembered(0, 0, 0, 0, NOW), pid=9)
    log.close()
    log = open_log(disk)
    reported = send(log, 0, pid=9)
    assert isinstance(reported, Appended)
    assert not reported.duplicate
    assert there(log, reported) == (9, 0, 2)


@pytest.mark.parametrize("other", [(8, 0), (7, 1)], ids=["producer", "epoch"])
def test_a_batch_of_another_producer_or_epoch_is_not_the_one(other: tuple[int, int]) -> None:
    disk = SimDisk()
    log = open_log(disk)
    append(log, produced(1, producer=(*other, 0)))
    forge(disk, log, Remembered(0, 0, 0, 0, NOW))
    log.close()
    log = open_log(disk)
    reported = send(log, 0)
    assert reported is ErrorCode.INVALID_PRODUCER_EPOCH if other == (7, 1) else there(log, reported) == (7, 0, 1)


def test_what_was_deleted_since_is_still_a_duplicate() -> None:
    log = open_log(SimDisk())
    send(log, 0)
    send(log, 1)
    log.advance_log_start(1)
    again = send(log, 0)
    assert isinstance(again, Appended)
    assert (again.duplicate, again.base_offset, again.log_start_offset) == (True, 0, 1)


def test_what_was_compacted_since_is_still_a_duplicate(disk: SimDisk, log: Log) -> None:
    """The fixture's log is to be compacted: the batch may have gone, and its producer is known by a snapshot."""
    append(log, keyed(("k", "v")))
    forge(disk, log, Remembered(5, 5, 0, 0, NOW))
    log.close()
    log = open_log(disk, compacted())
    done = log.append_as_leader(bytearray(keyed(("k", "v"), producer=(7, 0, 5))), 0, NOW)
    assert isinstance(done, Appended)
    assert (done.duplicate, done.base_offset) == (True, 0)


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_after_a_truncation_only_what_is_left_is_a_duplicate(cut: int) -> None:
    disk = SimDisk()
    log = open_log(disk, small())
    for sequence in range(4):
        send(log, sequence)
    log.truncate_to(cut)
    assert send(log, cut + 1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    again = send(log, cut - 1)
    assert isinstance(again, Appended)
    assert again.duplicate
    assert there(log, again) == (7, cut - 1, cut - 1)
    written = send(log, cut)
    assert isinstance(written, Appended)
    assert not written.duplicate
    assert there(log, written) == (7, cut, cut)


def test_after_all_was_thrown_away_nothing_is_a_duplicate() -> None:
    log = open_log(SimDisk(), small())
    for sequence in range(4):
        send(log, sequence)
    log.truncate_fully_and_start_at(2)
    written = send(log, 3)
    assert isinstance(written, Appended)
    assert not written.duplicate
    assert there(log, written) == (7, 3, 2)
