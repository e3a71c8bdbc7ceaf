"""A cut is as much to be synced as an append: a power loss that undoes it brings old batches back."""

from strandline.base.time import Instant
from strandline.log.config import LogConfig
from strandline.log.log import Log
from strandline.sim.world.disk import SimDisk
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


def test_a_segment_that_ends_at_the_recovery_point_may_have_been_cut_there_and_is_checked() -> None:
    """1. Segments [0, 1) and [1, 2) are durable. 2. A truncation to 1 deletes the second one, and lowers the recovery
    point to 1. 3. The first one gets new batches. 4. The power goes: the new batches are on the medium, and so is the
    second segment, since its deletion was never synced."""
    disk = SimDisk()
    log = opened(disk)
    append(log, b"a", 1)
    log.roll(1)
    append(log, b"b", 1)
    disk.sync([*log.unsynced(), *(path for segment in log.segments for path in segment.flush_indexes())])
    leftover = {path: disk.read_file(path) for path in log.segments[1].paths}
    log.truncate_to(1)
    for value in (b"B", b"C"):
        append(log, value, 2)
    log.close()
    for path, content in leftover.items():
        assert content is not None
        disk.write_file(path, content)
    again = opened(disk, recovery_point=1)
    assert [segment.base_offset for segment in again.segments] == [0]
    assert (again.log_end_offset, again.latest_epoch) == (3, 2)
    again.check()


def test_epochs_of_a_log_whose_segments_are_gone_are_gone_with_them() -> None:
    """Else the replica would ask in an epoch of which it has no record, and be told that nothing diverges."""
    for clean in (True, False):
        disk = SimDisk()
        log = opened(disk)
        append(log, b"a", 7)
        disk.sync(log.unsynced())
        for path in log.segments[0].paths:
            disk.remove(path)
        again = Log.open(disk, "/d/t-0", LogConfig(), NOW, clean=clean, recovery_point=0, log_start_offset=0)
        assert (again.log_end_offset, again.latest_epoch) == (0, -1)
        again.check()


def test_a_cut_takes_the_recovery_point_along() -> None:
    """Else it would vouch for what is appended next, before that is synced."""
    disk = SimDisk()
    log = opened(disk)
    for value in (b"a", b"b", b"c"):
        append(log, value, 1)
    disk.sync(log.unsynced())
    log.mark_synced(3)
    log.truncate_to(1)
    assert log.recovery_point == 1
    log.check()


def test_retention_takes_nothing_above_the_high_watermark() -> None:
    log = Log.open(
        SimDisk(), "/d/t-0", LogConfig(retention_bytes=0), NOW, clean=False, recovery_point=0, log_start_offset=0
    )
    for value in (b"a", b"b", b"c"):
        append(log, value, 1)
        log.roll(log.log_end_offset)
    assert log.delete_old_segments(NOW, 1) == 1
    assert log.log_start_offset == 1
    assert log.delete_old_segments(NOW, 3) == 2
    assert log.log_start_offset == 3
