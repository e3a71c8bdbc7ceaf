"""May these bytes of another replica take the place of damaged ones here?

Two replicas have the same batch at an offset if both have that below their high watermarks and in the same leader
epoch: a leader writes an offset once. So of what was fetched only such batches are taken
  - whose CRC is right, which begin where the damage begins, and each where the one before it ends
  - that bear the leader epoch which this log has there
  - that end below this replica's high watermark and below that of the replica that they are from
  - that fill the damaged bytes up to a sound batch, or to the end of the segment's file.

Replicas of a compacted topic clean each its own log, and so may have different batches at an offset. There one is taken
only if the damaged bytes still have its CRC, or all that the CRC covers.
"""

from strandline.log.evidence.soundness import Damage, is_sound
from strandline.log.log import Log
from strandline.log.segment import Segment
from strandline.wire.batch import ATTRIBUTES_AT, CRC_AT, BatchHeader, batches, why_invalid

FETCH_BYTES_MAX = 8 << 20


def fitting(
    log: Log, segment: Segment, damage: Damage, fetched: memoryview, upto: int
) -> tuple[memoryview, int] | None:
    """The bytes to write at the damage, and the offset behind them; None if they do not fit."""
    assert damage.position <= damage.until
    position, offset, end = damage.position, damage.start, 0
    for header in batches(fetched):
        if not is_same(log, segment, header, fetched, position, offset) or header.next_offset > upto:
            return None
        assert header.size > 0
        position, offset, end = position + header.size, header.next_offset, header.end
        if position > damage.until:
            return None
        if is_joint(log, segment, damage, position, offset):
            return fetched[:end], offset
    # It may be more than was asked for at once. Where nothing was ever compacted, the rest has its place behind it.
    is_part = damage.until - damage.position > FETCH_BYTES_MAX and not log.has_gaps
    return (fetched[:end], offset) if end and is_part else None


def is_same(log: Log, segment: Segment, header: BatchHeader, fetched: memoryview, position: int, offset: int) -> bool:
    """Is it the batch that was here?"""
    if why_invalid(header, fetched) is not None:
        return False
    if header.partition_leader_epoch != log.epochs.epoch_at(header.last_offset):
        return False
    if header.base_offset != offset and not (header.base_offset > offset and log.gaps.may_precede(header.base_offset)):
        return False
    if not log.has_gaps:
        return True
    ours, theirs = segment.file.read(position, header.size), fetched[header.position : header.end]
    has_crc = ours[CRC_AT:ATTRIBUTES_AT] == theirs[CRC_AT:ATTRIBUTES_AT]
    return has_crc or ours[ATTRIBUTES_AT:] == theirs[ATTRIBUTES_AT:]


def is_joint(log: Log, segment: Segment, damage: Damage, position: int, offset: int) -> bool:
    """Does what lies at `position` follow upon a batch that ends at `offset`?"""
    assert damage.position <= position <= damage.until
    if position == damage.until:
        return offset == damage.resume or (log.has_gaps and offset < damage.resume)
    following = segment.batch_at(position)
    return following is not None and is_sound(log, *following, offset)
