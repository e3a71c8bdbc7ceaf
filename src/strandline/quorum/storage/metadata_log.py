"""The metadata log on disk: `__cluster_metadata-0` with its log, its snapshots, and the file `quorum-state`.

Snapshots are files `<end offset>-<epoch>.checkpoint`. The newest two are kept, and the log starts at the older one: a
replica that lags a little still finds its records, and nothing is deleted whose snapshot is not durable for long.

Invariants:
  - the log is contiguous, from `log_start_offset` on; below it there is a snapshot, unless it is 0;
  - the newest snapshot ends at or below `log_end_offset`, and in the log's own history;
  - a file with a snapshot's name is complete: it is written beside and renamed.
"""

from collections.abc import Iterable, Iterator

from strandline.base.ids import METADATA_TOPIC, METADATA_TOPIC_ID, OFFSET_MAX, TopicPartition
from strandline.base.ports import Buffer, Disk, DiskError, File
from strandline.base.time import Instant
from strandline.log.config import LogConfig
from strandline.log.directory import PARTITION_METADATA, directory_name, write_partition_metadata
from strandline.log.log import Log
from strandline.log.reading import Read
from strandline.log.refusals import Refused
from strandline.quorum.elections.election_state import VOTES_LOST, DamagedFileError, decode_quorum_state
from strandline.quorum.elections.epochs import EPOCH_MAX
from strandline.quorum.ports import CommittedBatch, EpochEnd, SnapshotId
from strandline.quorum.storage.snapshot_file import encode_snapshot, snapshot_records, why_incomplete
from strandline.wire.batch import BatchHeader, batches, read_header, why_invalid
from strandline.wire.compress import Corrupt
from strandline.wire.record import Row, rows
from strandline.wire.schema import RecordsValue

DIRECTORY = directory_name(TopicPartition(METADATA_TOPIC, 0))
SUFFIX = ".checkpoint"
PART_SUFFIX = ".checkpoint.part"
UNFIT_SUFFIX = ".unfit"
QUORUM_STATE = "quorum-state"
READ_BYTES = 1 << 20
SNAPSHOTS_KEPT = 2
# Nothing is deleted by age or size: only what lies below a snapshot goes.
CONFIG = LogConfig(retention_ms=-1, retention_bytes=-1, max_message_bytes=1 << 30)


def snapshot_name(snapshot: SnapshotId) -> str:
    assert 0 <= snapshot.end_offset <= OFFSET_MAX
    assert 0 <= snapshot.epoch <= EPOCH_MAX
    return f"{snapshot.end_offset:020d}-{snapshot.epoch:010d}"


def parse_snapshot_name(name: str) -> SnapshotId | None:
    stem = name.removesuffix(SUFFIX)
    digits = stem[:20] + stem[21:]
    if stem == name or len(stem) != 31 or stem[20] != "-" or not (digits.isascii() and digits.isdigit()):
        return None
    snapshot = SnapshotId(int(stem[:20]), int(stem[21:]))
    return snapshot if snapshot.end_offset <= OFFSET_MAX and snapshot.epoch <= EPOCH_MAX else None


class MetadataLog:
    def __init__(self, disk: Disk, directory: str, log: Log, snapshots: list[SnapshotId]) -> None:
        self.disk = disk
        self.directory = directory
        self.log = log
        self.snapshots = snapshots  # oldest first
        self.quorum_state_path = f"{directory}/{QUORUM_STATE}"
        self.is_dirty = False
        self.unsynced_snapshots: dict[str, None] = {}
        self.parts: dict[SnapshotId, File] = {}

    @classmethod
    def open(
        cls, disk: Disk, log_dir: str, now: Instant, config: LogConfig = CONFIG, *, has_others: bool = False
    ) -> "MetadataLog":
        """Load the metadata log below `metadata.log.dir`, making an empty one if there is none. What is found is made
        durable: a process that died may have written more than it synced. `has_others`: voters that have it too."""
        directory = f"{log_dir}/{DIRECTORY}"
        disk.make_directory(directory)
        snapshots = load_snapshots(disk, directory)
        log = Log.open(disk, directory, config, now, clean=False, recovery_point=0, log_start_offset=0)
        if log.log_start_offset > 0 and not snapshots:
            if not (has_others and would_show(disk, f"{directory}/{QUORUM_STATE}", log)):
                raise DiskError(
                    f"{directory}: the log starts at {log.log_start_offset}, and the snapshot below it is gone"
                )
            log.truncate_fully_and_start_at(0)
        if not disk.exists(f"{directory}/{PARTITION_METADATA}"):
            write_partition_metadata(disk, directory, METADATA_TOPIC_ID)
        opened = cls(disk, directory, log, snapshots)
        if snapshots and opened.why_not_in_history(snapshots[-1]) is not None:
            log.truncate_fully_and_start_at(snapshots[-1].end_offset)
            opened.forget_snapshots(snapshots[-1])
        if snapshots and (log.log_start_offset > 0 or len(snapshots) >= SNAPSHOTS_KEPT):
            log.advance_log_start(snapshots[0].end_offset)
        paths = [f"{directory}/{snapshot_name(snapshot)}{SUFFIX}" for snapshot in opened.snapshots]
        disk.sync([*log.unsynced(), *paths, f"{directory}/{PARTITION_METADATA}", directory, log_dir])
        log.mark_synced(log.log_end_offset)
        return opened

    def why_not_in_history(self, snapshot: SnapshotId) -> str | None:
        """A download that was named but not installed before a crash may lie beyond the log, or beside it."""
        end = snapshot.end_offset
        if end > self.log.log_end_offset:
            return "it ends behind the log"
        if end < self.log.log_start_offset:
            return "it ends before the log"
        if end > self.log.log_start_offset and self.epoch_of_record(end - 1) != snapshot.epoch:
            return "the log has another epoch there"
        return None

    def epoch_of_record(self, offset: int) -> int | None:
        """From the batch itself: the list of epochs is cut where the log starts, and a crash may bring back batches
        below that."""
        holding = (header for header in self.log.headers(offset) if header.last_offset >= offset)
        found = next(holding, None)
        return found.partition_leader_epoch if found is not None and found.base_offset <= offset else None

    # --- what is known

    @property
    def log_start_offset(self) -> int:
        return self.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def last_epoch(self) -> int:
        below = self.snapshots[-1].epoch if self.snapshots else 0
        return max(self.log.latest_epoch, below, 0)

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        entries = self.log.epochs.entries
        end = self.log_end_offset
        for entry in reversed(entries):
            if entry.epoch <= epoch:
                return EpochEnd(entry.epoch, end)
            end = entry.start_offset
        below = self.snapshots[0].epoch if self.log_start_offset else 0
        return EpochEnd(below, min(end, self.log_start_offset))

    def read_quorum_state(self) -> bytes | None:
        return self.disk.read_file(self.quorum_state_path)

    # --- the log

    def append_as_leader(self, batch: bytes) -> None:
        header = read_header(batch)
        assert header.base_offset == self.log_end_offset
        self.log.roll_if_due(Instant(header.max_timestamp))
        done = self.log.append_as_leader(
            bytearray(batch), header.partition_leader_epoch, Instant(header.max_timestamp), internal=True
        )
        assert not isinstance(done, Refused), done
        self.is_dirty = True

    def append_as_follower(self, records: Buffer, epoch: int) -> str | None:
        buffer = memoryview(records)
        for header in batches(buffer):
            is_in_order = self.last_epoch <= header.partition_leader_epoch <= epoch
            has_gaps = header.record_count != header.last_offset_delta + 1  # nobody compacts this log
            if header.base_offset != self.log_end_offset or not is_in_order or has_gaps:
                return f"offset {header.base_offset} of epoch {header.partition_leader_epoch} does not follow"
            one = buffer[header.position : header.end]
            self.log.roll_if_due(Instant(header.max_timestamp))
            done = self.log.append_as_follower(one, header.partition_leader_epoch)
            if isinstance(done, Refused):
                return done.message
            self.is_dirty = True
        return None

    def read(self, offset: int, size_max: int) -> RecordsValue:
        found = self.log.read(offset, size_max, upto=self.log_end_offset, min_one=True)
        return found.buffers if isinstance(found, Read) and found.size else b""

    def truncate_to(self, end_offset: int) -> None:
        """A snapshot of more than what is left goes with it: only what could not be applied is cut below one."""
        assert end_offset <= self.log_end_offset, "a cut makes no log longer"
        for beyond in [known for known in self.snapshots if known.end_offset > end_offset]:
            self.forget(beyond)
        self.log.truncate_to(end_offset)
        self.is_dirty = True

    def committed_batches(self, from_offset: int, upto: int) -> Iterator[CommittedBatch]:
        """Data records in [from_offset, upto); control batches are left out. One with a fault is the last."""
        assert upto <= self.log_end_offset
        offset = max(from_offset, self.log_start_offset)
        while offset < upto:
            found = self.log.read(offset, READ_BYTES, upto=upto, min_one=True)
            if isinstance(found, Refused) or not found.size:
                yield CommittedBatch(offset, offset, self.log.epochs.epoch_at(offset), 0, [], "it cannot be read")
                return
            for buffer in found.buffers:
                for header in batches(buffer):
                    if header.last_offset >= offset:
                        offset = header.next_offset
                        if not header.is_control:
                            yield committed_batch(header, buffer, from_offset)

    def sound_below(self, end_offset: int) -> EpochEnd:
        """A log that ends where this one has a batch that begins."""
        assert self.log_start_offset <= end_offset <= self.log_end_offset
        if end_offset == self.log_start_offset:
            return EpochEnd(self.snapshots[0].epoch if self.snapshots and end_offset else 0, end_offset)
        epoch = self.epoch_of_record(end_offset - 1)
        assert epoch is not None, "a batch lies before it"
        return EpochEnd(epoch, end_offset)

    # --- durability

    def take_unsynced(self) -> tuple[str, ...]:
        if not self.is_dirty:
            return ()
        self.is_dirty = False
        return (*self.log.unsynced(), *self.unsynced_snapshots)

    def mark_synced(self, end_offset: int) -> None:
        assert end_offset >= self.log_start_offset
        self.log.mark_synced(end_offset)
        if not self.is_dirty:
            self.unsynced_snapshots.clear()

    # --- snapshots

    def latest_snapshot(self) -> SnapshotId | None:
        return self.snapshots[-1] if self.snapshots else None

    def earliest_snapshot(self) -> SnapshotId | None:
        return self.snapshots[0] if self.snapshots else None

    def snapshot_path(self, snapshot: SnapshotId) -> str:
        return f"{self.directory}/{snapshot_name(snapshot)}{SUFFIX}"

    def snapshot_size(self, snapshot: SnapshotId) -> int | None:
        if snapshot not in self.snapshots:
            return None
        file = self.disk.open(self.snapshot_path(snapshot))
        try:
            return file.size()
        finally:
            file.close()

    def read_snapshot_bytes(self, snapshot: SnapshotId, position: int, size: int) -> Buffer:
        assert position >= 0
        assert size >= 0
        file = self.disk.open(self.snapshot_path(snapshot))
        try:
            return bytes(file.read(position, size))
        finally:
            file.close()

    def read_snapshot(self, snapshot: SnapshotId) -> Iterator[bytes]:
        content = self.disk.read_file(self.snapshot_path(snapshot))
        assert content is not None, f"{snapshot} was taken away"
        yield from snapshot_records(content)

    def write_snapshot(self, offset: int, epoch: int, records: Iterable[bytes], now: Instant) -> None:
        """The state after all records below `offset`, which are committed. The snapshot is synced with the log; what
        it makes superfluous goes when the next one is written."""
        snapshot = SnapshotId(offset, epoch)
        assert offset <= self.log_end_offset
        if offset <= max([self.log_start_offset, *(known.end_offset for known in self.snapshots)]):
            return
        self.disk.write_file(self.snapshot_path(snapshot), encode_snapshot(records, epoch, now, offset))
        self.unsynced_snapshots[self.snapshot_path(snapshot)] = None
        self.unsynced_snapshots[self.directory] = None
        self.is_dirty = True
        self.snapshots.append(snapshot)
        assert self.snapshots[-1] == max(self.snapshots, key=lambda one: one.end_offset), "the newest is the last"
        if self.log.active.size:
            self.log.roll(self.log_end_offset)
        self.clean_up(now)

    def clean_up(self, now: Instant) -> None:
        """Start the log at the oldest snapshot that is kept, if it is durable."""
        keep = self.snapshots[-SNAPSHOTS_KEPT:]
        if len(keep) < SNAPSHOTS_KEPT or self.snapshot_path(keep[0]) in self.unsynced_snapshots:
            return
        for old in self.snapshots[:-SNAPSHOTS_KEPT]:
            self.disk.remove(self.snapshot_path(old))
        self.snapshots = keep
        assert len(keep) == SNAPSHOTS_KEPT
        self.log.advance_log_start(keep[0].end_offset)
        self.log.delete_old_segments(now, keep[0].end_offset)

    # --- downloads

    def part_path(self, snapshot: SnapshotId) -> str:
        return f"{self.directory}/{snapshot_name(snapshot)}{PART_SUFFIX}"

    def begin_part(self, snapshot: SnapshotId) -> None:
        for file in self.parts.values():
            file.close()
            self.disk.remove(file.path)
        self.disk.remove(self.part_path(snapshot))
        self.parts = {snapshot: self.disk.open(self.part_path(snapshot))}

    def append_part(self, snapshot: SnapshotId, content: Buffer) -> None:
        assert len(content), "a chunk has content"
        self.parts[snapshot].append([content])

    def name_part(self, snapshot: SnapshotId) -> str | None:
        assert snapshot in self.parts, "its download has begun"
        self.parts.pop(snapshot).close()
        content = self.disk.read_file(self.part_path(snapshot))
        why = "the file is gone" if content is None else why_incomplete(content, snapshot)
        if why is None:
            self.disk.rename(self.part_path(snapshot), self.snapshot_path(snapshot))
        return why

    def set_aside(self, snapshot: SnapshotId) -> bool:
        """Go on without a snapshot that cannot be applied, if another one or the log reaches back behind it. The file
        is kept under another name."""
        assert snapshot in self.snapshots
        if snapshot == self.snapshots[0] and self.log_start_offset > 0:
            return False
        path = self.snapshot_path(snapshot)
        self.disk.rename(path, f"{path}{UNFIT_SUFFIX}")
        self.snapshots.remove(snapshot)
        return True

    def install_snapshot(self, snapshot: SnapshotId) -> None:
        self.log.truncate_fully_and_start_at(snapshot.end_offset)
        self.forget_snapshots(snapshot)
        assert self.log_end_offset == snapshot.end_offset
        self.is_dirty = True

    def forget_snapshots(self, but: SnapshotId) -> None:
        for old in self.snapshots:
            if old != but:
                self.forget(old)
        self.snapshots = [but]

    def forget(self, snapshot: SnapshotId) -> None:
        self.disk.remove(self.snapshot_path(snapshot))
        self.unsynced_snapshots.pop(self.snapshot_path(snapshot), None)
        self.snapshots = [known for known in self.snapshots if known != snapshot]

    def close(self) -> None:
        for file in self.parts.values():
            file.close()
        self.log.close()

    def check(self) -> None:
        self.log.check()
        assert self.snapshots == sorted(self.snapshots, key=lambda snapshot: snapshot.end_offset)
        if self.log_start_offset > 0:
            assert self.snapshots
            assert self.snapshots[0].end_offset >= self.log_start_offset


def committed_batch(header: BatchHeader, buffer: Buffer, from_offset: int) -> CommittedBatch:
    where = (header.base_offset, header.last_offset, header.partition_leader_epoch, header.max_timestamp)
    why = why_invalid(header, buffer)  # it was sound when the log was opened, and media rot
    if why is not None:
        return CommittedBatch(*where, [], f"its batch is damaged: {why.name}")
    found: list[Row] = []
    try:
        rows(header, buffer, found)
    except Corrupt as error:
        return CommittedBatch(*where, [], f"its records cannot be read: {error}")
    return CommittedBatch(*where, [value or b"" for offset, _, value in found if offset >= from_offset])


def would_show(disk: Disk, path: str, log: Log) -> bool:
    """Would this `quorum-state` beside an empty log say that metadata is lost, and no vote be forgotten with the log?
    Then the voter can begin anew, and copies everything before it votes (see `impaired`)."""
    try:
        election, applied = decode_quorum_state(disk.read_file(path), path)
    except DamagedFileError:
        return True
    return applied != 0 and (applied == VOTES_LOST or election.epoch >= log.latest_epoch)


def load_snapshots(disk: Disk, directory: str) -> list[SnapshotId]:
    """The complete ones, oldest first. Unfinished downloads, and snapshots that a crash left torn, are removed."""
    found: list[SnapshotId] = []
    for name in disk.list(directory):
        snapshot = parse_snapshot_name(name)
        if name.endswith(PART_SUFFIX):
            disk.remove(f"{directory}/{name}")
        elif snapshot is not None:
            content = disk.read_file(f"{directory}/{name}")
            if content is not None and why_incomplete(content, snapshot) is None:
                found.append(snapshot)
            else:
                disk.remove(f"{directory}/{name}")
    return sorted(found, key=lambda snapshot: snapshot.end_offset)
