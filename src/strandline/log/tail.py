"""The newest part of a log, still in memory: the very buffers that were appended.

Followers and consumers that keep up read from here: no system call, no copy. The chunks lie one behind another and end
at the log's end. Bounded by bytes; what falls out is read from the file.
"""

from bisect import bisect_right
from struct import Struct

from strandline.base.ports import Buffer
from strandline.wire.batch import LOG_OVERHEAD

# Base offset and length; then, at 23, the last offset delta. Just what a walk needs.
STEP = Struct(">qi")
DELTA = Struct(">i")
DELTA_AT = 23


def cut(
    buffer: Buffer, position: int, offset: int, max_bytes: int, upto: int, *, min_one: bool
) -> tuple[int, int, int]:
    """Which whole batches of `buffer` from `position` on answer a read: (start, end, next offset).

    They begin with the batch that holds `offset`, end below the offset `upto`, and have at most `max_bytes`, but for
    one batch if `min_one`. A batch that is cut off at the end of the buffer is left out. start == end: none.
    """
    size = len(buffer)
    start = position
    next_offset = offset
    found = False
    while position + DELTA_AT + 4 <= size:
        base, length = STEP.unpack_from(buffer, position)
        end = position + length + LOG_OVERHEAD
        after = base + DELTA.unpack_from(buffer, position + DELTA_AT)[0] + 1
        if end > size or after > upto:
            break
        if not found:
            if after <= offset:
                position = start = end
                continue
            found = True
            if end - start > max_bytes and not min_one:
                break
        elif end - start > max_bytes:
            break
        position, next_offset = end, after
    return start, position if found else start, next_offset


class Tail:
    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.bases: list[int] = []
        self.chunks: list[memoryview] = []
        self.end = -1  # the offset after the last chunk
        self.size = 0

    def append(self, base_offset: int, next_offset: int, buffer: memoryview) -> None:
        if base_offset != self.end:
            self.clear()
        self.bases.append(base_offset)
        self.chunks.append(buffer)
        self.end = next_offset
        self.size += len(buffer)
        if self.size > self.bytes_max:
            self.shrink()

    def shrink(self) -> None:
        """Down to three quarters, so that the lists are not shifted for every append."""
        goal, drop = self.bytes_max * 3 // 4, 0
        while self.size > goal and drop < len(self.chunks):
            self.size -= len(self.chunks[drop])
            drop += 1
        del self.bases[:drop]
        del self.chunks[:drop]

    def clear(self) -> None:
        self.bases.clear()
        self.chunks.clear()
        self.size = 0
        self.end = -1

    def read(self, offset: int, max_bytes: int, upto: int, *, min_one: bool) -> tuple[list[Buffer], int] | None:
        """Buffers and their size; None if `offset` is not here."""
        bases = self.bases
        if not bases or offset < bases[0] or offset >= self.end:
            return None
        buffers: list[Buffer] = []
        total = 0
        at = bisect_right(bases, offset) - 1
        count = len(bases)
        while at < count:
            chunk = self.chunks[at]
            chunk_end = bases[at + 1] if at + 1 < count else self.end
            length = len(chunk)
            if offset == bases[at] and chunk_end <= upto and (total + length <= max_bytes):
                buffers.append(chunk)
                total += length
                offset = chunk_end
                at += 1
                continue
            start, end, _ = cut(chunk, 0, offset, max_bytes - total, upto, min_one=min_one and not total)
            if end > start:
                buffers.append(chunk[start:end])
                total += end - start
            if end < length:
                break
            offset = chunk_end
            at += 1
        return buffers, total
