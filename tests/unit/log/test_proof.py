"""When the file of epochs is believed after an unclean stop, and when the batches say that it is wrong."""

import pytest
from tests.rows import each
from tests.unit.log.compaction.compacting import compacted
from tests.unit.log.logs import NOW, ROOT, append, content, open_log, produced, small

from strandline.log.checkpoints import format_epochs
from strandline.log.epochs import EpochStart
from strandline.log.files.epoch_file import EPOCHS_FILE
from strandline.log.log import Log
from strandline.log.segment import file_name
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import batches, patch, read_header

FILE = f"{ROOT}/{EPOCHS_FILE}"
EPOCHS = (1, 1, 1, 2, 2, 3, 3, 3, 3, 3, 3, 4, 5, 5, 5, 5, 5, 5, 5, 5)
OF_BATCHES = [EpochStart(1, 0), EpochStart(2, 6), EpochStart(3, 10), EpochStart(4, 22), EpochStart(5, 24)]


def written(disk: SimDisk) -> Log:
    """A log of several closed segments, durable up to its end."""
    log = open_log(disk, small())
    for epoch in EPOCHS:
        append(log, produced(2), epoch)
    assert log.bases[:3] == [0, 10, 20]
    assert len(log.bases) > 3
    disk.sync(log.unsynced())
    log.mark_synced(log.log_end_offset)
    log.close()
    assert log.epochs.entries == OF_BATCHES
    return log


def reopened(disk: SimDisk, log: Log, *, log_start_offset: int = 0, recovery_point: int | None = None) -> Log:
    below = log.log_end_offset if recovery_point is None else recovery_point
    return open_log(disk, small(), clean=False, recovery_point=below, log_start_offset=log_start_offset)


def with_epochs(disk: SimDisk, *entries: tuple[int, int]) -> bytes:
    said = format_epochs([EpochStart(*entry) for entry in entries])
    disk.tamper(FILE, said)
    return said


def of_another_epoch(disk: SimDisk, base: int, which: int, epoch: int) -> None:
    """The medium has rotted where no checksum looks."""
    path = f"{ROOT}/{file_name(base, '.log')}"
    records = bytearray(disk.read_file(path) or b"")
    header = list(batches(records))[which]
    patch(records, header, header.base_offset, epoch)
    disk.tamper(path, bytes(records))


WRONG = {
    "a later epoch from the first record on": ((5, 0),),
    "an epoch that no batch has": ((9, 0),),
    "an older epoch for all": ((1, 0),),
    "one epoch is missing within a segment": ((1, 0), (3, 10), (4, 22), (5, 24)),
    "one epoch is missing at a segment's start": ((1, 0), (2, 6), (4, 22), (5, 24)),
    "one epoch too many within a segment": ((1, 0), (2, 6), (3, 10), (4, 14), (5, 24)),
    "an epoch begins too early": ((1, 0), (2, 4), (3, 10), (4, 22), (5, 24)),
    "an epoch begins too late": ((1, 0), (2, 8), (3, 10), (4, 22), (5, 24)),
    "an epoch begins within the batch before its first": ((1, 0), (2, 5), (3, 10), (4, 22), (5, 24)),
    "an epoch begins within its first batch": ((1, 0), (2, 7), (3, 10), (4, 22), (5, 24)),
    "the first epochs are missing": ((4, 22), (5, 24)),
    "the first epoch begins within the log": ((1, 2), (2, 6), (3, 10), (4, 22), (5, 24)),
}


@each("entries", WRONG.values(), ids=WRONG)
def test_a_file_that_the_batches_contradict_gives_way_to_them(entries: tuple[tuple[int, int], ...]) -> None:
    """As the file of another partition, or an older one."""
    disk = SimDisk()
    log = written(disk)
    with_epochs(disk, *entries)
    again = reopened(disk, log)
    assert again.epochs.entries == OF_BATCHES
    assert disk.read_file(FILE) == format_epochs(OF_BATCHES)
    assert content(again) == content(open_log(disk, small()))
    assert not again.was_cut, "and no record is given up for it"


def test_a_follower_is_not_told_to_cut_what_only_a_file_of_another_partition_says_is_not_there() -> None:
    """As leader the log would say that epoch 1 ended where the other partition's epoch 4 began, at offset 0."""
    disk = SimDisk()
    log = open_log(disk, small())
    follower = open_log(SimDisk(), small())
    for _ in range(12):
        append(log, produced(2), 1)
    follower.append_as_follower(content(log), 1, NOW)
    end = log.log_end_offset
    log.close()
    with_epochs(disk, (4, 0))
    leader = reopened(disk, log)
    assert leader.end_offset_for_epoch(follower.latest_epoch) == (1, end)
    follower.truncate_to(leader.end_offset_for_epoch(follower.latest_epoch)[1])
    assert content(follower) == content(leader)
    assert follower.log_end_offset == end


def test_what_is_not_trusted_is_not_cut_because_a_file_says_that_a_later_epoch_lies_before_it() -> None:
    """The first segments were deleted long ago, so no batch is there to say it. All is checked from the beginning."""
    disk = SimDisk()
    written(disk)
    log = open_log(disk, small(retention_ms=-1))
    log.advance_log_start(20)
    log.delete_old_segments(NOW, 20)
    log.close()
    assert log.bases[0] == 20
    kept = content(log)
    with_epochs(disk, (9, 0))
    again = reopened(disk, log, log_start_offset=20, recovery_point=0)
    assert content(again) == kept
    assert again.epochs.entries == [EpochStart(3, 20), *OF_BATCHES[3:]]
    assert not again.was_cut


def cleaned(disk: SimDisk, *rows: tuple[int, int], roll_at: int) -> Log:
    """A log of which a cleaner has taken something: batches of (epoch, base offset), in two segments."""
    log = open_log(disk, compacted())
    for epoch, base in rows:
        if base == roll_at:
            log.roll(roll_at)
        batch = bytearray(produced(2))
        patch(batch, read_header(batch), base, epoch)
        assert log.append_as_follower(batch, epoch, NOW) == base + 2
    log.close()
    return log


def cleaned_again(disk: SimDisk, end: int, log_start: int = 0) -> Log:
    return Log.open(
        disk, ROOT, compacted(), NOW, clean=False, recovery_point=end, log_start_offset=log_start, cleaned_to=end
    )


BEGINNINGS = {0: ((0, 0), (1, 2)), 1: ((0, 1), (1, 2)), 2: ((1, 2),), 3: ((1, 3),)}


@pytest.mark.parametrize(("log_start", "beginning"), BEGINNINGS.items())
def test_an_epoch_whose_records_a_cleaner_took_is_known_from_the_file(
    log_start: int, beginning: tuple[tuple[int, int], ...]
) -> None:
    """The file fits, and is believed. It begins where the log does, also within a batch: what is below is deleted."""
    disk = SimDisk()
    log = cleaned(disk, (0, 0), (1, 2), (3, 8), (3, 10), (3, 12), (4, 18), roll_at=12)
    said = with_epochs(disk, *beginning, (2, 5), (3, 8), (4, 18))
    again = cleaned_again(disk, log.log_end_offset, log_start)
    assert again.end_offset_for_epoch(1) == (1, 5)
    assert again.end_offset_for_epoch(2) == (2, 8)
    assert disk.read_file(FILE) == said


def test_where_a_cleaner_was_the_batches_on_both_sides_of_an_entry_count() -> None:
    """No batch lies where the entry says that its epoch begins, and the one before it has that epoch already."""
    disk = SimDisk()
    log = cleaned(disk, (1, 0), (2, 4), (2, 12), (2, 14), (3, 20), (3, 22), roll_at=20)
    with_epochs(disk, (1, 0), (2, 8), (3, 20))
    again = cleaned_again(disk, log.log_end_offset)
    assert again.epochs.entries == [EpochStart(1, 0), EpochStart(2, 4), EpochStart(3, 20)]


def test_a_later_epoch_that_would_lie_in_a_gap_does_not_cut_what_comes_behind_it() -> None:
    """No batch is there to contradict it but the first one of the segment that is checked."""
    disk = SimDisk()
    log = cleaned(disk, (1, 0), (3, 20), (3, 22), roll_at=20)
    kept = content(log)
    with_epochs(disk, (1, 0), (9, 10))
    again = cleaned_again(disk, log.log_end_offset)
    assert again.epochs.entries == [EpochStart(1, 0), EpochStart(3, 20)]
    assert content(again) == kept


@pytest.mark.parametrize(("which", "epoch"), [(0, 1), (0, 9), (2, 1), (4, 9)])
def test_a_batch_whose_epoch_has_rotted_says_nothing_against_the_file(which: int, epoch: int) -> None:
    """Epochs fall there, or behind it."""
    disk = SimDisk()
    log = written(disk)
    of_another_epoch(disk, 10, which, epoch)
    again = reopened(disk, log)
    assert again.epochs.entries == OF_BATCHES
    assert again.log_end_offset == log.log_end_offset


@pytest.mark.parametrize("log_start", [7, 10, 13, 22])
def test_a_log_that_starts_within_a_segment_has_its_epochs_again_from_there_on(log_start: int) -> None:
    disk = SimDisk()
    written(disk)
    log = open_log(disk, small())
    log.advance_log_start(log_start)
    log.close()
    with_epochs(disk, (9, 0))
    assert reopened(disk, log, log_start_offset=log_start).epochs.entries == log.epochs.entries


def test_after_a_clean_stop_no_batch_is_read_for_the_epochs() -> None:
    """The inventory of the stop has shown that the file is as it was."""
    disk = SimDisk()
    log = written(disk)
    of_records = [f"{ROOT}/{file_name(base, '.log')}" for base in log.bases[:-1]]
    size = sum(len(disk.read_file(path) or b"") for path in of_records)
    with_epochs(disk, (9, 0))
    disk.bytes_read = 0
    again = open_log(disk, small())
    assert again.epochs.entries == [EpochStart(9, 0)]
    assert disk.bytes_read < size
