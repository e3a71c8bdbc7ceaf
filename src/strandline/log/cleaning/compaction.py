"""One pass of the cleaner over one log: of each key the last record stays (Kafka's Cleaner).

Steps, each of a bounded number of bytes:
  1. The dirty part is read: where does the last record of each key lie? The map is bounded; before the batch in which
     it is full the pass ends, and the next one begins.
  2. All segments up to there are copied, a group at a time, without the records whose key has a later one. A group is
     what fits into one segment. Its copy is made durable, and takes the place of the group (`swapping`).

What stays of a batch keeps its offsets, its producer, its sequences, its leader epoch and its codec. A tombstone stays
for `delete.retention.ms` after the first pass that saw it: then its batch gets that delete horizon. A batch of
which nothing stays is kept as an empty one if it is one that is remembered of a producer, the first of a leader
epoch, the last below the high watermark, or the last of its group: what says where a producer stands, where a log ends,
and where its epochs begin, stays, also for a replica that has nothing but a copy; and a segment ends where the next one
begins. So recovery can distinguish a lost segment from a gap, however old its checkpoints are.

What becomes of transactions and their markers, `decided` says.

Invariants:
  - a pass that finds the log cut, or a segment gone that it has yet to read, ends and leaves nothing behind
    (`is_stale`);
  - damage is never copied: every batch is checked before.
"""

import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import pairwise

from strandline.base.ports import Buffer, Cold
from strandline.base.time import Instant
from strandline.log.cleaning.cleanable import Cleanable
from strandline.log.cleaning.decided import Decided
from strandline.log.config import LONG_MAX
from strandline.log.files.swapping import drop_cleaned, new_cleaned
from strandline.log.log import Log
from strandline.log.segment import OFFSET_SPAN_MAX, Segment
from strandline.wire.batch import (
    CODEC_MASK,
    CRC_AND_ATTRIBUTES,
    CRC_AT,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    BatchHeader,
    build,
    crc_of,
    read_header,
    why_invalid,
    why_no_batch,
)
from strandline.wire.compress import Codec, Corrupt
from strandline.wire.record import Record, records

KEY_MAX = 16
KEY_COST = 200  # bytes of memory that a key in the map needs
RECORD_COST = 100  # a record is work for as many bytes, however small it is


class Uncleanable(Exception):
    """The log has something that no cleaner can copy. It is left as it is."""


class Kept:
    """What decides over records: the last offset of each key below `end`, and the batches that stay even if empty."""

    def __init__(
        self,
        now: Instant,
        retention_ms: int,
        remembered: set[tuple[int, int]],
        ends: list[int],
        starts: list[int],
        decided: Decided,
    ) -> None:
        assert starts == sorted(starts), "each is asked about once, in order"
        self.now = now
        self.horizon = min(now + retention_ms, LONG_MAX)
        self.remembered = remembered  # of idempotent producers: whose, and the last offset of each batch
        self.ends = ends
        self.decided = decided
        self.fenced: dict[int, int] = {}  # epochs of producers that only a marker tells
        self.starts = starts  # of the epochs that are still to come
        self.last_of_key: dict[bytes, int] = {}
        self.end = 0

    def is_kept(self, record: Record, header: BatchHeader) -> bool:
        if record.offset >= self.end:
            return True
        # guard: last-of-a-key-dropped
        if record.key is None or record.offset < self.last_of_key.get(fingerprint(record.key), -1):
            return False
        # guard: tombstone-dropped-at-once
        return record.value is not None or not header.has_delete_horizon or self.now < header.base_timestamp

    def is_kept_empty(self, header: BatchHeader) -> bool:
        if header.is_control and self.fenced.get(header.producer_id) == header.producer_epoch:
            return True
        return (header.producer_id, header.last_offset) in self.remembered or header.next_offset in self.ends

    def begins_epoch(self, header: BatchHeader) -> bool:
        """Is it the first batch that has, or follows, the start of an epoch? Each is asked about once, in order."""
        count = len(self.starts)
        while self.starts and self.starts[0] < header.next_offset:
            del self.starts[0]
        return len(self.starts) < count

    def cleaned(self, header: BatchHeader, batch: memoryview) -> tuple[Buffer | None, int]:
        """What of a batch stays, None if nothing does; and how much work that was."""
        begins_epoch = self.begins_epoch(header)
        if header.base_offset >= self.end:
            return batch, 0
        if header.is_control:
            rest = self.decided.marker(header, batch, self.now, self.horizon)
            is_kept = rest is not None or begins_epoch or self.is_kept_empty(header)
            return (empty(header) if rest is None and is_kept else rest), RECORD_COST
        assert header.size == len(batch)
        found = list(records(read_header(batch), batch))
        is_aborted = self.decided.is_aborted(header)
        kept = [] if is_aborted else [record for record in found if self.is_kept(record, header)]
        work = len(found) * RECORD_COST
        if not kept and not begins_epoch and not self.is_kept_empty(header):
            return None, work
        self.decided.keeps(header)
        if not kept:
            return empty(header), work
        is_new = not header.has_delete_horizon and any(r.value is None and r.offset < self.end for r in kept)
        if len(kept) == len(found) and not is_new:
            return batch, work
        horizon = header.base_timestamp if header.has_delete_horizon else self.horizon if is_new else None
        if not can_say_times(kept, horizon):
            return batch, work
        return rebuilt(header, kept, horizon), work


class Compaction:
    def __init__(self, log: Log, plan: Cleanable, high_watermark: int, now: Instant, map_bytes: int) -> None:
        self.log = log
        self.plan = plan
        self.keys_max = max(1, map_bytes // KEY_COST)
        self.cuts = log.cuts
        remembered = {(p, b.last_offset) for p, known in log.producers.known.items() for b in known.batches}
        decided = Decided(log.aborted(log.log_start_offset, plan.end, now))
        starts = [entry.start_offset for entry in log.epochs.entries]
        self.kept = Kept(now, log.config.delete_retention_ms, remembered, [high_watermark], starts, decided)
        self.kept.fenced = {p: known.epoch for p, known in log.producers.known.items() if not known.batches}
        self.kept.end = plan.first_dirty
        assert plan.first_dirty <= plan.end <= log.active.base_offset, "the active segment is never cleaned"
        assert high_watermark <= log.log_end_offset
        self.segments = [s for s in log.segments if s.base_offset < plan.end]
        self.source = next((at for at, s in enumerate(self.segments) if s.next_offset > plan.first_dirty), 0)
        self.position = -1  # of the next batch in the segment that is read; −1: not known yet
        self.reached = 0  # where the batch before it ended
        self.is_mapped = False
        self.groups: list[list[Segment]] = []
        self.copy: Segment | None = None
        self.is_copied = False  # the first group, and its copy waits to be made durable
        self.bytes_moved = 0  # read and written

    # --- what is asked of it

    @property
    def is_done(self) -> bool:
        return self.is_mapped and not self.groups

    @property
    def end_offset(self) -> int:
        """Everything below it has been compacted once the pass is done."""
        return self.kept.end

    @property
    def is_stale(self) -> bool:
        """Is what is still to be read another log than the pass began with? What was read may go: or where retention
        takes segments all the time no pass would ever end."""
        log = self.log
        assert self.cuts <= log.cuts
        if log.cuts != self.cuts or not log.config.compacts:
            return True
        ahead = [s for group in self.groups for s in group] if self.is_mapped else self.segments[self.source :]
        if not ahead:
            return self.is_mapped
        at = next((at for at, base in enumerate(log.bases) if base >= ahead[0].base_offset), len(log.bases))
        return log.segments[at : at + len(ahead)] != ahead

    def go_on(self, limit: int) -> int:
        """Work for about `limit` bytes, one batch at least; returns for how many it was."""
        assert limit > 0
        done = 0
        try:
            while done < limit and not self.is_done and not self.is_copied:
                done += self.copy_some(limit - done) if self.is_mapped else self.map_some(limit - done)
        except (Corrupt, ArithmeticError, LookupError, ValueError, struct.error) as why:
            # Whatever a producer made up: one log is left alone, and the broker lives on.
            raise Uncleanable(f"{self.log.directory}: {why}") from None
        assert done > 0 or self.is_done or self.is_copied, "each step goes on"
        return done

    def cold_part(self, limit: int) -> Cold | None:
        """What a step of `limit` bytes would begin with and wait for."""
        segments, at, position = self.segments, self.source, self.position
        if self.is_mapped:
            segments = self.groups[0] if self.groups else []
            at, position = (0, 0) if self.copy is None else (at, position)
        assert 0 <= at <= len(segments)
        if at == len(segments):
            return None
        segment = segments[at]
        return segment.cold_at(segment.index.position_of(self.plan.first_dirty) if position < 0 else position, limit)

    def unsynced(self) -> tuple[str, ...]:
        """What must be made durable before `swap`."""
        assert self.copy is not None and self.is_copied, "more of it is still to come"
        aborted = (self.copy.aborted.path,) if self.copy.aborted.entries else ()
        return (*self.copy.paths, *aborted, self.log.directory)

    def swap(self) -> None:
        """The copy is durable."""
        assert self.copy is not None and self.is_copied
        group = self.groups.pop(0)
        self.log.swap(group, self.copy)
        at = self.segments.index(group[0])
        self.segments[at : at + len(group)] = [self.copy]
        self.copy, self.is_copied, self.position = None, False, -1
        if not self.groups:
            self.log.gaps.cleaned(self.kept.end)

    def abandon(self) -> None:
        """Leave the log as it is."""
        if self.copy is not None:
            drop_cleaned(self.copy)
            self.copy = None
        for segment in self.segments:
            self.log.segments.rest(segment)

    # --- the map

    def map_some(self, limit: int) -> int:
        if self.source == len(self.segments):
            return self.mapped(self.plan.end)
        assert not self.is_mapped and self.source < len(self.segments)
        segment = self.segments[self.source]
        if self.position < 0:
            self.position, self.reached = segment.position_of(self.plan.first_dirty) or 0, segment.base_offset
        done = 0
        for header, batch in self.batches(segment, limit):
            done += header.size
            if header.last_offset < self.plan.first_dirty or header.is_control or self.kept.decided.is_aborted(header):
                continue
            for record in records(read_header(batch), batch):
                done += RECORD_COST
                if record.key is None or record.offset < self.plan.first_dirty:
                    continue
                key = fingerprint(record.key)
                if len(self.kept.last_of_key) >= self.keys_max and key not in self.kept.last_of_key:
                    self.log.segments.rest(segment)
                    # Between batches, if the pass comes on so: the horizon of a batch is for all its tombstones.
                    is_progress = header.base_offset > self.plan.first_dirty
                    return done + self.mapped(header.base_offset if is_progress else record.offset)
                self.kept.last_of_key[key] = record.offset
            if done >= limit:
                break
        if self.position >= segment.size:
            self.log.segments.rest(segment)
            self.source, self.position = self.source + 1, -1
        return done + 1

    def mapped(self, end: int) -> int:
        assert not self.is_mapped and self.plan.first_dirty <= end <= self.plan.end
        self.kept.end = end
        self.is_mapped, self.position = True, -1
        self.segments = [s for s in self.log.segments if s.base_offset < end]  # without those that went since
        assert self.log.active not in self.segments
        self.groups = groups_of(self.segments, self.log)
        bases = self.log.bases
        self.kept.ends += [bases[bisect_right(bases, group[-1].base_offset)] for group in self.groups]
        return 1

    # --- the copies

    def copy_some(self, limit: int) -> int:
        assert self.is_mapped and not self.is_copied
        group = self.groups[0]
        if self.copy is None:
            log = self.log
            self.copy = new_cleaned(log.disk, log.directory, group[0].base_offset, log.config.index_interval_bytes)
            self.source, self.position = 0, 0
        segment = group[self.source]
        if self.position == 0:
            self.reached = segment.base_offset
        done = 1
        fresh: list[tuple[Buffer, BatchHeader]] = []
        for header, batch in self.batches(segment, limit):
            rest, work = self.kept.cleaned(header, batch)
            done += header.size + work
            if rest is not None:
                fresh.append((rest, read_header(rest)))
            if done >= limit:
                break
        self.write(self.copy, fresh)
        if self.position >= segment.size:
            self.log.segments.rest(segment)
            self.source, self.position = self.source + 1, 0
        if self.source == len(group):
            for entry in [entry for one in group for entry in one.aborted.entries]:
                if entry.last_offset not in self.kept.decided.gone:
                    self.copy.aborted.append(entry)
            self.copy.seal()
            self.is_copied = True
        return done

    def write(self, copy: Segment, fresh: list[tuple[Buffer, BatchHeader]]) -> None:
        if not fresh:
            return
        size = sum(header.size for _, header in fresh)
        if copy.size + size > OFFSET_SPAN_MAX:
            raise Uncleanable(f"{copy.path} becomes too large")
        assert all(one.last_offset < two.base_offset for (_, one), (_, two) in pairwise(fresh)), "in their order"
        assert fresh[0][1].base_offset >= copy.next_offset, "behind what was copied before"
        written = copy.file.append([batch for batch, _ in fresh])
        assert written == size
        for _, header in fresh:
            copy.enter(copy.size, header.size, header.last_offset, header.max_timestamp)
            copy.size += header.size
        self.bytes_moved += size

    def batches(self, segment: Segment, limit: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Some batches from `position` on, which follows them; each is checked. Where it begins no checksum covers."""
        if self.position >= segment.size:
            return
        buffer = segment.file.read(self.position, max(limit, HEADER_SIZE))
        if why_no_batch(buffer, 0) is not None and len(buffer) >= HEADER_SIZE:
            buffer = segment.file.read(self.position, max(limit, read_header(buffer).size))
        at = 0
        while why_no_batch(buffer, at) is None:
            header = read_header(buffer, at)
            if why_invalid(header, buffer) is not None:
                break
            if header.base_offset < self.reached or header.next_offset > segment.next_offset:
                break
            at = header.end
            self.position, self.reached = self.position + header.size, header.next_offset
            assert self.position <= segment.size
            self.bytes_moved += header.size
            yield header, buffer[header.position : header.end]
        if at == 0:
            raise Uncleanable(f"{segment.path}: no sound batch at {self.position}")


def fingerprint(key: bytes) -> bytes:
    """The key, or what stands for it where it is long: memory is bounded by the number of keys."""
    return key if len(key) < KEY_MAX else blake2b(key, digest_size=KEY_MAX).digest()


def groups_of(segments: Sequence[Segment], log: Log) -> list[list[Segment]]:
    """Neighbours that fit into one segment together, so that many compactions leave few small segments."""
    groups: list[list[Segment]] = []
    size = entries = 0
    for segment in segments:
        entered = len(segment.index.offsets)
        fits = (
            groups
            and size + segment.size <= log.config.segment_bytes
            and (entries + entered) * 8 <= log.config.segment_index_bytes
            and segment.next_offset - 1 - groups[-1][0].base_offset <= OFFSET_SPAN_MAX
        )
        if not fits:
            groups.append([])
            size = entries = 0
        groups[-1].append(segment)
        size, entries = size + segment.size, entries + entered
    assert [one for group in groups for one in group] == list(segments), "each segment is in one group"
    return groups


def can_say_times(kept: Sequence[Record], horizon: int | None) -> bool:
    """Records bear times as differences to the batch's: a producer can make up some that no other batch can bear."""
    assert kept, "`empty` has no times to say"
    base = kept[0].timestamp if horizon is None else horizon
    return all(abs(r.timestamp) <= LONG_MAX and abs(r.timestamp - base) <= LONG_MAX for r in kept)


def rebuilt(header: BatchHeader, kept: Sequence[Record], horizon: int | None) -> bytes:
    assert kept and kept[-1].offset <= header.last_offset
    return build(
        [record[1:] for record in kept],
        base_offset=header.base_offset,
        leader_epoch=header.partition_leader_epoch,
        codec=Codec(header.codec),
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        log_append_time=header.max_timestamp if header.is_log_append_time else None,
        delete_horizon=horizon,
        offset_deltas=[record.offset - header.base_offset for record in kept],
        last_offset_delta=header.last_offset_delta,
    )


def empty(header: BatchHeader) -> bytes:
    """The batch's range, producer and sequences, without a record."""
    batch = bytearray(HEADER_SIZE)
    attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON)
    HEADER.pack_into(
        batch,
        0,
        header.base_offset,
        HEADER_SIZE - LOG_OVERHEAD,
        header.partition_leader_epoch,
        MAGIC,
        0,
        attributes,
        header.last_offset_delta,
        NO_TIMESTAMP,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        0,
    )
    CRC_AND_ATTRIBUTES.pack_into(batch, CRC_AT, crc_of(read_header(batch), batch), attributes)
    assert why_invalid(read_header(batch), batch) is None
    return bytes(batch)
