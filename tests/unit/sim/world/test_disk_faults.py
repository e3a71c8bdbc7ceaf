"""What a log makes of a disk that rots, fills up, or fails to sync: whole batches that were appended, or an error."""

from random import Random

import pytest
from tests.rows import each
from tests.unit.log.logs import ROOT, append, content, open_log, produced, small

from strandline.base.ports import DiskError
from strandline.log.config import LogConfig
from strandline.log.log import Log
from strandline.log.reading import Read
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import Tail, batches, scan, why_invalid

SEEDS = range(40)
EPOCH = range(12, 16)  # of a batch's bytes: no checksum covers the leader epoch


def sync(disk: SimDisk, log: Log) -> int:
    disk.sync(log.unsynced())
    log.mark_synced(log.log_end_offset)
    disk.sync(["/d"])
    return log.log_end_offset


def written(rng: Random) -> tuple[SimDisk, bytes]:
    """A disk with a log that was stopped cleanly, and what is in it."""
    disk = SimDisk()
    log = open_log(disk, small())
    for _ in range(rng.randrange(1, 12)):
        append(log, produced(rng.randrange(1, 4), size=rng.randrange(0, 150)))
    held = content(log)
    sync(disk, log)
    log.close()
    disk.sync([*disk.contents(), ROOT])
    return disk, held


def rotten_byte(before: dict[str, bytes], where: tuple[str, int]) -> int:
    """Which byte of its batch it is."""
    path, position = where
    hit = next(header for header in batches(before[path]) if header.end > position)
    return position - hit.position


# --- rot


@each("seed", SEEDS)
def test_after_an_unclean_stop_the_log_ends_before_a_bit_that_rotted(seed: int) -> None:
    rng = Random(seed)
    disk, held = written(rng)
    before = disk.contents()
    where = disk.rot(rng)
    assert where is not None
    kept = content(open_log(disk, small(), clean=False, recovery_point=0))
    if rotten_byte(before, where) not in EPOCH:
        assert held.startswith(kept)
        assert len(kept) < len(held)


@each("seed", SEEDS)
def test_a_reader_that_checks_batches_finds_a_bit_that_rotted_under_a_running_log(seed: int) -> None:
    rng = Random(seed)
    disk, held = written(rng)
    before = disk.contents()
    log = open_log(disk, small(), tail_bytes=0)
    where = disk.rot(rng)
    assert where is not None
    found, complete = b"", True
    offset = 0
    while offset < log.log_end_offset and complete:
        read = log.read(offset, 1 << 20, upto=log.log_end_offset, min_one=True)
        assert isinstance(read, Read)
        piece = b"".join(map(bytes, read.buffers))
        walked = scan(piece)
        complete = bool(walked.headers) and walked.tail is Tail.COMPLETE
        for header in walked.headers:
            complete &= header.base_offset == offset and why_invalid(header, piece) is None
            if not complete:
                break
            found += piece[header.position : header.end]
            offset = header.next_offset
    if rotten_byte(before, where) not in EPOCH:
        assert not complete
        assert held.startswith(found)


def test_what_did_not_rot_is_read_and_recovered() -> None:
    disk, held = written(Random(5))
    assert disk.rot(Random(5), lambda path: path.endswith("nothing")) is None
    assert content(open_log(disk, small(), tail_bytes=0)) == held
    assert content(open_log(disk, small(), clean=False)) == held


def test_a_base_offset_that_rotted_does_not_move_the_log_end_after_a_clean_stop() -> None:
    disk = SimDisk()
    log = open_log(disk)
    append(log, produced(3))
    log.close()
    disk.flip(log.active.path, 2, 0)
    assert open_log(disk).log_end_offset <= 3


@each("name", ["index", "timeindex"])
@each("seed", SEEDS)
def test_an_index_that_is_damaged_after_a_clean_stop_hides_nothing_of_the_log(name: str, seed: int) -> None:
    rng = Random(seed)
    disk = SimDisk()
    log = open_log(disk, LogConfig(index_interval_bytes=0))
    for _ in range(rng.randrange(2, 12)):
        append(log, produced(rng.randrange(1, 4)))
    held, end = content(log), log.log_end_offset
    log.close()
    path = log.active.path.replace(".log", f".{name}")
    size = len(disk.read_file(path) or b"")
    if rng.randrange(2) and size:
        disk.flip(path, rng.randrange(size), rng.randrange(8))
    else:
        disk.open(path).truncate(rng.randrange(size + 1))
    again = open_log(disk, LogConfig(index_interval_bytes=0))
    assert (again.log_end_offset, content(again)) == (end, held)
    append(again, produced(1))
    assert content(again).startswith(held)
    assert again.log_end_offset == end + 1


def test_after_a_clean_stop_no_loss_of_power_changes_anything() -> None:
    """Indexes too: nothing is checked at the next start."""
    disk = SimDisk()
    log = open_log(disk, LogConfig(index_interval_bytes=0, segment_bytes=300))
    for _ in range(12):
        append(log, produced(2))
    disk.sync(log.write_all())
    log.close()
    before = disk.contents()
    assert [path for path in before if disk.lossy(path)] == []
    disk.crash(Random(1))
    assert disk.contents() == before


# --- a full disk


@each("seed", SEEDS)
def test_a_log_whose_disk_is_full_comes_back_with_all_that_was_synced_and_nothing_in_part(seed: int) -> None:
    rng = Random(seed)
    disk = SimDisk(capacity=rng.randrange(300, 2500))
    log = open_log(disk, small())
    synced, sent = 0, b""
    with pytest.raises(DiskError, match="No space left on device"):
        while True:
            append(
                log, produced(rng.randrange(1, 4), size=rng.randrange(0, 150)), rng.randrange(0, 3) + log.latest_epoch
            )
            sent = content(log)
            if rng.randrange(0, 3) == 0:
                synced = sync(disk, log)
    assert content(log) == sent
    if rng.randrange(0, 2):
        disk.crash(rng)
    else:
        disk.abandon()
    try:
        log = open_log(disk, small(), clean=False, recovery_point=synced)
    except DiskError:
        disk.capacity = None  # somebody made room
        log = open_log(disk, small(), clean=False, recovery_point=synced)
    assert log.log_end_offset >= synced
    assert sent.startswith(content(log))
    disk.capacity = None
    append(log, produced(2), log.latest_epoch + 1)
    again = content(log)
    log.close()
    assert content(open_log(disk, small())) == again


@each("seed", SEEDS)
def test_an_append_that_did_not_fit_can_be_repeated_when_there_is_room(seed: int) -> None:
    rng = Random(seed)
    disk = SimDisk()
    log = open_log(disk, small())
    for _ in range(rng.randrange(0, 6)):
        append(log, produced(rng.randrange(1, 4), size=60))
    before, end = content(log), log.log_end_offset
    disk.capacity = disk.used + rng.randrange(0, 140)
    with pytest.raises(DiskError):
        append(log, produced(2, size=200))
    log.check()
    assert (content(log), log.log_end_offset) == (before, end)
    disk.capacity = None
    append(log, produced(rng.randrange(1, 3), size=rng.randrange(0, 20)))
    again = content(log)
    assert again.startswith(before)
    disk.abandon()
    assert content(open_log(disk, small(), clean=False)) == again


# --- a sync that fails


@each("killed_first", [False, True])
@each("seed", SEEDS)
def test_after_a_failed_sync_and_a_loss_of_power_all_that_was_synced_before_is_there(
    seed: int, killed_first: bool
) -> None:
    """A process that starts again between the two reads, and syncs, what was never on the medium: no error tells it.
    So what it acknowledges there may be lost; but what comes back is whole, and begins with what was synced before."""
    rng = Random(seed)
    disk = SimDisk()
    log = open_log(disk, small())
    for _ in range(rng.randrange(0, 4)):
        append(log, produced(2, size=60))
    synced = sync(disk, log)
    for _ in range(rng.randrange(1, 4)):
        append(log, produced(2, size=60))
    disk.fail_next_sync(lambda path: path.endswith(".log"))
    with pytest.raises(DiskError, match="Input/output error"):
        sync(disk, log)
    assert log.recovery_point == synced
    sent = content(log)
    if killed_first:
        disk.abandon()
        log = open_log(disk, small(), clean=False, recovery_point=synced)
        assert content(log) == sent
        append(log, produced(1))
        sent = content(log)
        sync(disk, log)
    disk.crash(rng)
    log = open_log(disk, small(), clean=False, recovery_point=synced)
    assert log.log_end_offset >= synced
    assert sent.startswith(content(log))
