"""The log of one partition: segments, leader epochs, idempotent producers, and the newest bytes in memory.

The high watermark is not known here: it belongs to the replica.

Invariants (executed by `check`):
  - log_start_offset and recovery point ≤ log end; segments cover [first base offset, log_end_offset) without overlap
  - no producer snapshot is ahead of the log, and what is known of producers are batches that the log had
  - every epoch of the cache begins below the log end, or at it (an epoch that has no record yet)
  - a refused append changes nothing
"""

from bisect import bisect_right
from collections.abc import Iterator
from zlib import crc32

from strandline.base.errors import ErrorCode
from strandline.base.ports import Buffer, Disk, DiskError
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.log import cutting, reading
from strandline.log.checkpoints import format_epochs
from strandline.log.config import LONG_MAX, LogConfig
from strandline.log.directory import PARTITION_METADATA
from strandline.log.epochs import Epochs
from strandline.log.opening import EPOCHS_FILE, load_segments
from strandline.log.producers import duplicates, producer_snapshot
from strandline.log.producers.producers import Producers, Remembered
from strandline.log.reading import Read
from strandline.log.recompress import CODEC_OF, recompressed
from strandline.log.refusals import LOG_APPEND_TIME, Refused, accept_produced, refused
from strandline.log.segment import OFFSET_SPAN_MAX, Segment
from strandline.log.tail import Tail, TailBudget
from strandline.log.timestamps import Damaged, Found, at_or_after, latest
from strandline.wire.batch import (
    LOG_APPEND_TIME as LOG_APPEND_TIME_FLAG,
)
from strandline.wire.batch import (
    BatchHeader,
    patch,
    patch_create_time,
    patch_log_append_time,
    read_header,
    scan,
    why_invalid,
)
from strandline.wire.batch import Tail as End

TAIL_BYTES = 4 << 20
UNKNOWN = Instant(-1)


class Appended(Value, frozen=True):
    """What a leader's append did. For a duplicate the offsets are those of the first time: the log has it there."""

    base_offset: int
    last_offset: int
    log_append_time: int  # -1 with CreateTime
    log_start_offset: int
    size_bytes: int = 0  # as it is stored; 0 for a duplicate
    duplicate: bool = False


class Log:
    def __init__(
        self,
        disk: Disk,
        directory: str,
        config: LogConfig,
        tail_bytes: int = TAIL_BYTES,
        tail_budget: TailBudget | None = None,
    ) -> None:
        self.disk = disk
        self.directory = directory
        self.config = config
        self.must_flush = config.flush_messages < LONG_MAX
        self.segments: list[Segment] = []
        self.bases: list[int] = []
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.recovery_point = 0
        self.epochs = Epochs()
        self.has_begun_epoch = False  # the file of epochs lacks the last one, in which nothing is written yet
        self.producers = Producers()
        # Where what a cleaner has not seen yet begins; None: it never comes here.
        self.cleaned_to: int | None = 0 if config.compacts else None
        self.gaps_to = 0  # where it is compacted no more: no gap ends behind this offset
        self.was_cut = False  # what lay on disk was not whole when it was opened
        self.cuts = 0  # how often something was taken from its end
        self.snapshots: list[int] = []  # offsets at which it is written down what `producers` was, sorted
        self.touched = UNKNOWN  # the time, as this log heard of it last
        self.tail = Tail(tail_bytes, tail_budget)
        # Paths other than segments that must be synced, and where the log ended when `unsynced` named them first.
        self.unsynced_others: dict[str, int | None] = {}
        self.warm: Segment | None = None  # the one old segment whose file is left open

    # --- opening

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        config: LogConfig,
        now: Instant,
        *,
        clean: bool,
        recovery_point: int,
        log_start_offset: int,
        cleaned_to: int | None = None,
        tail_bytes: int = TAIL_BYTES,
        tail_budget: TailBudget | None = None,
    ) -> "Log":
        """Load a log, making an empty one if there is none. Unless the last stop was clean, everything from the
        recovery point on is checked batch by batch, and cut at the first one that is not whole."""
        log = cls(disk, directory, config, tail_bytes, tail_budget)
        log.cleaned_to = log.cleaned_to if cleaned_to is None else cleaned_to
        disk.make_directory(directory)
        entries = load_segments(log, now, clean=clean, recovery_point=recovery_point, log_start_offset=log_start_offset)
        if not log.segments:
            log.add(Segment(disk, directory, log_start_offset, config.index_interval_bytes))
            log.unsynced_others[directory] = None
        log.log_end_offset = log.segments[-1].next_offset
        cutting.cut_cleaned(log)
        log.gaps_to = log.log_end_offset if log.has_gaps else 0
        log.log_start_offset = min(max(log_start_offset, log.bases[0]), log.log_end_offset)
        log.recovery_point = log.log_end_offset if clean else min(recovery_point, log.log_end_offset)
        if not clean:
            # The process before may have cut the segment that ends at the recovery point, deleted one behind it, or
            # written its small files, and died before it could sync that.
            cut = [segment.path for segment in log.segments if segment.next_offset == log.recovery_point]
            small = [f"{directory}/{name}" for name in (EPOCHS_FILE, PARTITION_METADATA)]
            log.unsynced_others |= dict.fromkeys([*cut, *small, directory])
        log.epochs.cut_end(log.log_end_offset)
        log.epochs.cut_start(log.log_start_offset)
        if log.epochs.entries != entries:
            log.save_epochs()
        log.touched = now
        believed_below = log.log_end_offset + 1 if clean else log.recovery_point
        producer_snapshot.load(log, now, believed_below=believed_below)
        return log

    @classmethod
    def create(cls, disk: Disk, directory: str, config: LogConfig, now: Instant, tail_budget: TailBudget) -> "Log":
        """An empty log in a directory that was just made: `open` would come to the same, after many a look."""
        log = cls(disk, directory, config, TAIL_BYTES, tail_budget)
        log.add(Segment(disk, directory, 0, config.index_interval_bytes))
        log.unsynced_others[directory] = None
        log.touched = now
        return log

    def add(self, segment: Segment) -> None:
        self.segments.append(segment)
        self.bases.append(segment.base_offset)

    # --- what is known

    @property
    def active(self) -> Segment:
        return self.segments[-1]

    @property
    def latest_epoch(self) -> int:
        return self.epochs.latest

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    def bytes_from(self, offset: int) -> int:
        """The size of the batches that hold `offset` and all that follows it."""
        offset = max(offset, self.log_start_offset)
        if offset >= self.log_end_offset:
            return 0
        at = max(0, bisect_right(self.bases, offset) - 1)
        segment = self.segments[at]
        position = segment.position_of(offset)
        self.rest(segment)
        before = segment.size if position is None else position
        return sum(later.size for later in self.segments[at:]) - before

    def reconfigure(self, config: LogConfig) -> None:
        self.gaps_to = self.gaps_end
        self.config = config
        self.must_flush = config.flush_messages < LONG_MAX
        if config.compacts and self.cleaned_to is None:
            self.cleaned_to = self.log_start_offset

    @property
    def has_gaps(self) -> bool:
        """May offsets be missing between batches? A log that once was compacted has its gaps for as long as it has
        its records, whatever its policy has become."""
        return self.cleaned_to is not None

    @property
    def gaps_end(self) -> int:
        """No gap ends behind this offset."""
        return self.log_end_offset if self.has_gaps and self.config.compacts else self.gaps_to

    def admit_gaps(self, end: int) -> None:
        """The log that this one is a copy of may have gaps that end at `end` or before."""
        if self.cleaned_to is None:
            self.cleaned_to = self.log_start_offset  # what is here was not cleaned here
        self.gaps_to = max(self.gaps_to, end)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def epoch_at(self, offset: int) -> int:
        return self.epochs.epoch_at(offset)

    # --- appending

    def append_as_leader(
        self, records: memoryview | bytearray, leader_epoch: int, now: Instant, *, internal: bool = False
    ) -> Appended | Refused:
        """Append the one batch that a producer sent. Offsets and epoch are written into the buffer itself.

        `internal`: the broker made the batch itself, so control batches are fine and sizes are its own business.
        """
        buffer = memoryview(records)
        config = self.config
        where = self.directory.rpartition("/")[2]
        if internal:
            header = read_header(buffer)
        else:
            accepted = accept_produced(buffer, config, where, now)
            if isinstance(accepted, Refused):
                return accepted
            header = accepted
        if header.producer_id >= 0:
            verdict = duplicates.judge(self, header, now)
            if isinstance(verdict, Remembered):
                stamp = verdict.timestamp if config.message_timestamp_type == LOG_APPEND_TIME else -1
                return Appended(verdict.base_offset, verdict.last_offset, stamp, self.log_start_offset, duplicate=True)
            if verdict is not None:
                return refused(verdict)
        codec = CODEC_OF[config.compression_type]
        if codec is not None and codec != header.codec and not header.is_control:
            size_max = None if internal else config.max_message_bytes
            stored = recompressed(header, buffer, codec, config, where, size_max=size_max)
            if isinstance(stored, Refused):
                return stored
            buffer, header = stored, read_header(stored)
        elif buffer.readonly:
            buffer = memoryview(bytearray(buffer))
        base = self.log_end_offset
        patch(buffer, header, base, leader_epoch)
        stamp = -1
        if config.message_timestamp_type == LOG_APPEND_TIME and not internal:
            patch_log_append_time(buffer, header, now)
            stamp = now
        elif header.attributes & LOG_APPEND_TIME_FLAG and not internal:
            patch_create_time(buffer, header)
        last = base + header.last_offset_delta
        if leader_epoch > self.epochs.latest:
            self.assign_epoch(leader_epoch, base)
        self.write(buffer, base, last, header.max_timestamp if stamp < 0 else stamp, now)
        if header.producer_id >= 0:
            self.producers.appended(header, base, now, stamp)
        return Appended(base, last, stamp, self.log_start_offset, len(buffer))

    def append_as_follower(self, records: Buffer, leader_epoch_max: int, now: Instant = UNKNOWN) -> int | Refused:
        """Append the leader's batches as they are; return the new log end.

        A batch of a later epoch than the one that was asked (T32), and what follows it, is left out. A batch below the
        log end is one that we have already; one that is damaged, overlaps the log's end, or leaves a gap that no
        cleaner made, is refused, after what was sound before it.
        """
        buffer = memoryview(records)
        walked = scan(buffer)
        for header in walked.headers:
            if header.partition_leader_epoch > leader_epoch_max:
                return self.log_end_offset
            if header.next_offset <= self.log_end_offset:
                continue
            gap = header.base_offset - self.log_end_offset
            if gap < 0 or (gap and not self.has_gap_before(header.base_offset)):
                return refused(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"batch at {header.base_offset} does not follow the log's end {self.log_end_offset}",
                )
            why = why_invalid(header, buffer)
            if why is not None:
                return refused(why)
            self.append_copied(header, buffer, now)
        if walked.tail is End.CORRUPT:
            return refused(ErrorCode.CORRUPT_MESSAGE, f"no batch follows offset {self.log_end_offset}")
        return self.log_end_offset

    def has_gap_before(self, offset: int) -> bool:
        """May a batch that begins at `offset` follow after a gap? While the log is compacted, others may have compacted
        more of it; after that no new gap comes, and what is missing behind the last one is damage."""
        return self.has_gaps and (self.config.compacts or offset <= self.gaps_to)

    def append_copied(self, header: BatchHeader, buffer: memoryview, now: Instant) -> None:
        if header.partition_leader_epoch > self.epochs.latest:
            self.assign_epoch(header.partition_leader_epoch, header.base_offset)
        batch = buffer[header.position : header.end]
        self.write(batch, header.base_offset, header.last_offset, header.max_timestamp, now)
        if header.producer_id >= 0:
            self.producers.appended(header, header.base_offset, now)

    def write(self, buffer: memoryview, base: int, last: int, max_timestamp: int, now: Instant) -> None:
        if self.has_begun_epoch:
            self.save_epochs()
        size = len(buffer)
        segment = self.segments[-1]
        if segment.size and (
            segment.size + size > self.config.segment_bytes
            or last - segment.base_offset > OFFSET_SPAN_MAX
            or len(segment.index.offsets) * 8 >= self.config.segment_index_bytes
        ):
            # From its very end on, also where the batch lies behind a gap: so a lost end is never taken for a gap.
            segment = self.roll(max(self.log_end_offset, last - OFFSET_SPAN_MAX))
        if segment.first_append < 0:
            segment.first_append = max(now, max_timestamp) if now < 0 else now
        segment.append((buffer,), size, last, max_timestamp)
        self.touched = now
        self.log_end_offset = last + 1
        self.tail.append(base, last + 1, buffer)

    def roll(self, base_offset: int) -> Segment:
        sealed = self.active
        sealed.seal()
        self.rest(self.warm)
        self.warm = sealed
        segment = Segment(self.disk, self.directory, base_offset, self.config.index_interval_bytes)
        self.add(segment)
        # A time index that lost its end would make the segment look older than it is.
        for path in (self.directory, *sealed.paths[1:]):
            self.unsynced_others[path] = None
        producer_snapshot.take(self, base_offset)
        return segment

    def roll_if_due(self, now: Instant) -> bool:
        """By segment.ms."""
        segment = self.active
        if not segment.size or now - segment.first_append < self.config.roll_ms - self.jitter_ms(segment):
            return False
        self.roll(self.log_end_offset)
        return True

    def jitter_ms(self, segment: Segment) -> int:
        """By segment.jitter.ms: each segment has its own, so that logs that began together do not roll together."""
        most = min(self.config.segment_jitter_ms, self.config.roll_ms)
        return crc32(segment.path.encode()) % most if most else 0

    # --- walking

    def headers(self, offset: int) -> Iterator[BatchHeader]:
        """Headers from the batch that holds `offset` on."""
        at = max(0, bisect_right(self.bases, offset) - 1)
        for segment in self.segments[at:]:
            position = segment.position_of(offset)
            if position is not None:
                yield from segment.headers(position)
            self.rest(segment)

    def rest(self, segment: Segment | None) -> None:
        """Close the file of an old segment, unless it is the one that is left open for the next reader."""
        if segment is not None and segment is not self.active and segment is not self.warm:
            segment.release()

    def warmed(self, segment: Segment) -> None:
        """Readers of old records mostly stay in one segment: its file stays open, and no other one's."""
        if segment is not self.warm and segment is not self.active:
            previous, self.warm = self.warm, segment
            self.rest(previous)

    # --- reading

    def read(
        self, offset: int, max_bytes: int, *, upto: int, min_one: bool, is_checked: bool = False
    ) -> Read | Refused:
        """Whole batches from the one that holds `offset`, below `upto`; at least one if `min_one` and there is one.
        `is_checked`: CORRUPT_MESSAGE where the file does not hold it as it was written."""
        return reading.read(self, offset, max_bytes, upto, min_one=min_one, is_checked=is_checked)

    def offset_for_timestamp(self, timestamp: int) -> Found | Damaged | None:
        """The first record, at or after the log start, whose timestamp is at least `timestamp`."""
        return self.rested(at_or_after(self.segments, timestamp, self.log_start_offset))

    def offset_of_max_timestamp(self) -> Found | Damaged | None:
        """The first record with the largest timestamp of the log."""
        return self.rested(latest(self.segments, self.log_start_offset))

    def rested(self, found: Found | Damaged | None) -> Found | Damaged | None:
        for segment in self.segments:
            self.rest(segment)
        return found

    # --- epochs

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """The file is replaced at once; like the batches that bear the epoch it is durable after the next sync."""
        if self.epochs.assign(epoch, start_offset):
            self.save_epochs()

    def begin_epoch(self, epoch: int) -> None:
        """Of a leader that has written nothing in it: the file may wait for the first batch, and `save_begun_epoch`."""
        if self.epochs.assign(epoch, self.log_end_offset):
            self.has_begun_epoch = True

    def save_begun_epoch(self) -> None:
        if self.has_begun_epoch:
            self.save_epochs()

    def save_epochs(self) -> None:
        self.has_begun_epoch = False
        path = f"{self.directory}/{EPOCHS_FILE}"
        self.disk.write_file(path, format_epochs(self.epochs.entries))
        self.unsynced_others[path] = None
        self.unsynced_others[self.directory] = None

    # --- cutting

    def truncate_to(self, offset: int) -> None:
        """Cut everything from `offset` on (from the batch that holds it)."""
        cutting.truncate_to(self, offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Throw everything away; the next record has `offset`."""
        cutting.truncate_fully_and_start_at(self, offset)

    def advance_log_start(self, offset: int) -> bool:
        """Records below `offset` are deleted (DeleteRecords); whole segments go at the next retention run."""
        return cutting.advance_log_start(self, offset)

    def delete_old_segments(self, now: Instant, high_watermark: int) -> int:
        """Retention by log start, time and size; returns how many segments went. Nothing above the high watermark
        goes."""
        return cutting.delete_old_segments(self, now, high_watermark)

    # --- durability

    def flush_if_due(self) -> None:
        """By flush.messages: the disk is waited for, so that nobody is told of records before they are durable."""
        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
            end = self.log_end_offset
            self.disk.sync(self.unsynced())
            self.mark_synced(end)

    def unsynced(self) -> tuple[str, ...]:
        """Everything that must be synced so that the log is durable up to its present end."""
        for path, end in self.unsynced_others.items():
            if end is None:
                self.unsynced_others[path] = self.log_end_offset
        paths = [s.path for s in self.segments if s.next_offset > self.recovery_point]
        return (*paths, *self.unsynced_others)

    def settle(self) -> tuple[str, ...]:
        """Before a clean stop, after which nothing is checked: write everything; what must be synced for that."""
        self.save_begun_epoch()
        self.active.seal()
        producer_snapshot.take(self, self.log_end_offset)
        indexes = [path for segment in self.segments for path in segment.settle()]
        return (*self.unsynced(), *indexes, *([self.directory] if indexes else []))

    def mark_synced(self, offset: int) -> None:
        """What `unsynced` named when the log ended at `offset` is durable now; what was added since is not. Raises
        DiskError if a segment is not there under its name: nobody will find what was flushed."""
        for segment in reversed(self.segments):
            if segment.next_offset <= self.recovery_point:
                break
            if not self.disk.exists(segment.path):
                raise DiskError(f"{segment.path}: somebody has deleted it")
        if self.unsynced_others:
            self.unsynced_others = {
                path: end for path, end in self.unsynced_others.items() if end is None or end > offset
            }
        self.recovery_point = max(self.recovery_point, min(offset, self.log_end_offset))

    def close(self) -> None:
        for segment in self.segments:
            if segment is self.active:
                segment.seal()
            segment.close()
        self.tail.clear()

    def abandon(self) -> None:
        """Close it without writing what is left to write: nobody opens it again."""
        for segment in self.segments:
            segment.release()
        self.tail.clear()

    def check(self) -> None:
        self.epochs.check()
        assert self.log_start_offset <= self.log_end_offset
        assert self.recovery_point <= self.log_end_offset
        assert self.bases == sorted(set(self.bases))
        assert self.active.next_offset == self.log_end_offset
        assert self.snapshots == sorted(set(self.snapshots))
        assert not self.snapshots or self.snapshots[-1] <= self.log_end_offset
        assert self.producers.end_offset <= self.log_end_offset
