"""Headers that have rotted, in a log that is cut, opened or swapped: an error of the disk at the most."""

from struct import pack_into

import pytest
from tests.unit.log.compaction.compacting import compacted
from tests.unit.log.logs import ROOT, append, open_log, produced

from strandline.base.ids import OFFSET_MAX
from strandline.base.ports import DiskError
from strandline.log.config import LogConfig
from strandline.log.refusals import Refused
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import batches, build

LENGTH_AT, DELTA_AT = 8, 23


def rotten(disk: SimDisk, path: str, batch: int, at: int, form: str, value: int) -> None:
    content = bytearray(disk.read_file(path) or b"")
    pack_into(form, content, list(batches(content))[batch].position + at, value)
    disk.tamper(path, bytes(content))


@pytest.mark.parametrize("length", [-1, 1 << 30])
def test_a_log_is_not_cut_where_the_way_there_is_damaged(length: int) -> None:
    """Its end would stay where it is, and nobody would know."""
    disk = SimDisk()
    log = open_log(disk, LogConfig(index_interval_bytes=1000))
    for _ in range(40):
        append(log, produced(1))
    assert 1 < len(log.active.index.offsets) < 10
    rotten(disk, log.active.path, 3, LENGTH_AT, ">i", length)
    log.active.release()
    with pytest.raises(DiskError):
        log.truncate_to(5)
    assert log.log_end_offset == 40


def test_a_segment_that_waits_to_take_its_place_may_have_other_offsets() -> None:
    disk = SimDisk()
    open_log(disk, compacted()).close()
    path = f"{ROOT}/{5:020d}.log.swap"
    disk.tamper(path, build([(0, b"k", b"v", ())], base_offset=0, leader_epoch=0))
    assert open_log(disk, compacted(), clean=False).log_end_offset == 0


def test_a_batch_that_ends_before_its_segment_begins_is_no_batch() -> None:
    disk = SimDisk()
    log = open_log(disk, compacted(index_interval_bytes=0))
    log.truncate_fully_and_start_at(3)
    for at in range(6):
        log.append_as_follower(build([(1_000_000 + at, b"k", b"v", ())], base_offset=3 + at, leader_epoch=0), 0)
    log.close()
    path = log.active.path
    rotten(disk, path, 0, DELTA_AT, ">i", -5)
    rotten(disk, path, 4, DELTA_AT, ">i", -9)
    for name in (".index", ".timeindex"):
        disk.tamper(path.replace(".log", name), None)
    assert open_log(disk, compacted(index_interval_bytes=0)).log_end_offset == 3


def test_no_record_is_taken_from_a_leader_behind_the_last_offset() -> None:
    """No checkpoint could say where such a log ends."""
    log = open_log(SimDisk(), compacted())
    log.truncate_fully_and_start_at(OFFSET_MAX)
    done = log.append_as_follower(build([(0, b"k", b"v", ())], base_offset=OFFSET_MAX, leader_epoch=0), 0)
    assert isinstance(done, Refused)
    assert log.log_end_offset == OFFSET_MAX
