"""The files of one partition's log, and the offsets that they have: where it begins and ends, and what is durable.

It is opened and written here, rolled, cut at both ends, and synced. What may be appended `Log` decides.

The high watermark is not known here: it belongs to the replica.

Invariants (executed by `check`):
  - log_start_offset and recovery point ≤ log end; segments cover [first base offset, log_end_offset) without overlap
  - no producer snapshot is ahead of the log, and what is known of producers are batches that the log had
  - every epoch of the cache begins below the log end, or at it (an epoch that has no record yet)
And of cuts:
  - a truncation is named among what must be synced, so that a power loss after the next sync cannot undo it;
  - a truncation that takes batches of idempotent producers takes them from what is known of these;
  - the epochs are cut with the records, also where an epoch begins at the log's end and has none.
"""

from collections.abc import Iterator
from typing import Self
from zlib import crc32

from strandline.base.ids import OFFSET_MAX
from strandline.base.ports import Disk
from strandline.base.time import Instant
from strandline.log.config import LONG_MAX, LogConfig
from strandline.log.directory import PARTITION_METADATA
from strandline.log.files.epoch_file import EpochFile
from strandline.log.files.opening import load_segments
from strandline.log.files.retention import count_due, is_active_due
from strandline.log.files.swapping import swap_files
from strandline.log.gaps import Gaps
from strandline.log.producers.producer_state import ProducerState
from strandline.log.producers.producers import Producers
from strandline.log.segment import OFFSET_SPAN_MAX, Segment
from strandline.log.segments import Segments
from strandline.log.tail import Tail, TailBudget
from strandline.log.unsynced import Unsynced
from strandline.wire.batch import BatchHeader

TAIL_BYTES = 4 << 20
UNKNOWN = Instant(-1)


class StoredLog:
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
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.recovery_point = 0
        self.was_cut = False  # what lay on disk was not whole when it was opened
        self.cuts = 0  # how often something was taken from its end
        self.touched = UNKNOWN  # the time, as this log heard of it last
        self.unsynced_others = Unsynced()
        self.segments = Segments(disk, directory, self.unsynced_others)
        self.epoch_file = EpochFile(disk, directory, self.unsynced_others)
        self.epochs = self.epoch_file.epochs
        self.gaps = Gaps(compacts=config.compacts)
        self.producer_state = ProducerState(self.segments, config.producer_id_expiration_ms)
        self.tail = Tail(tail_bytes, tail_budget)

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
        high_watermark: int = OFFSET_MAX,
        tail_bytes: int = TAIL_BYTES,
        tail_budget: TailBudget | None = None,
    ) -> Self:
        """Load a log, making an empty one if there is none. Unless the last stop was clean, everything from the
        recovery point on is checked batch by batch, and cut at the first one that is not whole. `high_watermark`: a
        transaction is not over for readers whose marker lies there or behind it."""
        disk.make_directory(directory)
        log = cls(disk, directory, config, tail_bytes, tail_budget)
        log.gaps = Gaps(compacts=config.compacts, cleaned_to=cleaned_to)
        interval = config.index_interval_bytes
        loaded = load_segments(
            log.segments,
            log.gaps,
            interval,
            now,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
        )
        if not log.segments:
            log.segments.begin(log_start_offset, interval)
        log.was_cut = loaded.was_cut
        log.log_end_offset = log.segments.active.next_offset
        log.gaps.opened(log.log_end_offset)
        log.log_start_offset = min(max(log_start_offset, log.bases[0]), log.log_end_offset)
        log.recovery_point = log.log_end_offset if clean else min(recovery_point, log.log_end_offset)
        if not clean:
            log.unsynced_others.add(*log.unsynced_before())
        log.epochs.replace(loaded.epochs.entries)
        log.epochs.cut_end(log.log_end_offset)
        log.epochs.cut_start(log.log_start_offset)
        if log.epochs.entries != loaded.entries:
            log.epoch_file.save()
        log.touched = now
        believed_below = log.log_end_offset + 1 if clean else log.recovery_point
        log.producer_state.load(log.log_start_offset, log.log_end_offset, now, believed_below=believed_below)
        log.producer_state.wait_for_markers(high_watermark, log.log_start_offset, log.log_end_offset, now)
        assert log.log_start_offset <= log.log_end_offset >= log.recovery_point
        return log

    def unsynced_before(self) -> list[str]:
        """The process before may have cut the segment that ends at the recovery point, deleted one behind it, or
        written its small files, and died before it could sync that."""
        assert self.segments and self.recovery_point <= self.log_end_offset
        cut = [segment.path for segment in self.segments if segment.next_offset == self.recovery_point]
        return [*cut, self.epoch_file.path, f"{self.directory}/{PARTITION_METADATA}", self.directory]

    @classmethod
    def create(cls, disk: Disk, directory: str, config: LogConfig, now: Instant, tail_budget: TailBudget) -> Self:
        """An empty log in a directory that was just made: `open` would come to the same, after many a look."""
        log = cls(disk, directory, config, TAIL_BYTES, tail_budget)
        log.segments.begin(0, config.index_interval_bytes)
        assert not log.active.size, "the directory was not empty"
        log.touched = now
        return log

    # --- what is known

    @property
    def active(self) -> Segment:
        return self.segments.active

    @property
    def bases(self) -> list[int]:
        return self.segments.bases

    @property
    def producers(self) -> Producers:
        return self.producer_state.producers

    @property
    def latest_epoch(self) -> int:
        return self.epochs.latest

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    def headers(self, offset: int) -> Iterator[BatchHeader]:
        """Headers from the batch that holds `offset` on."""
        return self.segments.headers(offset)

    def reconfigure(self, config: LogConfig) -> None:
        start, end = self.log_start_offset, self.log_end_offset
        self.gaps.reconfigure(compacts=config.compacts, log_start_offset=start, log_end_offset=end)
        self.producer_state.reconfigure(config.producer_id_expiration_ms)
        self.config = config
        self.must_flush = config.flush_messages < LONG_MAX
        assert self.has_gaps or not config.compacts

    @property
    def has_gaps(self) -> bool:
        """May offsets be missing between batches?"""
        return self.gaps.are_possible

    @property
    def cleaned_to(self) -> int | None:
        """Where the part begins that no cleaner has seen; None: no cleaner ever works on this log."""
        return self.gaps.cleaned_to

    @property
    def gaps_end(self) -> int:
        """No gap ends behind this offset."""
        return self.gaps.end(self.log_end_offset)

    def admit_gaps(self, end: int) -> None:
        """The log that this one is a copy of may have gaps that end at `end` or before."""
        self.gaps.admit(end, self.log_start_offset)

    # --- appending

    def write(self, buffer: memoryview, base: int, last: int, max_timestamp: int, now: Instant) -> None:
        if self.epoch_file.is_behind:
            self.epoch_file.save()
        size = len(buffer)
        segment = self.segments.active
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
        assert base_offset >= self.log_end_offset
        segment = self.segments.roll(base_offset, self.config.index_interval_bytes)
        self.producer_state.take(base_offset)
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
        assert most >= 0
        return crc32(segment.path.encode()) % most if most else 0

    # --- epochs

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """The file is replaced at once; like the batches that bear the epoch it is durable after the next sync."""
        self.epoch_file.assign(epoch, start_offset)

    def begin_epoch(self, epoch: int) -> None:
        """A leader has written nothing in it: the file may wait for the first batch, and `save_begun_epoch`."""
        self.epoch_file.begin(epoch, self.log_end_offset)

    def save_begun_epoch(self) -> None:
        self.epoch_file.catch_up()

    # --- cutting

    def truncate_to(self, offset: int) -> None:
        """Cut everything from `offset` on (from the batch that holds it). An epoch that begins at the log's end, and
        has no batch, goes too."""
        self.epoch_file.cut_end(offset)  # guard: epoch-without-records-survives-truncation
        if offset >= self.log_end_offset:
            return
        if offset <= self.bases[0]:
            self.truncate_fully_and_start_at(max(offset, 0))
            return
        self.tail.clear()
        self.cuts += 1
        ends_in_gap = self.segments.truncate_to(offset)
        self.log_end_offset = self.active.next_offset
        assert self.log_end_offset <= offset
        self.recovery_point = min(self.recovery_point, self.log_end_offset)
        self.gaps.cut(self.log_end_offset)
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
        self.epoch_file.cut_end(self.log_end_offset)
        self.producer_state.cut_end(self.log_start_offset, self.log_end_offset, self.touched)
        assert not self.epochs.entries or self.epochs.entries[-1].start_offset < self.log_end_offset
        assert self.active.path in self.unsynced_others.ends, "a loss of power would undo the cut"
        if ends_in_gap:
            self.roll(self.log_end_offset)  # or a start would find the log shorter: nothing else says where it ends

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Throw everything away; the next record has `offset`."""
        assert offset >= 0
        self.tail.clear()
        self.cuts += 1
        self.producer_state.cut_all()
        self.segments.start_anew(offset, self.config.index_interval_bytes)
        self.log_start_offset = self.log_end_offset = self.recovery_point = offset
        assert not self.size_bytes and not self.producers.known, "nothing is left"
        self.gaps.cut(offset)
        self.epoch_file.clear()

    def advance_log_start(self, offset: int) -> bool:
        """Records below `offset` are deleted (DeleteRecords); whole segments go at the next retention run."""
        if not self.log_start_offset < offset <= self.log_end_offset:
            return False
        self.log_start_offset = offset
        self.epoch_file.cut_start(offset)
        return True

    def delete_old_segments(self, now: Instant, high_watermark: int) -> int:
        """Retention by log start, time and size; returns how many segments went."""
        assert high_watermark <= self.log_end_offset
        if is_active_due(self.active, self.config, high_watermark, now):
            self.roll(self.log_end_offset)
        count = count_due(self.segments, self.config, self.log_start_offset, high_watermark, now)
        for _ in range(count):
            self.segments.drop_first()
        if count:
            self.log_start_offset = max(self.log_start_offset, self.bases[0])
            self.epoch_file.cut_start(self.log_start_offset)
            self.producer_state.cut_start()
        assert self.bases[0] <= self.log_start_offset <= self.log_end_offset
        self.producer_state.forget_idle(now)
        return count

    def swap(self, group: list[Segment], cleaned: Segment) -> None:
        """`cleaned`, sealed and durable, takes the place of `group`: the same records, without those that a cleaner
        took."""
        swap_files(self.disk, self.directory, group, cleaned)
        self.segments.replace(group, cleaned)
        self.tail.forget_below(cleaned.next_offset)
        assert self.active.next_offset == self.log_end_offset, "the log ends where it did"
        self.producer_state.drop(segment.base_offset for segment in group[1:])

    # --- durability

    def flush_if_due(self) -> None:
        """For flush.messages: this waits for the disk, so that records are durable before anybody sees them."""
        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
            end = self.log_end_offset
            self.disk.sync(self.unsynced())
            self.mark_synced(end)
            assert self.recovery_point == end

    def unsynced(self) -> tuple[str, ...]:
        """Everything that must be synced so that the log is durable up to its present end."""
        others = self.unsynced_others.name(self.log_end_offset)
        return (*self.segments.unsynced_paths(self.recovery_point), *others)

    def write_all(self) -> tuple[str, ...]:
        """Before a clean stop, after which nothing is checked: write everything; what must be synced for that."""
        self.epoch_file.save_if_different()
        self.active.seal()
        self.producer_state.take(self.log_end_offset)
        assert not self.epoch_file.is_behind, "a clean stop leaves nothing unwritten"
        indexes = self.segments.flush_indexes()
        return (*self.unsynced(), *indexes)

    def mark_synced(self, offset: int) -> None:
        """What `unsynced` named when the log ended at `offset` is durable now; what was added since is not. Raises
        DiskError if a segment is not there under its name."""
        self.segments.check_names(self.recovery_point)
        self.unsynced_others.synced(offset)
        self.recovery_point = max(self.recovery_point, min(offset, self.log_end_offset))
        assert self.recovery_point <= self.log_end_offset

    def close(self) -> None:
        self.segments.close()
        self.tail.clear()

    def abandon(self) -> None:
        """Close it without writing what is left to write: nobody opens it again."""
        self.segments.abandon()
        self.tail.clear()

    def check(self) -> None:
        self.segments.check()
        self.epochs.check()
        self.gaps.check(self.log_end_offset)
        self.producer_state.check(self.log_end_offset)
        self.tail.check(self.log_end_offset)
        assert self.bases[0] <= self.log_start_offset <= self.log_end_offset
        assert 0 <= self.recovery_point <= self.log_end_offset
        assert self.active.next_offset == self.log_end_offset
        starts = self.epochs.entries
        assert not starts or starts[-1].start_offset <= self.log_end_offset, "an epoch begins behind the log's end"
        is_begun = bool(starts) and starts[-1].start_offset == self.log_end_offset
        assert is_begun or not self.epoch_file.is_behind, "a batch bears an epoch that the file lacks"
        assert self.must_flush == (self.config.flush_messages < LONG_MAX)
        assert self.gaps.compacts == self.config.compacts
