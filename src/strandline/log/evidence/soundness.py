"""Is what a log's files hold what was written there? Media rot: a file may say something else than what it was given.

A batch is sound if its header makes sense and its CRC is right, if it begins where the one before it ended (but for the
gaps that a cleaner made), ends before the next segment begins, and bears the leader epoch that the log has there: base
offset and leader epoch are what no CRC covers.

Where a batch is damaged its length may be wrong too. Then only an index entry says where a later batch begins.
"""

from bisect import bisect_right
from collections.abc import Iterator
from struct import Struct as Layout

from strandline.base.crc32c import crc32c
from strandline.base.value import Value
from strandline.log.log import Log
from strandline.log.segment import Segment, header_at
from strandline.wire.batch import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    why_invalid,
)
from strandline.wire.compress import Codec

# Of a header what is looked at at first sight: base offset, length, epoch, magic, CRC, attributes, delta, record count.
SIGHT = Layout(">qiibIhi30xi")
CODEC_MAX = int(Codec.ZSTD)
UNKNOWN = -1
STEP_BYTES = 1 << 20
ENTRIES_MAX = 256  # that are tried behind damage


class Damage(Value, frozen=True):
    """In the segment that begins at `base`, the bytes [position, until) are not those that were written. Because of
    that [start, end) cannot be read: the records that these bytes had, and if not `is_exact` some behind them. The
    first batch that is sound again begins at `resume`."""

    base: int
    position: int
    until: int
    start: int
    end: int
    resume: int
    is_exact: bool


class Checked(Value, frozen=True):
    """How far a segment was checked, and what was found there."""

    position: int
    offset: int
    damage: Damage | None = None


def is_sound(log: Log, header: BatchHeader, buffer: memoryview, offset: int) -> bool:
    """`offset`: where the batch before it ended, if that is known."""
    if why_invalid(header, buffer) is not None:  # guard: scrubber-trusts-every-crc
        return False
    follows = offset in (UNKNOWN, header.base_offset)
    if not follows and (header.base_offset < offset or not log.gaps.may_precede(header.base_offset)):
        return False
    if header.last_offset < log.log_start_offset:
        return True  # deleted: nobody reads it, and nothing is known of its epoch
    return header.partition_leader_epoch == log.epochs.epoch_at(header.last_offset)


def pass_sound(log: Log, buffer: memoryview, at: int, offset: int, bound: int) -> tuple[int, int]:
    """Pass the batches from `at` on that are sound at first sight, while they begin below `bound` and end there: they
    follow one another, and lie whole in the buffer. `is_sound` agrees with each of them, and decides about the next
    one. Nothing is built for a batch, as nearly all of what is checked is sound. Returns where the next one begins."""
    size, start, epoch, until = len(buffer), log.log_start_offset, -1, -1
    while offset < bound and at + HEADER_SIZE <= size:
        base, length, leader_epoch, magic, crc, attributes, delta, count = SIGHT.unpack_from(buffer, at)
        end, last = at + LOG_OVERHEAD + length, base + delta
        if last >= until:
            epoch, until = log.epochs.span_at(last)
        if (
            base != offset
            or magic != MAGIC
            or not at + HEADER_SIZE <= end <= size
            or leader_epoch != epoch
            or not start <= last < bound
            or delta < 0
            or count < 0
            or attributes & CODEC_MASK > CODEC_MAX
            or crc != crc32c(buffer[at + ATTRIBUTES_AT : end])
        ):
            break
        at, offset = end, last + 1
    return at, offset


def bound_of(log: Log, segment: Segment) -> int:
    """Where the offsets of this segment end."""
    bound = log.segments.bound_of(segment)
    bound = log.log_end_offset if bound is None else bound
    assert bound >= segment.base_offset, "it is no segment of this log"
    return bound


def check(log: Log, segment: Segment, position: int, offset: int, upto: int, limit: int) -> Checked:
    """Check the batches from `position` on below the offset `upto`: at most `limit` bytes of them, but one at least."""
    assert limit > 0 and position >= 0
    bound = bound_of(log, segment)
    buffer = segment.file.read(position, max(limit, HEADER_SIZE))
    at, offset = pass_sound(log, buffer[: max(segment.size - position, 0)], 0, offset, min(upto, bound))
    while offset < upto and position + at < segment.size:
        if at and len(buffer) - at < HEADER_SIZE and position + len(buffer) < segment.size:
            break  # the next step reads it
        header = header_at(buffer, at, segment.size - position - at)
        if header is not None and header.end > len(buffer):
            if at:
                break
            buffer = segment.file.read(position, header.size)
        is_whole = header is not None and header.next_offset <= bound and is_sound(log, header, buffer, offset)
        if header is None or not is_whole:
            return Checked(position + at, offset, damage_at(log, segment, position + at, offset))
        whole = buffer[: segment.size - position]
        at, offset = pass_sound(log, whole, header.end, header.next_offset, min(upto, bound))
    if position + at >= segment.size and offset < bound and offset < upto and not log.has_gaps:
        return Checked(position + at, offset, damage_at(log, segment, position + at, offset))  # its end is gone
    return Checked(position + at, offset)


def damage_at(log: Log, segment: Segment, position: int, offset: int) -> Damage:
    """What cannot be read because no sound batch begins at `position`."""
    assert 0 <= position <= segment.size
    found = segment.batch_at(position) if position < segment.size else None
    if found is not None:
        until = position + found[0].size
        bound = bound_of(log, segment)
        if until == segment.size:
            return Damage(segment.base_offset, position, until, offset, bound, bound, is_exact=True)
        following = segment.batch_at(until)
        if following is not None and is_sound(log, *following, UNKNOWN) and following[0].base_offset > offset:
            resume = following[0].base_offset
            return Damage(segment.base_offset, position, until, offset, resume, resume, is_exact=True)
    positions = segment.index.positions
    first = bisect_right(positions, position)
    for until in positions[first : first + ENTRIES_MAX]:
        following = segment.batch_at(until)
        if following is not None and is_sound(log, *following, UNKNOWN) and following[0].base_offset > offset:
            header = following[0]
            # A reader of this batch comes through the damage, unless it asks for its last record.
            return Damage(
                segment.base_offset, position, until, offset, header.last_offset, header.base_offset, is_exact=False
            )
    bound = bound_of(log, segment)
    return Damage(segment.base_offset, position, segment.size, offset, bound, bound, is_exact=False)


def damages(log: Log) -> Iterator[Damage]:
    """All that keeps records up to the log's end from being read."""
    for segment in list(log.segments):
        position, offset, before = 0, segment.base_offset, -1
        while before < position < segment.size:
            before = position
            checked = check(log, segment, position, offset, log.log_end_offset, STEP_BYTES)
            position, offset, damage = checked.position, checked.offset, checked.damage
            if damage is not None:
                assert position <= damage.until <= segment.size and offset <= damage.resume
                position, offset = damage.until, damage.resume
                if damage.end > log.log_start_offset:
                    yield damage
        log.segments.rest(segment)


def find(log: Log, offset: int, limit: int) -> Damage | None:
    """What keeps the batch that holds `offset` from being read, if anything does: of the way to it, which begins at an
    index entry, `limit` bytes are looked at, and a batch at least."""
    assert limit > 0
    segment = log.segments.from_offset(offset)[0]
    try:
        positions = segment.index.positions
        entry = bisect_right(segment.index.offsets, offset - segment.base_offset)
        while True:
            position = positions[entry - 1] if entry else 0
            begun = UNKNOWN if entry else segment.base_offset
            checked = check(log, segment, position, begun, offset + 1, limit)
            if checked.damage is None or checked.damage.start != UNKNOWN or not entry:
                return checked.damage
            entry -= 1  # where the batch before it ends says which offset the damage begins at
    finally:
        log.segments.rest(segment)
