"""The log of one partition: what a leader, a follower and a reader do with it.

Invariant: a refused append changes nothing. (`StoredLog` has and executes those of the files.)
"""

from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSET_MAX
from strandline.base.ports import Buffer, Cold
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.log.files.stored_log import UNKNOWN, StoredLog
from strandline.log.indexes.aborted import AbortedTransaction
from strandline.log.producers import duplicates
from strandline.log.producers.producers import Remembered
from strandline.log.producers.transactions import Transactions
from strandline.log.reading import NOTHING, Read, read_files
from strandline.log.recompress import CODEC_OF, recompressed
from strandline.log.refusals import (
    INSIDE_TRANSACTION,
    LOG_APPEND_TIME,
    NOT_THE_FIRST,
    OUTSIDE_TRANSACTION,
    Refused,
    accept_produced,
    partition_in,
    refused,
)
from strandline.log.timestamps import Damaged, Found, at_or_after, latest, search_start
from strandline.wire.batch import LOG_APPEND_TIME as LOG_APPEND_TIME_FLAG
from strandline.wire.batch import (
    BatchHeader,
    batches,
    patch,
    patch_create_time,
    patch_log_append_time,
    read_header,
    scan,
    why_invalid,
)
from strandline.wire.batch import Tail as End
from strandline.wire.control import EndTxnMarker, build_end_txn, read_marker


class Appended(Value, frozen=True):
    """What a leader's append did. For a duplicate the offsets are those of the first time: the log has it there."""

    base_offset: int
    last_offset: int
    log_append_time: int  # -1 with CreateTime
    log_start_offset: int
    size_bytes: int = 0  # as it is stored; 0 for a duplicate
    duplicate: bool = False


class Log(StoredLog):
    # --- what is known

    def bytes_from(self, offset: int) -> int:
        """The size of the batches that hold `offset` and all that follows it."""
        offset = max(offset, self.log_start_offset)
        size = 0 if offset >= self.log_end_offset else self.segments.bytes_from(offset)
        assert 0 <= size <= self.size_bytes
        return size

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def epoch_at(self, offset: int) -> int:
        return self.epochs.epoch_at(offset)

    @property
    def transactions(self) -> Transactions:
        return self.producers.transactions

    def last_stable_offset(self, high_watermark: int) -> int:
        """What a read_committed consumer may read up to (exclusive, despite its name)."""
        assert high_watermark <= self.log_end_offset
        if not self.producer_state.producers.transactions.are_used:
            return high_watermark
        # guard: stable-is-the-high-watermark
        return max(self.transactions.stable_end(high_watermark), min(self.log_start_offset, high_watermark))

    def aborted(self, start: int, end: int, now: Instant) -> list[AbortedTransaction]:
        """The aborted transactions that have records in [start, end), which lies below the last stable offset."""
        if not self.producer_state.has_aborted:
            return []
        if any(segment.aborted.is_damaged for segment in self.segments.from_offset(start)):
            self.producer_state.distrust(self.log_start_offset, self.log_end_offset, now)
        return self.producer_state.aborted(start, end)

    # --- appending

    def append_as_leader(
        self,
        records: memoryview | bytearray,
        leader_epoch: int,
        now: Instant,
        *,
        internal: bool = False,
        may_begin: bool = False,
        from_zero: bool = False,
    ) -> Appended | Refused:
        """Append the one batch that a producer sent. Offsets and epoch are written into the buffer itself.

        `internal`: the broker made the batch itself, so sizes are its own business. `may_begin`: a coordinator has
        verified that the producer's transaction has this partition, so the batch may be its first one here (KIP-890).
        `from_zero`: each of the producer's transactions has an epoch of its own, so its first batch has sequence 0.
        """
        buffer = memoryview(records)
        config = self.config
        header = read_header(buffer) if internal else accept_produced(buffer, config, self.directory, now)
        if isinstance(header, Refused):
            return header
        if header.producer_id >= 0:
            verdict = duplicates.judge(self, header, now)
            if isinstance(verdict, Remembered):
                stamp = verdict.timestamp if config.message_timestamp_type == LOG_APPEND_TIME else -1
                return Appended(verdict.base_offset, verdict.last_offset, stamp, self.log_start_offset, duplicate=True)
            if verdict is not None:
                return refused(verdict)
            if header.is_transactional or self.producer_state.producers.transactions.open:
                why = self.why_not_in_transaction(header, may_begin=may_begin, from_zero=from_zero)
                if why is not None:
                    return why
        codec = CODEC_OF[config.compression_type]
        if codec is not None and codec != header.codec and not header.is_control:
            size_max = None if internal else config.max_message_bytes
            where = partition_in(self.directory)
            stored = recompressed(header, buffer, codec, config, where, size_max=size_max)
            if isinstance(stored, Refused):
                return stored
            buffer, header = stored, read_header(stored)  # guard: recompressed-batch-keeps-its-length
        elif buffer.readonly:
            buffer = memoryview(bytearray(buffer))
        return self.append_accepted(header, buffer, leader_epoch, now, internal=internal)

    def why_not_in_transaction(self, header: BatchHeader, *, may_begin: bool, from_zero: bool) -> Refused | None:
        """A batch of a newer epoch never joins the transaction that its producer has open here. The marker that ends
        it is still to come, and may have this epoch too: the log would refuse it as a late one, and the transaction
        would stay open for ever (KIP-890)."""
        assert header.producer_id >= 0
        if not self.transactions.is_open(header.producer_id):
            if from_zero and header.base_sequence > 0 and header.producer_id not in self.producers.known:
                return NOT_THE_FIRST
            # guard: transaction-begins-where-it-may
            return OUTSIDE_TRANSACTION if header.is_transactional and not may_begin else None
        if not header.is_transactional:
            return INSIDE_TRANSACTION
        # guard: newer-epoch-joins-an-open-transaction
        return OUTSIDE_TRANSACTION if header.producer_epoch > self.producers.known[header.producer_id].epoch else None

    def append_accepted(
        self, header: BatchHeader, buffer: memoryview, leader_epoch: int, now: Instant, *, internal: bool
    ) -> Appended:
        """Give the batch its place, epoch and time, and write it."""
        base = self.log_end_offset
        patch(buffer, header, base, leader_epoch)
        stamp = -1
        if not internal:
            if self.config.message_timestamp_type == LOG_APPEND_TIME:
                patch_log_append_time(buffer, header, now)
                stamp = now
            elif header.attributes & LOG_APPEND_TIME_FLAG:
                patch_create_time(buffer, header)
        last = base + header.last_offset_delta
        if leader_epoch > self.epochs.latest:
            self.epoch_file.assign(leader_epoch, base)
        self.write(buffer, base, last, header.max_timestamp if stamp < 0 else stamp, now)
        if header.producer_id >= 0:
            marker = read_marker(buffer) if header.is_control else None
            self.producer_state.ended(self.producers.appended(header, base, now, stamp, marker))
        return Appended(base, last, stamp, self.log_start_offset, len(buffer))

    def append_marker(
        self, producer_id: int, producer_epoch: int, marker: EndTxnMarker, leader_epoch: int, now: Instant, version: int
    ) -> Appended | Refused:
        """End a producer's transaction here, as its coordinator has decided. `version`: of transaction.version."""
        why = self.producers.why_no_marker(producer_id, producer_epoch, marker, version)
        if why is not None:
            return refused(why)
        batch = build_end_txn(marker, timestamp=now, producer_id=producer_id, producer_epoch=producer_epoch)
        buffer = memoryview(bytearray(batch))
        appended = self.append_accepted(read_header(buffer), buffer, leader_epoch, now, internal=True)
        assert not self.transactions.is_open(producer_id), "the marker ends it"
        return appended

    def append_as_follower(self, records: Buffer, leader_epoch_max: int, now: Instant = UNKNOWN) -> int | Refused:
        """Append the leader's batches as they are; return the new log end.

        A batch of a later epoch than the one that was asked (T32), and what follows it, is left out. A batch below the
        log end is one that we have already; one that is damaged, overlaps the log's end, or leaves a gap that no
        cleaner made, is refused, after what was sound before it.
        """
        buffer = memoryview(records)
        walked = scan(buffer)
        for header in walked.headers:
            if header.partition_leader_epoch > leader_epoch_max:  # guard: batches-of-a-later-epoch-appended
                return self.log_end_offset
            if header.next_offset <= self.log_end_offset:
                continue
            if header.next_offset > OFFSET_MAX:
                return refused(ErrorCode.CORRUPT_MESSAGE, f"no log comes to offset {header.next_offset}")
            gap = header.base_offset - self.log_end_offset
            if gap < 0 or (gap and not self.gaps.may_precede(header.base_offset)):
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

    def append_copied(self, header: BatchHeader, buffer: memoryview, now: Instant) -> None:
        if header.partition_leader_epoch > self.epochs.latest:
            self.epoch_file.assign(header.partition_leader_epoch, header.base_offset)
        batch = buffer[header.position : header.end]
        self.write(batch, header.base_offset, header.last_offset, header.max_timestamp, now)
        if header.producer_id >= 0:
            marker = read_marker(batch) if header.is_control else None
            # guard: producers-forgotten-by-a-new-leader
            self.producer_state.ended(self.producers.appended(header, header.base_offset, now, marker=marker))

    def mended(self, repaired: memoryview, start: int, end: int, now: Instant) -> None:
        """Damaged batches in [start, end) are `repaired`."""
        assert end <= self.log_end_offset, "a repair adds nothing to the log"
        log_start, log_end = self.log_start_offset, self.log_end_offset
        self.producer_state.mend(batches(repaired), start, end, now, log_start, log_end)

    # --- reading

    def read(
        self, offset: int, max_bytes: int, *, upto: int, min_one: bool, is_checked: bool = False
    ) -> Read | Refused:
        """Whole batches from the one that holds `offset`, below `upto`; at least one if `min_one` and there is one.
        `is_checked`: CORRUPT_MESSAGE where the file does not hold it as it was written."""
        found = self.read_if_cached(offset, max_bytes, upto, min_one=min_one, is_checked=is_checked, may_wait=True)
        assert not isinstance(found, Cold)
        return found

    def read_if_cached(
        self, offset: int, max_bytes: int, upto: int, *, min_one: bool, is_checked: bool, may_wait: bool
    ) -> Read | Cold | Refused:
        """As `read`. Unless it `may_wait`: Cold instead of waiting for the medium."""
        is_inside = self.log_start_offset <= offset <= self.log_end_offset
        if offset >= upto and is_inside:
            return NOTHING
        tailed = self.tail.read(offset, max_bytes, upto, min_one=min_one)
        if tailed is not None and offset >= self.log_start_offset:
            return Read(tuple(tailed[0]), tailed[1])
        if not is_inside:
            return refused(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Received request for offset {offset}, but we only have log segments from offset "
                f"{self.log_start_offset} to {self.log_end_offset}.",
            )
        return read_files(
            self.segments,
            self.gaps,
            offset,
            max_bytes,
            upto,
            min_one=min_one,
            is_checked=is_checked,
            may_wait=may_wait,
        )

    def cold_for_timestamp(self, timestamp: int | None) -> Cold | None:
        """What the next `offset_for_timestamp` would wait for; without a timestamp, `offset_of_max_timestamp`."""
        found = search_start(self.segments, timestamp, self.log_start_offset)
        if found is None:
            return None
        segment, position, size = found
        cold = segment.cold_at(position, size)
        self.segments.rest(segment)
        return cold

    def offset_for_timestamp(self, timestamp: int) -> Found | Damaged | None:
        """The first record, at or after the log start, whose timestamp is at least `timestamp`."""
        found = at_or_after(self.segments, timestamp, self.log_start_offset)
        assert not isinstance(found, Found) or found.timestamp >= timestamp
        self.segments.rest_all()
        return found

    def offset_of_max_timestamp(self) -> Found | Damaged | None:
        """The first record with the largest timestamp of the log."""
        found = latest(self.segments, self.log_start_offset)
        assert not isinstance(found, Found) or found.offset >= self.log_start_offset
        self.segments.rest_all()
        return found
