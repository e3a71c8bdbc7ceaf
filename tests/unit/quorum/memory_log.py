"""A metadata log in memory that forgets, when its machine crashes, what was not synced."""

from collections.abc import Iterator

from strandline.base.ports import Buffer
from strandline.quorum.ports import CommittedBatch, EpochEnd, SnapshotId
from strandline.wire.batch import batches
from strandline.wire.record import records

Content = tuple[tuple[tuple[int, int, int, bytes], ...], tuple[tuple[SnapshotId, bytes], ...], int]


class MemoryLog:
    quorum_state_path = "/meta/quorum-state"
    directory = "/meta"
    log_path = "/meta/log"

    def __init__(self) -> None:
        self.entries: list[tuple[int, int, int, bytes]] = []
        self.snapshots: dict[SnapshotId, bytes] = {}
        self.start = 0
        self.parts: dict[SnapshotId, bytes] = {}
        self.named: dict[SnapshotId, bytes] = {}
        self.is_dirty = False
        self.quorum_state: bytes | None = None
        self.durable: Content = ((), (), 0)

    # what the quorum uses

    @property
    def log_start_offset(self) -> int:
        return self.start

    @property
    def log_end_offset(self) -> int:
        return self.entries[-1][1] + 1 if self.entries else self.start

    @property
    def last_epoch(self) -> int:
        if self.entries:
            return self.entries[-1][2]
        return max((snapshot.epoch for snapshot in self.snapshots), default=0)

    def read_quorum_state(self) -> bytes | None:
        return self.quorum_state

    def append_as_leader(self, batch: bytes) -> None:
        assert self.append_as_follower(batch, 1 << 31) is None

    def append_as_follower(self, content: Buffer, epoch: int) -> str | None:
        plain = bytes(content)
        for header in batches(plain):
            if header.base_offset != self.log_end_offset:
                return f"{header.base_offset} does not follow {self.log_end_offset}"
            if header.partition_leader_epoch > epoch:
                return f"epoch {header.partition_leader_epoch} is later than the leader's {epoch}"
            entry = plain[header.position : header.end]
            self.entries.append((header.base_offset, header.last_offset, header.partition_leader_epoch, entry))
            self.is_dirty = True
        return None

    def read(self, offset: int, size_max: int) -> bytes:
        out = b""
        for _, last, _, content in self.entries:
            if last >= offset and (not out or len(out) + len(content) <= size_max):
                out += content
        return out

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        base = self.earliest_snapshot()
        found = EpochEnd(base.epoch, base.end_offset) if base else EpochEnd(0, self.start)
        for _, last, entry_epoch, _ in self.entries:
            if entry_epoch <= epoch:
                found = EpochEnd(entry_epoch, last + 1)
        return found

    def truncate_to(self, end_offset: int) -> None:
        self.entries = [entry for entry in self.entries if entry[1] < end_offset]
        self.snapshots = {known: content for known, content in self.snapshots.items() if known.end_offset <= end_offset}
        self.is_dirty = True

    def take_unsynced(self) -> tuple[str, ...]:
        dirty, self.is_dirty = self.is_dirty, False
        return (self.log_path,) if dirty else ()

    def mark_synced(self, end_offset: int) -> None:
        pass

    def latest_snapshot(self) -> SnapshotId | None:
        return max(self.snapshots, key=lambda snapshot: snapshot.end_offset, default=None)

    def earliest_snapshot(self) -> SnapshotId | None:
        return min(self.snapshots, key=lambda snapshot: snapshot.end_offset, default=None)

    def snapshot_size(self, snapshot: SnapshotId) -> int | None:
        return len(self.snapshots[snapshot]) if snapshot in self.snapshots else None

    def read_snapshot_bytes(self, snapshot: SnapshotId, position: int, size: int) -> bytes:
        return self.snapshots[snapshot][position : position + size]

    def part_path(self, snapshot: SnapshotId) -> str:
        return f"/meta/{snapshot.end_offset}.part"

    def begin_part(self, snapshot: SnapshotId) -> None:
        self.parts[snapshot] = b""

    def append_part(self, snapshot: SnapshotId, content: Buffer) -> None:
        self.parts[snapshot] += bytes(content)

    def name_part(self, snapshot: SnapshotId) -> str | None:
        self.named[snapshot] = self.parts.pop(snapshot)
        return None

    def install_snapshot(self, snapshot: SnapshotId) -> None:
        self.snapshots = {snapshot: self.named.pop(snapshot)}
        self.entries, self.start = [], snapshot.end_offset
        self.is_dirty = True

    def committed_batches(self, from_offset: int, upto: int) -> Iterator[CommittedBatch]:
        for base, last, epoch, content in self.entries:
            header = next(batches(content))
            if from_offset <= base and last < upto and not header.is_control:
                values = [record.value or b"" for record in records(header, content)]
                yield CommittedBatch(base, last, epoch, header.max_timestamp, values)

    # what tests use

    def snapshot_at(self, end_offset: int, content: bytes) -> SnapshotId:
        """A snapshot, and the log starts at it."""
        snapshot = SnapshotId(end_offset, self.end_epoch(end_offset))
        self.snapshots[snapshot] = content
        self.entries = [entry for entry in self.entries if entry[0] >= end_offset]
        self.start = end_offset
        self.snapshots = {snapshot: content}
        self.is_dirty = True
        return snapshot

    def end_epoch(self, end_offset: int) -> int:
        return next(epoch for _, last, epoch, _ in self.entries if last == end_offset - 1)

    def content(self) -> Content:
        return tuple(self.entries), tuple(self.snapshots.items()), self.start

    def restore(self, content: Content) -> None:
        """What a crash leaves."""
        self.entries, self.snapshots, self.start = list(content[0]), dict(content[1]), content[2]
        self.parts = {}
        self.is_dirty = False
