"""The two sparse indexes of a segment, in Kafka's formats: offset → position, and timestamp → offset.

Entries are kept in memory and written behind: they can always be rebuilt from the segment, so a crash loses nothing.
`.index`: (int32 relative last offset of a batch, int32 position of that batch).
`.timeindex`: (int64 timestamp, int32 relative offset): no earlier batch has a larger timestamp.

Invariant (executed by `check`): both columns of both indexes grow.
"""

from array import array
from bisect import bisect_right
from itertools import pairwise
from struct import Struct

from strandline.base.ports import Disk

OFFSET_ENTRY = Struct(">ii")
TIME_ENTRY = Struct(">qi")
WRITE_BEHIND = 256  # entries


def append_file(disk: Disk, path: str, content: bytes) -> None:
    """Also makes the file if there is none. Not kept open: a log with many segments needs its descriptors."""
    assert len(content) % OFFSET_ENTRY.size == 0 or len(content) % TIME_ENTRY.size == 0, "whole entries"
    file = disk.open(path)
    if content:
        file.append([content])
    file.close()


def cut_file(disk: Disk, path: str, size: int) -> None:
    assert size >= 0
    file = disk.open(path)
    file.truncate(size)
    file.close()


class SparseIndex:
    """Entries of two numbers, in memory and in the file."""

    def __init__(
        self, disk: Disk, path: str, base_offset: int, entry: Struct, columns: "tuple[array[int], array[int]]"
    ) -> None:
        self.disk = disk
        self.path = path
        self.base_offset = base_offset
        self.entry = entry
        self.columns = columns
        self.written = 0  # entries that are in the file, if there is one
        self.is_changed = False  # the file, since it was opened

    def load(self, limit: int = 1 << 31) -> bool:
        """Read the file; False if it is missing or wrong, and must be rebuilt. `limit`: of the second number."""
        content = self.disk.read_file(self.path)
        if content is None or len(content) % self.entry.size:
            return False
        first, second = self.columns
        assert not first, "loaded once"
        last = (-1, -1)
        for entry in self.entry.iter_unpack(content):
            if entry[0] <= last[0] or entry[1] <= last[1] or entry[1] >= limit:
                return False
            first.append(entry[0])
            second.append(entry[1])
            last = entry
        self.written = len(first)
        return True

    def cut(self, at: int) -> None:
        """Forget all but the first `at` entries."""
        assert 0 <= at <= len(self.columns[0])
        for column in self.columns:
            del column[at:]
        if self.written > at:
            self.written = at
            self.is_changed = True
            cut_file(self.disk, self.path, at * self.entry.size)

    def clear(self) -> None:
        self.cut(0)
        if self.disk.exists(self.path):
            self.is_changed = True
            cut_file(self.disk, self.path, 0)
        assert not self.columns[0] and not self.written

    def flush(self) -> None:
        first, second = self.columns
        fresh = range(self.written, len(first))
        content = b"".join(self.entry.pack(first[i], second[i]) for i in fresh)
        self.is_changed = self.is_changed or bool(content) or not self.disk.exists(self.path)
        append_file(self.disk, self.path, content)
        self.written = len(first)
        assert len(fresh) == 0 or self.is_changed, "a file that was written is to be synced"

    def close(self) -> None:
        self.flush()

    def check(self) -> None:
        first, second = self.columns
        assert len(first) == len(second) >= self.written, self.path
        assert all(one < two for column in self.columns for one, two in pairwise(column)), f"{self.path} grows"


class OffsetIndex(SparseIndex):
    def __init__(self, disk: Disk, path: str, base_offset: int) -> None:
        self.offsets = array("i")
        self.positions = array("i")
        super().__init__(disk, path, base_offset, OFFSET_ENTRY, (self.offsets, self.positions))

    def append(self, last_offset: int, position: int) -> None:
        self.offsets.append(last_offset - self.base_offset)
        self.positions.append(position)
        if len(self.offsets) - self.written >= WRITE_BEHIND:
            self.flush()

    def position_of(self, offset: int) -> int:
        """A position at or before the batch that holds `offset`, as near to it as the index knows."""
        at = bisect_right(self.offsets, offset - self.base_offset)  # guard: index-points-behind
        return self.positions[at - 1] if at else 0

    def bound_of(self, offset: int) -> int | None:
        """A position at or behind the beginning of the batch that holds `offset`; None if the index knows none."""
        at = bisect_right(self.offsets, offset - self.base_offset)
        return self.positions[at] if at < len(self.positions) else None

    def truncate(self, position: int) -> None:
        """Forget the entries of batches that lie at or after `position`."""
        self.cut(bisect_right(self.positions, position - 1))


class TimeIndex(SparseIndex):
    def __init__(self, disk: Disk, path: str, base_offset: int) -> None:
        self.timestamps = array("q")
        self.offsets = array("i")
        super().__init__(disk, path, base_offset, TIME_ENTRY, (self.timestamps, self.offsets))

    @property
    def latest(self) -> tuple[int, int] | None:
        """The last entry: (timestamp, absolute offset)."""
        return (self.timestamps[-1], self.offsets[-1] + self.base_offset) if self.timestamps else None

    def append(self, timestamp: int, offset: int) -> None:
        """Only a timestamp larger than all before it adds an entry."""
        if self.timestamps and timestamp <= self.timestamps[-1]:
            return
        self.timestamps.append(timestamp)
        self.offsets.append(offset - self.base_offset)
        if len(self.offsets) - self.written >= WRITE_BEHIND:
            self.flush()

    def offset_before(self, timestamp: int) -> int:
        """An offset at or before the first batch with a timestamp of at least `timestamp`."""
        at = bisect_right(self.timestamps, timestamp - 1)
        return self.offsets[at - 1] + self.base_offset if at else self.base_offset

    def offset_from(self, timestamp: int) -> int | None:
        """An offset at or after the first record with a timestamp of at least `timestamp`; None if none is known."""
        at = bisect_right(self.timestamps, timestamp - 1)
        return self.offsets[at] + self.base_offset if at < len(self.offsets) else None

    def truncate(self, offset: int) -> None:
        """Forget the entries at or after `offset`."""
        self.cut(bisect_right(self.offsets, offset - self.base_offset - 1))
