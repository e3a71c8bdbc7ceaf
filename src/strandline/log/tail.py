"""The newest part of a log, still in memory: the very buffers that were appended.

Followers and consumers that keep up read from here: no system call, no copy. The chunks lie one behind another and end
at the log's end. Bounded by bytes; what falls out is read from the file.
"""

from bisect import bisect_left, bisect_right
from struct import Struct

from strandline.base.ports import Buffer
from strandline.wire.batch import LOG_OVERHEAD

# Base offset and length; then, at 23, the last offset delta. Just what a walk needs.
STEP = Struct(">qi")
DELTA = Struct(">i")
DELTA_AT = 23
CHUNK_OVERHEAD = 256  # bytes that Python needs for a chunk beside its content
BUDGET_BYTES = 32 << 20


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
        if end > size or after > upto or length < 0:
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


class TailBudget:
    """What the tails of many logs may hold together. When it is spent, the log that was idle longest gives up its
    whole tail; its readers go to the file.

    Invariant (executed by `check`): `used` is the sum of the sizes of `tails`, in the order of their last append.
    """

    def __init__(self, bytes_max: int = BUDGET_BYTES) -> None:
        self.bytes_max = bytes_max
        self.used = 0
        self.tails: dict[Tail, None] = {}
        self.newest: Tail | None = None

    def check(self) -> None:
        assert self.used == sum(tail.size for tail in self.tails)
        assert self.used <= self.bytes_max
        assert self.newest is None or next(reversed(self.tails)) is self.newest

    def grew(self, tail: "Tail", size: int) -> None:
        self.used += size
        if tail is not self.newest:
            self.tails.pop(tail, None)
            self.tails[tail] = None
            self.newest = tail
        while self.used > self.bytes_max:
            oldest = next(iter(self.tails))
            if oldest is tail:
                tail.shrink(self.bytes_max * 3 // 4)
                return
            oldest.clear()

    def cleared(self, tail: "Tail", size: int) -> None:
        assert size <= self.used
        self.used -= size
        self.tails.pop(tail, None)
        if tail is self.newest:
            self.newest = None


class Tail:
    def __init__(self, bytes_max: int, budget: TailBudget | None = None) -> None:
        self.bytes_max = bytes_max
        self.budget = TailBudget(bytes_max) if budget is None else budget
        self.bases: list[int] = []
        self.chunks: list[memoryview] = []
        self.end = -1  # the offset after the last chunk
        self.size = 0

    def append(self, base_offset: int, next_offset: int, buffer: memoryview) -> None:
        assert base_offset < next_offset
        if base_offset != self.end:
            self.clear()
        size = len(buffer) + CHUNK_OVERHEAD
        self.bases.append(base_offset)
        self.chunks.append(buffer)
        self.end = next_offset
        self.size += size
        self.budget.grew(self, size)
        if self.size > self.bytes_max:
            self.shrink(self.bytes_max * 3 // 4)

    def shrink(self, goal: int) -> None:
        """Well below the bound, so that the lists are not shifted for every append."""
        assert 0 <= goal < self.size
        before, drop = self.size, 0
        while self.size > goal and drop < len(self.chunks):
            self.size -= len(self.chunks[drop]) + CHUNK_OVERHEAD
            drop += 1
        del self.bases[:drop]
        del self.chunks[:drop]
        self.budget.used -= before - self.size
        assert self.size <= goal or not self.chunks

    def forget_below(self, offset: int) -> None:
        """Of what lies on the disk in another form now."""
        drop = bisect_left(self.bases, offset)
        size = sum(len(chunk) + CHUNK_OVERHEAD for chunk in self.chunks[:drop])
        del self.bases[:drop]
        del self.chunks[:drop]
        self.size -= size
        self.budget.used -= size
        assert self.size >= 0 and self.budget.used >= 0

    def clear(self) -> None:
        self.budget.cleared(self, self.size)
        self.bases.clear()
        self.chunks.clear()
        assert self.budget.used >= 0
        self.size = 0
        self.end = -1

    def read(self, offset: int, max_bytes: int, upto: int, *, min_one: bool) -> tuple[list[Buffer], int] | None:
        """Buffers and their size; None if `offset` is not here."""
        bases, last_end = self.bases, self.end
        if not bases or offset < bases[0] or offset >= last_end:
            return None
        buffers: list[Buffer] = []
        total, last = 0, len(bases) - 1
        for at in range(last if offset >= bases[last] else bisect_right(bases, offset) - 1, last + 1):
            chunk = self.chunks[at]
            chunk_end = bases[at + 1] if at < last else last_end
            length = len(chunk)
            if offset == bases[at] and chunk_end <= upto and total + length <= max_bytes:
                buffers.append(chunk)
                total += length
            else:
                start, end, _ = cut(chunk, 0, offset, max_bytes - total, upto, min_one=min_one and not total)
                if end > start:
                    buffers.append(chunk[start:end])
                    total += end - start
                if end < length:
                    break
            if chunk_end >= upto:
                break
            offset = chunk_end
        return buffers, total

    def check(self, log_end_offset: int) -> None:
        assert self.bases == sorted(set(self.bases)) and len(self.bases) == len(self.chunks)
        assert self.size == sum(len(chunk) + CHUNK_OVERHEAD for chunk in self.chunks) <= self.bytes_max
        assert not self.chunks or self.end == log_end_offset, "the chunks end at the log's end"
