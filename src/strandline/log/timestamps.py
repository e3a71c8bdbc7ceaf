"""Records found by their timestamps (ListOffsets).

Headers and time indexes say where to look; only the one batch that may have the answer is decoded. A producer may have
sent records that can not be read, with a header that is sound: such a batch counts as one record. Where the file does
not hold what was written, nobody knows what lies there: to name a later record would send a consumer past it.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from strandline.base.value import Value
from strandline.log.segment import SEEK_BYTES, Segment
from strandline.wire.batch import BatchHeader, read_header, why_invalid
from strandline.wire.compress import Corrupt
from strandline.wire.record import PRODUCED_SIZE_MAX, records

SEARCH_BYTES = 1 << 20  # a search that reads more has the kernel read on
TIMESTAMP_END = 1 << 63  # a record has the difference to its batch's timestamp, and both may add up to more


class Found(Value, frozen=True):
    """A record found by its timestamp."""

    timestamp: int
    offset: int
    leader_epoch: int


class Damaged(Value, frozen=True):
    """The search came upon damage on the disk, at or before this offset."""

    offset: int


def at_or_after(segments: Iterable[Segment], timestamp: int, log_start_offset: int) -> Found | Damaged | None:
    """The first record, at or after the log start, whose timestamp is at least `timestamp`."""
    assert log_start_offset >= 0
    for segment in segments:
        if segment.max_timestamp < timestamp or segment.next_offset <= log_start_offset:
            continue
        position = segment.position_of(segment.time_index.offset_before(timestamp)) or 0
        following = segment.base_offset
        for header in segment.headers(position, SEEK_BYTES):
            position, following = header.end, header.next_offset
            if header.max_timestamp < timestamp or header.last_offset < log_start_offset:
                continue
            if not is_sound(segment, header):
                return Damaged(header.base_offset)
            for found in stamps(segment, header, log_start_offset):
                if found.timestamp >= timestamp:
                    return found
        if position < segment.size:
            return Damaged(following)
    return None


def search_start(
    segments: Sequence[Segment], timestamp: int | None, log_start_offset: int
) -> tuple[Segment, int, int] | None:
    """Where `at_or_after` begins to read, and how many bytes it reads as far as the indexes say; the same of `latest`
    without a timestamp. None if it reads nothing."""
    if timestamp is None:
        timestamp = max((s.max_timestamp for s in segments if s.size), default=0)
    for segment in segments:
        if segment.max_timestamp >= timestamp and segment.next_offset > log_start_offset:
            position = segment.index.position_of(segment.time_index.offset_before(timestamp))
            until = segment.time_index.offset_from(timestamp)
            end = None if until is None else segment.index.bound_of(until)
            size = (segment.size if end is None else end + SEEK_BYTES) - position
            assert size >= 0, "an index points backwards"
            assert position <= segment.size
            return segment, position, min(size, SEARCH_BYTES)
    return None


def is_sound(segment: Segment, header: BatchHeader) -> bool:
    buffer = segment.file.read(header.position, header.size)
    return why_invalid(read_header(buffer), buffer) is None


def latest(segments: Sequence[Segment], log_start_offset: int) -> Found | Damaged | None:
    """The first record with the largest timestamp, at or after the log start."""
    assert all(one.base_offset < two.base_offset for one, two in pairwise(segments))
    largest = max((s.max_timestamp for s in segments if s.size), default=None)
    found = None if largest is None else at_or_after(segments, largest, log_start_offset)
    if found is not None:
        return found
    # It was deleted, perhaps in the middle of a batch; or its header lied about the records.
    best: Found | None = None
    for segment in segments:
        for header in segment.headers(segment.position_of(log_start_offset) or 0):
            if header.last_offset >= log_start_offset and (best is None or header.max_timestamp > best.timestamp):
                for found in stamps(segment, header, log_start_offset):
                    assert found.offset >= log_start_offset, "deleted records are not found"
                    best = found if best is None or found.timestamp > best.timestamp else best
    return best


def stamps(segment: Segment, header: BatchHeader, log_start_offset: int) -> Iterator[Found]:
    """The records of a batch that are not deleted."""
    epoch = header.partition_leader_epoch
    buffer = segment.file.read(header.position, header.size)
    try:
        for record in records(read_header(buffer), buffer, PRODUCED_SIZE_MAX):
            if not -TIMESTAMP_END <= record.timestamp < TIMESTAMP_END:
                raise Corrupt("no answer can name this timestamp")
            if record.offset >= log_start_offset:
                yield Found(record.timestamp, record.offset, epoch)
    except Corrupt:
        yield Found(header.max_timestamp, max(header.base_offset, log_start_offset), epoch)
