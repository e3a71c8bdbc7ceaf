"""What a read of a log gets: from its tail in memory where that has it, else from the files of its segments."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from strandline.base.errors import ErrorCode
from strandline.base.ports import Buffer
from strandline.base.value import Value
from strandline.log.refusals import Refused, refused

if TYPE_CHECKING:
    from strandline.log.log import Log


class Read(Value, frozen=True):
    buffers: tuple[Buffer, ...]
    size: int


NOTHING = Read((), 0)


def read(log: Log, offset: int, max_bytes: int, upto: int, *, min_one: bool) -> Read | Refused:
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
            return Read((found,), len(found))
        if segment.next_offset > offset and not (log.has_gaps and segment.position_of(offset) is None):
            break
    return NOTHING
