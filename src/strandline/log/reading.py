"""What a read of a log gets: from its tail in memory where that has it, else from the files of its segments.

Media rot. So the first batch that comes from a file is checked before it is handed to a client or a follower; the ones
behind it are checked by who reads them, and whoever finds one damaged asks for it next: then it is the first.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from strandline.base.errors import ErrorCode
from strandline.base.ports import Buffer
from strandline.base.value import Value
from strandline.log.evidence.soundness import batch_at
from strandline.log.refusals import Refused, refused
from strandline.wire.batch import read_header, why_invalid

if TYPE_CHECKING:
    from strandline.log.log import Log


class Read(Value, frozen=True):
    buffers: tuple[Buffer, ...]
    size: int


NOTHING = Read((), 0)


def read(
    log: Log, offset: int, max_bytes: int, upto: int, *, min_one: bool, is_checked: bool = False
) -> Read | Refused:
    if offset >= upto and log.log_start_offset <= offset <= log.log_end_offset:
        return NOTHING
    tailed = log.tail.read(offset, max_bytes, upto, min_one=min_one)
    if tailed is not None and offset >= log.log_start_offset:
        return Read(tuple(tailed[0]), tailed[1])
    if not log.log_start_offset <= offset <= log.log_end_offset:
        return refused(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Received request for offset {offset}, but we only have log segments from offset "
            f"{log.log_start_offset} to {log.log_end_offset}.",
        )
    at = bisect_right(log.bases, offset) - 1
    for segment in log.segments[max(at, 0) :]:
        log.warmed(segment)
        found = segment.read(offset, max_bytes, upto, min_one=min_one)
        if len(found):
            if is_checked and not begins_soundly(log, found, offset):
                return refused(ErrorCode.CORRUPT_MESSAGE)
            return Read((found,), len(found))
        if segment.next_offset > offset and not (log.has_gaps and segment.position_of(offset) is None):
            break
    if is_checked and min_one and is_damaged(log, offset):
        return refused(ErrorCode.CORRUPT_MESSAGE)
    return NOTHING


def begins_soundly(log: Log, found: memoryview, offset: int) -> bool:
    """Is the first batch what was written where `offset` is?"""
    header = read_header(found)
    is_there = header.base_offset <= offset or log.has_gap_before(header.base_offset)
    return is_there and why_invalid(header, found) is None


def is_damaged(log: Log, offset: int) -> bool:
    """Nothing was found at `offset`. Is there a batch that holds it, and is all sound that leads there?"""
    at = max(0, bisect_right(log.bases, offset) - 1)
    for segment in log.segments[at:]:
        position = segment.index.position_of(offset)
        while position < segment.size:
            found = batch_at(segment, position)
            if found is None:
                return True
            header, batch = found
            if header.last_offset >= offset:
                return not begins_soundly(log, batch, offset)
            position = position + header.size
        log.rest(segment)
        if not log.has_gaps:
            return True
    return False
