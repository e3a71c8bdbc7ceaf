"""The segments of one log, in order, and which of their files are open.

The active segment, to which batches are appended, is the last one. Of the others at most one is left open (`warm`):
readers of old records mostly stay in one segment. Whoever reads another one closes it again (`rest`).

Invariants (executed by `check`):
  - segments are sorted by base offset, and none reaches into the next one
  - `bases` are their base offsets
  - a name that came or went is among what must be synced
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import overload

from strandline.base.ports import Disk, DiskError
from strandline.log.segment import Segment
from strandline.log.unsynced import Unsynced
from strandline.wire.batch import BatchHeader
from strandline.wire.control import EndTxnMarker


class Segments(Sequence[Segment]):
    def __init__(self, disk: Disk, directory: str, unsynced: Unsynced) -> None:
        self.disk = disk
        self.directory = directory
        self.unsynced = unsynced
        self.all: list[Segment] = []
        self.bases: list[int] = []
        self.warm: Segment | None = None  # the one old segment whose file is left open

    def __len__(self) -> int:
        return len(self.all)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self.all)

    @overload
    def __getitem__(self, at: int) -> Segment: ...
    @overload
    def __getitem__(self, at: slice) -> list[Segment]: ...
    def __getitem__(self, at: int | slice) -> Segment | list[Segment]:
        return self.all[at]

    @property
    def active(self) -> Segment:
        return self.all[-1]

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.all)

    def from_offset(self, offset: int) -> list[Segment]:
        """The segment that holds `offset`, and all that follow it; all segments for an offset below the first."""
        return self.all[max(0, bisect_right(self.bases, offset) - 1) :]

    def bound_of(self, segment: Segment) -> int | None:
        """Where the next segment begins; None for the active one."""
        at = bisect_right(self.bases, segment.base_offset)
        return self.bases[at] if at < len(self.bases) else None

    def bytes_from(self, offset: int) -> int:
        """The size of the batches that hold `offset` and all that follows it."""
        segment, *later = self.from_offset(offset)
        position = segment.position_of(offset)
        self.rest(segment)
        assert position is None or position <= segment.size
        return (0 if position is None else segment.size - position) + sum(one.size for one in later)

    def headers(self, offset: int) -> Iterator[BatchHeader]:
        """Headers from the batch that holds `offset` on."""
        for segment in self.from_offset(offset):
            try:
                position = segment.position_of(offset)
                if position is not None:
                    yield from segment.headers(position)
            finally:  # also for a reader that has seen enough
                self.rest(segment)

    def marked_headers(self, offset: int) -> Iterator[tuple[BatchHeader, EndTxnMarker | None]]:
        """As `headers`, and of a control batch the marker that it holds."""
        for segment in self.from_offset(offset):
            position = segment.position_of(offset)
            for header in () if position is None else segment.headers(position):
                yield header, segment.marker_of(header) if header.is_control else None
            self.rest(segment)

    # --- open files

    def rest(self, segment: Segment | None) -> None:
        """Close the file of an old segment, unless it is the one that is left open for the next reader."""
        if segment is not None and segment is not self.active and segment is not self.warm:
            segment.release()

    def rest_all(self) -> None:
        for segment in self.all:
            self.rest(segment)

    def warmed(self, segment: Segment) -> None:
        """Leave the file of this one open, and no other one's."""
        if segment is not self.warm and segment is not self.active:
            previous, self.warm = self.warm, segment
            self.rest(previous)

    def close(self) -> None:
        for segment in self.all:
            if segment is self.active:
                segment.seal()
            segment.close()

    def abandon(self) -> None:
        """Close them without writing what is left to write."""
        for segment in self.all:
            segment.release()

    # --- segments come

    def add(self, segment: Segment) -> None:
        assert not self.all or self.bases[-1] < segment.base_offset, "segments are added in order"
        self.all.append(segment)
        self.bases.append(segment.base_offset)

    def begin(self, base_offset: int, interval_bytes: int) -> Segment:
        """A new, empty segment becomes the active one; its name is to be synced."""
        segment = Segment(self.disk, self.directory, base_offset, interval_bytes)
        self.add(segment)
        self.unsynced.add(self.directory)
        return segment

    def roll(self, base_offset: int, interval_bytes: int) -> Segment:
        """The active segment gets no more batches, and a new one follows it."""
        sealed = self.active
        assert sealed.next_offset <= base_offset
        sealed.seal()
        previous, self.warm = self.warm, sealed
        self.rest(previous)
        segment = self.begin(base_offset, interval_bytes)
        # A time index that lost its end would make the segment look older than it is.
        self.unsynced.add(*sealed.paths[1:])
        assert self.active is segment
        return segment

    def replace(self, group: Sequence[Segment], cleaned: Segment) -> None:
        """`cleaned`, which has the offsets of `group`, stands in its place now, on disk too."""
        at = self.all.index(group[0])
        assert self.all[at : at + len(group)] == list(group), "only neighbours are replaced by one"
        assert cleaned.base_offset == group[0].base_offset
        assert cleaned.next_offset == group[-1].next_offset and group[-1] is not self.active
        self.all[at : at + len(group)] = [cleaned]
        self.bases = [segment.base_offset for segment in self.all]
        if self.warm in group:
            self.warm = None
        self.unsynced.add(self.directory)

    # --- segments go

    def truncate_to(self, offset: int) -> bool:
        """Cut everything from `offset` on, which the first segment does not begin with. Returns whether what is left
        ends in a gap before it."""
        assert offset > self.bases[0]
        while self.active.base_offset >= offset:
            self.bases.pop()
            self.all.pop().delete()
            self.unsynced.add(self.directory)
        ends_in_gap = self.active.truncate_to(offset)
        # The next append may go to a new segment. Then nothing but this makes the cut durable. If a power loss undid
        # it, old batches would come back in front of newer ones.
        self.unsynced.add(self.active.path)
        previous, self.warm = self.warm, None
        self.rest(previous)
        assert self.active.next_offset <= offset
        return ends_in_gap

    def drop_first(self) -> None:
        """Retention has taken it."""
        assert len(self.all) > 1, "the active segment stays"
        if self.warm is self.all[0]:
            self.warm = None
        self.all[0].delete()
        self.unsynced.add(self.directory)
        del self.all[0], self.bases[0]
        assert self.bases[0] == self.all[0].base_offset

    def start_anew(self, offset: int, interval_bytes: int) -> None:
        """Delete all, the last ones first: a crash in the middle leaves a prefix, never a hole at the start."""
        self.warm = None
        for segment in reversed(self.all):
            segment.delete()
        self.all = [Segment(self.disk, self.directory, offset, interval_bytes)]
        self.bases = [offset]
        assert not self.active.size, "a file of before is still there"

    # --- durability

    def unsynced_paths(self, recovery_point: int) -> list[str]:
        assert 0 <= recovery_point <= self.active.next_offset
        return [segment.path for segment in self.all if segment.next_offset > recovery_point]

    def flush_indexes(self) -> list[str]:
        """Write all indexes; what must be synced for that."""
        indexes = [path for segment in self.all for path in segment.flush_indexes()]
        return [*indexes, self.directory] if indexes else []

    def check_names(self, recovery_point: int) -> None:
        """Raises DiskError if a segment that was just flushed is not there under its name: nobody will find it."""
        for segment in reversed(self.all):
            if segment.next_offset <= recovery_point:
                break
            if not self.disk.exists(segment.path):
                raise DiskError(f"{segment.path}: somebody has deleted it")

    def check(self) -> None:
        assert self.all, "a log has an active segment"
        for segment in self.all:
            segment.check()
        assert self.bases == [segment.base_offset for segment in self.all]
        assert self.bases == sorted(set(self.bases)), "segments are out of order"
        assert self.warm is None or self.warm in self.all, "a segment that is gone is open"
        for segment in self.all:
            assert segment.opened is None or segment in (self.active, self.warm), f"{segment.path} is left open"
        for segment, following in zip(self.all, self.bases[1:], strict=False):
            assert segment.next_offset <= following, f"{segment.path} reaches into the next segment"
