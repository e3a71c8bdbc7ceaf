"""What was committed in one partition, byte by byte: every replica's log must hold exactly this below it.

Replicas copy batches as they are, so that equal logs are equal bytes, and nobody has to look at single records.
"""

from bisect import bisect_right
from struct import Struct

from strandline.base.ports import Buffer
from strandline.log.log import Log
from strandline.log.reading import Read
from strandline.wire.batch import LOG_OVERHEAD, batches, why_invalid
from strandline.wire.record import records

READ_BYTES = 1 << 20
SPAN = Struct(">qi11xi")  # of a batch's header: base offset, length, last offset delta


class Truth:
    """`end`: the true high watermark, the highest one that any leader has had."""

    def __init__(self, start: int) -> None:
        self.content = bytearray()
        self.bases: list[int] = []  # of the batches, by offset
        self.nexts: list[int] = []
        self.positions: list[int] = []
        self.end = start

    def extend(self, log: Log, high_watermark: int, *, is_rotten: bool = False) -> None:
        """A leader shows that more is committed. What was deleted at a user's wish before anybody saw it is a hole; so
        is what comes from a batch on in which a bit has flipped on the leader's disk."""
        self.end = max(self.end, min(log.log_start_offset, high_watermark))
        while self.end < high_watermark:
            found = log.read(self.end, READ_BYTES, upto=high_watermark, min_one=True)
            if is_rotten and not (isinstance(found, Read) and found.size and all(map(is_sound, found.buffers))):
                self.end = high_watermark
                return
            assert isinstance(found, Read) and found.size, f"{self.end} of {high_watermark} cannot be read"
            for buffer in found.buffers:
                base, length, delta = SPAN.unpack_from(buffer)
                if length + LOG_OVERHEAD == len(buffer):
                    self.add(base, base + delta + 1, buffer)
                else:
                    for header in batches(buffer):
                        self.add(header.base_offset, header.next_offset, buffer[header.position : header.end])

    def add(self, base: int, after: int, batch: Buffer) -> None:
        assert base <= self.end < after, f"a hole at {self.end}"
        self.bases.append(base)
        self.nexts.append(after)
        self.positions.append(len(self.content))
        self.content += batch
        self.end = after

    def is_hole(self, start: int, end: int) -> bool:
        """Is some of [start, end) committed, and was deleted before anybody saw it?"""
        at = self.index_of(start)
        known = start
        while at < len(self.bases) and self.bases[at] <= known < end:
            known, at = self.nexts[at], at + 1
        return known < end <= self.end

    def index_of(self, offset: int) -> int:
        """The batch that holds `offset`, or the next one behind a hole."""
        at = bisect_right(self.bases, offset) - 1
        return at if at >= 0 and offset < self.nexts[at] else at + 1

    def differs(self, log: Log, start: int, upto: int) -> str | None:
        """Compare a log with the truth in [start, upto), as far as both go; None if they agree."""
        end = min(log.log_end_offset, self.end, upto)
        offset = max(start, log.log_start_offset)
        while offset < end:
            found = log.read(offset, READ_BYTES, upto=end, min_one=True)
            if not isinstance(found, Read) or not found.size:
                at = self.index_of(offset)
                is_partial = at < len(self.nexts) and self.nexts[at] > end
                return None if is_partial else f"offset {offset} cannot be read: {found}"
            for buffer in found.buffers:
                at = self.index_of(offset)
                base, end_here = span_of(buffer)
                if at >= len(self.bases) or self.bases[at] != base:
                    offset = end_here  # it begins in a hole of what is known
                    continue
                position = self.positions[at]
                if self.content[position : position + len(buffer)] != buffer:
                    why = self.first_difference(memoryview(buffer))
                    if why is not None:
                        return why
                offset = end_here
        return None

    def first_difference(self, buffer: memoryview) -> str | None:
        """Of the batches that do not lie in a hole."""
        for header in batches(buffer):
            at = self.index_of(header.base_offset)
            if at == len(self.bases) or self.bases[at] != header.base_offset:
                continue
            position = self.positions[at]
            theirs, ours = buffer[header.position : header.end], self.content[position : position + header.size]
            if theirs != ours:
                known = next(batches(memoryview(ours)), None)
                return (
                    f"at offset {header.base_offset} (epoch {header.partition_leader_epoch}) stands {values(theirs)},"
                    f" committed is {values(ours)} (epoch {known and known.partition_leader_epoch})"
                )
        return None

    def values(self, start: int, count: int) -> list[bytes]:
        """The records at [start, start + count), as far as they are known."""
        found: list[bytes] = []
        for at in range(self.index_of(start), len(self.bases)):
            if self.bases[at] >= start + count:
                break
            position = self.positions[at]
            end = self.positions[at + 1] if at + 1 < len(self.positions) else len(self.content)
            batch = memoryview(self.content)[position:end]
            header = next(iter(batches(batch)))
            found += [
                bytes(record.value or b"")
                for record in records(header, batch)
                if start <= record.offset < start + count
            ]
            batch.release()
        return found


def span_of(buffer: Buffer) -> tuple[int, int]:
    """The base offset of the first batch, and the offset after the last one. Most buffers are one batch."""
    base, length, delta = SPAN.unpack_from(buffer)
    if length + LOG_OVERHEAD == len(buffer):
        return base, base + delta + 1
    *_, last = batches(buffer)
    return base, last.next_offset


def is_sound(buffer: Buffer) -> bool:
    return all(why_invalid(header, buffer) is None for header in batches(buffer))


def values(batch: bytes | bytearray | memoryview) -> list[bytes]:
    view = memoryview(batch)
    return [bytes(record.value or b"") for header in batches(view) for record in records(header, view)]
