"""Where a batch begins no checksum covers. If the medium has changed that, the log is left as it is."""

from struct import pack_into

import pytest
from tests.unit.log.compaction.compacting import begin, compact, finish, pairs, roll, write

from strandline.log.cleaning.compaction import Uncleanable
from strandline.log.log import Log
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import batches


def begins_at(log: Log, disk: SimDisk, batch: int, offset: int) -> None:
    """In the first segment."""
    path = log.segments[0].path
    content = bytearray(disk.read_file(path) or b"")
    pack_into(">q", content, list(batches(content))[batch].position, offset)
    disk.tamper(path, bytes(content))


@pytest.mark.parametrize("offset", [2, 3, 4, 1 << 40])
@pytest.mark.parametrize("map_bytes", [1, 1 << 20], ids=["the map is full", "the map has room"])
@pytest.mark.parametrize("limit", [1, 1 << 20], ids=["a batch in a step", "all in a step"])
def test_a_batch_that_lies_at_another_offset_ends_the_pass(
    log: Log, disk: SimDisk, offset: int, map_bytes: int, limit: int
) -> None:
    write(log, ("a", "1"), ("b", "1"), ("c", "1"), ("a", "2"))
    roll(log, disk)
    begins_at(log, disk, 1, offset)
    before = disk.read_file(log.segments[0].path)
    log.segments[0].release()
    with pytest.raises(Uncleanable):
        finish(begin(log, map_bytes=map_bytes), disk, limit)
    assert disk.read_file(log.segments[0].path) == before


def test_nor_does_one_that_begins_before_its_segment(log: Log, disk: SimDisk) -> None:
    write(log, ("a", "1"))
    roll(log, disk)
    write(log, ("a", "2"), ("a", "3"))
    roll(log, disk)
    compact(log, disk)
    assert [offset for offset, _, _ in pairs(log)][-1] == 2
    write(log, ("b", "1"))
    roll(log, disk)
    begins_at(log, disk, 0, -1)
    log.segments[0].release()
    with pytest.raises(Uncleanable):
        compact(log, disk)
