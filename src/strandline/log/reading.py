"""What a read of a log gets from the files of its segments, where the log's tail in memory does not have it.

Media rot. So the first batch that comes from a file is checked before a client or a follower gets it. Readers check the
batches behind it themselves, and whoever finds one damaged asks for it next: then it is the first.
"""

from strandline.base.errors import ErrorCode
from strandline.base.ports import Buffer, Cold
from strandline.base.value import Value
from strandline.log.gaps import Gaps
from strandline.log.refusals import Refused, refused
from strandline.log.segments import Segments
from strandline.wire.batch import read_header, why_invalid


class Read(Value, frozen=True):
    buffers: tuple[Buffer, ...]
    size: int


NOTHING = Read((), 0)


def read_files(
    segments: Segments,
    gaps: Gaps,
    offset: int,
    max_bytes: int,
    upto: int,
    *,
    min_one: bool,
    is_checked: bool,
    may_wait: bool,
) -> Read | Cold | Refused:
    """Whole batches from the one that holds `offset`, which lies in the log. CORRUPT_MESSAGE if `is_checked` and the
    files do not hold it as it was written. Unless it `may_wait`: Cold if the first of them is not cached."""
    for segment in segments.from_offset(offset):
        segments.warmed(segment)
        cold = None if may_wait else segment.cold_part(offset, max_bytes)
        if cold is not None:
            return cold
        found = segment.read(offset, max_bytes, upto, min_one=min_one)
        if len(found):
            if is_checked and not begins_soundly(gaps, found, offset):
                return refused(ErrorCode.CORRUPT_MESSAGE)
            return Read((found,), len(found))
        if segment.next_offset > offset and not (gaps.are_possible and segment.position_of(offset) is None):
            break
    if is_checked and min_one and is_damaged(segments, gaps, offset):
        return refused(ErrorCode.CORRUPT_MESSAGE)
    return NOTHING


def begins_soundly(gaps: Gaps, found: memoryview, offset: int) -> bool:
    """Is the first batch what was written where `offset` is?"""
    header = read_header(found)
    is_there = header.base_offset <= offset or gaps.may_precede(header.base_offset)
    return is_there and why_invalid(header, found) is None


def is_damaged(segments: Segments, gaps: Gaps, offset: int) -> bool:
    """Nothing was found at `offset`. Is a batch missing or damaged there, or on the way there?"""
    assert offset >= segments.bases[0], "the log begins behind it"
    for segment in segments.from_offset(offset):
        position = segment.index.position_of(offset)
        while position < segment.size:
            found = segment.batch_at(position)
            if found is None:
                return True
            header, batch = found
            if header.last_offset >= offset:
                return not begins_soundly(gaps, batch, offset)
            position = position + header.size
        segments.rest(segment)
        if not gaps.are_possible:
            return True
    return False
