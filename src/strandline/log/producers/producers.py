"""What a log knows of idempotent producers: enough to recognise a batch that is sent again, and one that skips.

Invariant: for each producer at most the last five batches of its current epoch, in order (as many as a producer may
have in flight). `check` executes it.
"""

from collections.abc import Iterable

from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.wire.batch import SEQUENCE_MAX, BatchHeader

BATCHES_MAX = 5


class Remembered(Value, frozen=True):
    """A batch as it was appended."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


class Producer:
    __slots__ = ("batches", "epoch", "seen")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: list[Remembered] = []
        self.seen = 0  # when it was last heard of


class Producers:
    def __init__(self) -> None:
        self.known: dict[int, Producer] = {}
        self.end_offset = 0  # behind the last batch of any of them: a cut above it takes nothing from here

    def judge(self, batch: BatchHeader) -> Remembered | ErrorCode | None:
        """What may a leader do with this batch? None: append it. Remembered: it is a duplicate of that one."""
        producer = self.known.get(batch.producer_id)
        if producer is None:
            return None  # never seen, or forgotten: any sequence may be its first
        if batch.producer_epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if not producer.batches:
            return None
        if batch.producer_epoch > producer.epoch:
            return None if batch.base_sequence == 0 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        for old in producer.batches:
            if old.first_sequence == batch.base_sequence and old.last_sequence == batch.last_sequence:
                return old
        last = producer.batches[-1].last_sequence
        expected = 0 if last == SEQUENCE_MAX else last + 1
        return None if batch.base_sequence == expected else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def appended(self, batch: BatchHeader, base_offset: int, now: Instant, stamp: int = -1) -> None:
        """`now` and not the batch's timestamp says how idle a producer is: old records may be written today."""
        producer = self.known.get(batch.producer_id)
        if producer is None or producer.epoch != batch.producer_epoch:
            producer = self.known[batch.producer_id] = Producer(batch.producer_epoch)
        producer.seen = now
        self.end_offset = base_offset + batch.last_offset_delta + 1
        if batch.is_control:
            return
        producer.batches.append(remembered(batch, base_offset, stamp))
        del producer.batches[:-BATCHES_MAX]

    def mend(self, batches: Iterable[BatchHeader], start: int, end: int, now: Instant) -> bool:
        """`batches` were damaged in [start, end), and may have been believed: a header says whose a batch is, in which
        epoch, and its sequence. Was anything else known of them?"""
        assert start <= end
        before = self.rows()
        for producer_id, producer in list(self.known.items()):
            kept = [old for old in producer.batches if not start <= old.base_offset < end]
            if producer.batches and not kept:
                del self.known[producer_id]  # its epoch is not known either
            producer.batches = kept
        for batch in batches:
            if batch.producer_id < 0 or batch.is_control:
                continue
            producer = self.known.setdefault(batch.producer_id, Producer(batch.producer_epoch))
            producer.seen = max(producer.seen, now)
            if producer.epoch == batch.producer_epoch:
                producer.batches.append(remembered(batch, batch.base_offset))
                producer.batches.sort(key=lambda one: one.base_offset)
                del producer.batches[:-BATCHES_MAX]
        assert all(len(producer.batches) <= BATCHES_MAX for producer in self.known.values())
        return self.rows() != before

    def rows(self) -> dict[int, tuple[int, tuple[Remembered, ...]]]:
        return {producer_id: (one.epoch, tuple(one.batches)) for producer_id, one in self.known.items()}

    def restore(self, producer_id: int, epoch: int, batches: list[Remembered], now: Instant) -> None:
        """What was written down of a producer; its batches may come in several parts, in order."""
        assert len(batches) <= BATCHES_MAX
        producer = self.known.get(producer_id)
        if producer is None or producer.epoch != epoch:
            producer = self.known[producer_id] = Producer(epoch)
        producer.seen = now
        producer.batches += batches
        del producer.batches[:-BATCHES_MAX]
        if batches:
            self.end_offset = max(self.end_offset, batches[-1].last_offset + 1)

    def forget_idle(self, now: Instant, expiration_ms: int) -> None:
        assert expiration_ms >= 0
        for producer_id in [p for p, state in self.known.items() if state.seen + expiration_ms < now]:
            del self.known[producer_id]

    def forget_gone(self, log_start_offset: int, now: Instant, expiration_ms: int) -> None:
        """After a restart nobody knows when a producer was last heard of. One whose records the log has is given its
        span again; of another the time of its last record decides, or restarts would keep it for ever."""
        assert log_start_offset >= 0 and expiration_ms >= 0
        for producer_id, producer in list(self.known.items()):
            last = producer.batches[-1] if producer.batches else None
            if last is not None and last.last_offset < log_start_offset and last.timestamp + expiration_ms < now:
                del self.known[producer_id]

    def check(self) -> None:
        for producer_id, producer in self.known.items():
            assert producer_id >= 0
            offsets = [one.base_offset for one in producer.batches]
            assert len(offsets) <= BATCHES_MAX
            assert offsets == sorted(set(offsets)), f"batches of producer {producer_id} are out of order"


def remembered(batch: BatchHeader, base_offset: int, stamp: int = -1) -> Remembered:
    timestamp = stamp if stamp >= 0 else batch.max_timestamp
    last_offset = base_offset + batch.last_offset_delta
    return Remembered(batch.base_sequence, batch.last_sequence, base_offset, last_offset, timestamp)


def step_back(sequence: int, steps: int) -> int:
    """Sequences count from 0 to the largest, and begin again."""
    return (sequence - steps) & SEQUENCE_MAX
