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


class OffsetIndex:
    def __init__(self, disk: Disk, path: str, base_offset: int) -> None:
        self.disk = disk
        self.path = path
        self.base_offset = base_offset
        self.offsets = array("i")
        self.positions = array("i")
        self.written = 0  # entries that are in the file, if there is one
        self.is_changed = False  # the file, since it was opened

    def load(self, segment_size: int) -> bool:
        """Read the file; False if it is missing or does not fit the segment, and must be rebuilt."""
        content = self.disk.read_file(self.path)
        if content is None or len(content) % OFFSET_ENTRY.size:
            return False
        assert not self.offsets, "loaded once"
        last = (-1, -1)
        for entry in OFFSET_ENTRY.iter_unpack(content):
            if entry[0] <= last[0] or entry[1] <= last[1] or entry[1] >= segment_size:
                return False
            self.offsets.append(entry[0])
            self.positions.append(entry[1])
            last = entry
        self.written = len(self.offsets)
        return True

    def append(self, last_offset: int, position: int) -> None:
        self.offsets.append(last_offset - self.base_offset)
        self.positions.append(position)
        if len(self.offsets) - self.written >= WRITE_BEHIND:
            self.flush()

    def position_of(self, offset: int) -> int:
        """A position at or before the batch that holds `offset`, as near to it as the index knows."""
        at = bisect_right(self.offsets, offset - self.base_offset)
        return self.positions[at - 1] if at else 0

    def truncate(self, position: int) -> None:
        """Forget the entries of batches that lie at or after `position`."""
        at = bisect_right(self.positions, position - 1)
        del self.offsets[at:]
        del self.positions[at:]
        if self.written > at:
            self.written = at
            self.is_changed = True
            cut_file(self.disk, self.path, at * OFFSET_ENTRY.size)

    def clear(self) -> None:
        self.truncate(0)
        if self.disk.exists(self.path):
            self.is_changed = True
            cut_file(self.disk, self.path, 0)
        assert not self.offsets and not self.written

    def flush(self) -> None:
        fresh = range(self.written, len(self.offsets))
        content = b"".join(OFFSET_ENTRY.pack(self.offsets[i], self.positions[i]) for i in fresh)
        self.is_changed = self.is_changed or bool(content) or not self.disk.exists(self.path)
        append_file(self.disk, self.path, content)
        self.written = len(self.offsets)
        assert len(fresh) == 0 or self.is_changed, "a file that was written is to be synced"

    def close(self) -> None:
        self.flush()

    def check(self) -> None:
        assert len(self.offsets) == len(self.positions) >= self.written
        assert all(one < two for one, two in pairwise(self.offsets)), "offsets grow"
        assert all(one < two for one, two in pairwise(self.positions)), "positions grow"


class TimeIndex:
    def __init__(self, disk: Disk, path: str, base_offset: int) -> None:
        self.disk = disk
        self.path = path
        self.base_offset = base_offset
        self.timestamps = array("q")
        self.offsets = array("i")
        self.written = 0  # entries that are in the file, if there is one
        self.is_changed = False  # the file, since it was opened

    def load(self) -> bool:
        content = self.disk.read_file(self.path)
        if content is None or len(content) % TIME_ENTRY.size:
            return False
        assert not self.offsets, "loaded once"
        last = (-1, -1)
        for entry in TIME_ENTRY.iter_unpack(content):
            if entry[0] <= last[0] or entry[1] <= last[1]:
                return False
            self.timestamps.append(entry[0])
            self.offsets.append(entry[1])
            last = entry
        self.written = len(self.offsets)
        return True

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

    def truncate(self, offset: int) -> None:
        at = bisect_right(self.offsets, offset - self.base_offset - 1)
        del self.timestamps[at:]
        del self.offsets[at:]
        if self.written > at:
            self.written = at
            self.is_changed = True
            cut_file(self.disk, self.path, at * TIME_ENTRY.size)

    def clear(self) -> None:
        self.truncate(self.base_offset)
        if self.disk.exists(self.path):
            self.is_changed = True
            cut_file(self.disk, self.path, 0)
        assert not self.offsets and not self.written

    def flush(self) -> None:
        fresh = range(self.written, len(self.offsets))
        content = b"".join(TIME_ENTRY.pack(self.timestamps[i], self.offsets[i]) for i in fresh)
        self.is_changed = self.is_changed or bool(content) or not self.disk.exists(self.path)
        append_file(self.disk, self.path, content)
        self.written = len(self.offsets)
        assert len(fresh) == 0 or self.is_changed, "a file that was written is to be synced"

    def close(self) -> None:
        self.flush()

    def check(self) -> None:
        assert len(self.offsets) == len(self.timestamps) >= self.written
        assert all(one < two for one, two in pairwise(self.offsets)), "offsets grow"
        assert all(one < two for one, two in pairwise(self.timestamps)), "timestamps grow"
