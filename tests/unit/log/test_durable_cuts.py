"""A cut is as much to be synced as an append: a power loss that undoes it brings old batches back."""

from strandline.base.time import Instant
from strandline.log.config import LogConfig
from strandline.log.log import Log
from strandline.sim.disk import SimDisk
from strandline.wire.batch import build

NOW = Instant(1_700_000_000_000)


def opened(disk: SimDisk, recovery_point: int = 0) -> Log:
    where = {"clean": False, "recovery_point": recovery_point, "log_start_offset": 0}
    return Log.open(disk, "/d/t-0", LogConfig(), NOW, **where)  # type: ignore[arg-type]


def append(log: Log, value: bytes, epoch: int) -> None:
    log.append_as_leader(bytearray(build([(NOW, None, value, ())])), epoch, NOW)


def test_a_segment_that_was_cut_is_synced_although_the_next_append_goes_to_another() -> None:
    disk = SimDisk()
    log = opened(disk)
    for value in (b"a", b"b", b"c"):
        append(log, value, 1)
    disk.sync(log.unsynced())
    log.mark_synced(3)
    log.truncate_to(1)
    log.roll(1)
    append(log, b"B", 2)
    sealed = log.segments[0].path
    assert sealed in log.unsynced()
    disk.sync(log.unsynced())
    log.mark_synced(2)
    assert sealed not in log.unsynced()


def test_a_cut_by_a_process_that_was_killed_is_synced_by_the_next_one() -> None:
    disk = SimDisk()
    log = opened(disk)
    for value in (b"a", b"b", b"c"):
        append(log, value, 1)
    disk.sync(log.unsynced())
    log.mark_synced(3)
    log.truncate_to(1)
    log.close()
    assert log.segments[0].path in opened(disk, recovery_point=1).unsynced()


def test_indexes_that_were_built_anew_are_synced_before_their_segment_is_trusted_again() -> None:
    """What the medium has may be older: of batches that a truncation took."""
    disk = SimDisk()
    log = opened(disk)
    append(log, b"a", 1)
    log.roll(1)
    append(log, b"b", 1)
    log.close()
    again = opened(disk)
    assert set(again.segments[0].paths[1:]) <= set(again.unsynced())
    assert not set(again.segments[1].paths[1:]) & set(again.unsynced())
