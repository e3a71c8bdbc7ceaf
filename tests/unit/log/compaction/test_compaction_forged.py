"""What producers can make up, and what a pass does with it: the broker lives on."""

from struct import pack_into

import pytest
from tests.unit.log.compaction.compacting import begin, compact, compacted, finish, headers, keyed, pairs, roll, write
from tests.unit.log.logs import NOW, append, open_log, small

from strandline.log.cleaning.compaction import Uncleanable
from strandline.log.config import LONG_MAX
from strandline.log.log import Appended
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import CRC_AT, MAX_TIMESTAMP_AT, Draft, build, crc_of, read_header

BASE_TIMESTAMP_AT = 27


def signed(batch: bytearray) -> bytes:
    pack_into(">I", batch, CRC_AT, crc_of(read_header(batch), batch))
    return bytes(batch)


def forged(*records: Draft) -> bytes:
    """Its header says that all is from now; the records' own times are differences to that."""
    batch = bytearray(build(records))
    pack_into(">q", batch, BASE_TIMESTAMP_AT, NOW)
    pack_into(">q", batch, MAX_TIMESTAMP_AT, NOW)
    return signed(batch)


def test_a_tombstone_that_is_to_stay_for_ever_stays(disk: SimDisk) -> None:
    log = open_log(disk, compacted(delete_retention_ms=LONG_MAX))
    write(log, ("a", "1"), ("a", None), ("b", "1"))
    roll(log, disk)
    compact(log, disk)
    assert headers(log)[1].base_timestamp == LONG_MAX
    write(log, ("c", "1"))
    roll(log, disk)
    compact(log, disk, now=NOW + 10**15)
    assert pairs(log) == [(1, "a", None), (2, "b", "1"), (3, "c", "1")]


@pytest.mark.parametrize("value", [b"1", None], ids=["value", "tombstone"])
@pytest.mark.parametrize("difference", [LONG_MAX, -LONG_MAX, -LONG_MAX - 1])
def test_a_batch_whose_times_no_other_can_bear_stays_whole(disk: SimDisk, value: bytes | None, difference: int) -> None:
    log = open_log(disk, compacted())
    batch = forged((0, b"a", b"1", ()), (difference, b"b", value, ()))
    assert isinstance(append(log, batch), Appended)
    write(log, ("a", "2"), ("c", "1"), ("c", "2"))
    roll(log, disk)
    compact(log, disk)
    assert [offset for offset, _, _ in pairs(log)][-2:] == [2, 4]
    assert log.cleaned_to == 5


def test_a_record_that_nobody_can_read_leaves_the_log_alone(disk: SimDisk) -> None:
    log = open_log(disk, small())
    batch = bytearray(keyed(("a", "1")))
    batch[batch.rindex(b"h")] = 0xFF  # no UTF-8
    assert isinstance(append(log, signed(batch)), Appended)
    log.reconfigure(compacted())
    write(log, ("a", "2"))
    roll(log, disk)
    run = begin(log)
    with pytest.raises(Uncleanable):
        finish(run, disk)
    run.abandon()
    assert log.cleaned_to == 0


def test_a_segment_that_the_disk_lost_is_not_waited_for(disk: SimDisk) -> None:
    log = open_log(disk, compacted(max_compaction_lag_ms=1000))
    write(log, ("a", "1"), ("a", "2"))
    roll(log, disk)
    log.segments[0].file.truncate(20)
    run = begin(log)
    with pytest.raises(Uncleanable):
        finish(run, disk)
