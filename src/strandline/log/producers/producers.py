"""What a log knows of idempotent producers: enough to recognise a batch that is sent again, and one that skips.

Of transactional ones it also knows which transaction is open, and which coordinator ended the last one.

Invariants (executed by `check`): for each producer at most the last five batches of its current epoch, in order (as
many as a producer may have in flight); a producer with an open transaction is known.
"""

from collections.abc import Iterable

from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.log.producers.transactions import Ended, Transactions
from strandline.wire.batch import SEQUENCE_MAX, BatchHeader
from strandline.wire.control import EndTxnMarker

BATCHES_MAX = 5  # guard: one-batch-remembered
STRICT_MARKERS = 2  # the transaction.version from which each end of a transaction has a producer epoch of its own
EPOCH_MAX = (1 << 15) - 1


class Remembered(Value, frozen=True):
    """A batch as it was appended."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


class Producer:
    __slots__ = ("batches", "coordinator_epoch", "epoch", "seen")

    def __init__(self, epoch: int, coordinator_epoch: int = -1) -> None:
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch  # of the last marker; -1: there was none
        self.batches: list[Remembered] = []
        self.seen = 0  # when it was last heard of


class Producers:
    def __init__(self) -> None:
        self.known: dict[int, Producer] = {}
        self.transactions = Transactions()
        self.end_offset = 0  # behind the last batch of any of them: a cut above it takes nothing from here

    def judge(self, batch: BatchHeader) -> Remembered | ErrorCode | None:
        """What may a leader do with this batch? None: append it. Remembered: it is a duplicate of that one."""
        producer = self.known.get(batch.producer_id)
        if producer is None:
            return None  # never seen, or forgotten: any sequence may be its first
        if batch.producer_epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if batch.base_sequence < 0:
            return None  # a coordinator's: of its batches nobody asks for an order
        if not producer.batches or batch.producer_epoch > producer.epoch:
            return None if batch.base_sequence == 0 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        for old in producer.batches:
            if old.first_sequence == batch.base_sequence and old.last_sequence == batch.last_sequence:
                return old
        last = producer.batches[-1].last_sequence
        expected = 0 if last == SEQUENCE_MAX else last + 1
        # guard: producer-gaps-accepted
        return None if batch.base_sequence == expected else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def why_no_marker(self, producer_id: int, epoch: int, marker: EndTxnMarker, version: int) -> ErrorCode | None:
        """May a leader append this marker? `version`: of the feature transaction.version, by which it was decided.

        From version 2 on each end of a transaction has a producer epoch of its own, so a marker of an epoch that is
        known already is a late one: it must not end a later transaction. If no transaction is open it is one that is
        written again, and harmless (KIP-890, KIP-1228)."""
        producer = self.known.get(producer_id)
        if producer is None:
            return None
        is_open = self.transactions.is_open(producer_id)
        is_late = version >= STRICT_MARKERS and epoch == producer.epoch and is_open and epoch < EPOCH_MAX
        if epoch < producer.epoch or is_late:  # guard: late-marker-of-the-same-epoch
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if marker.coordinator_epoch < producer.coordinator_epoch:  # guard: marker-of-an-older-coordinator
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        return None

    def appended(
        self, batch: BatchHeader, base_offset: int, now: Instant, stamp: int = -1, marker: EndTxnMarker | None = None
    ) -> Ended | None:
        """`now` and not the batch's timestamp says how idle a producer is: old records may be written today. `marker`:
        what a control batch says. Returns the transaction that it ends."""
        producer = self.known.get(batch.producer_id)
        if producer is None or producer.epoch != batch.producer_epoch:
            coordinator_epoch = -1 if producer is None else producer.coordinator_epoch
            producer = self.known[batch.producer_id] = Producer(batch.producer_epoch, coordinator_epoch)
        producer.seen = now
        self.end_offset = base_offset + batch.last_offset_delta + 1
        if batch.is_control:
            if marker is None:
                return None
            producer.coordinator_epoch = marker.coordinator_epoch
            return self.transactions.end(batch.producer_id, base_offset, is_aborted=not marker.commits)
        if batch.is_transactional:
            self.transactions.begin(batch.producer_id, base_offset)
        if batch.base_sequence >= 0:
            producer.batches.append(remembered(batch, base_offset, stamp))
            del producer.batches[:-BATCHES_MAX]
        return None

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
                self.end_offset = max(self.end_offset, batch.next_offset)
                producer.batches.sort(key=lambda one: one.base_offset)
                del producer.batches[:-BATCHES_MAX]
        assert all(len(producer.batches) <= BATCHES_MAX for producer in self.known.values())
        return self.rows() != before

    def rows(self) -> dict[int, tuple[int, tuple[Remembered, ...]]]:
        return {producer_id: (one.epoch, tuple(one.batches)) for producer_id, one in self.known.items()}

    def restore(
        self,
        producer_id: int,
        epoch: int,
        batches: list[Remembered],
        now: Instant,
        coordinator_epoch: int = -1,
        first_offset: int = -1,
    ) -> None:
        """What was written down of a producer; its batches may come in several parts, in order. `first_offset`: of the
        transaction that is open, or -1."""
        assert len(batches) <= BATCHES_MAX
        producer = self.known.get(producer_id)
        if producer is None or producer.epoch != epoch:
            producer = self.known[producer_id] = Producer(epoch)
        producer.seen = now
        producer.coordinator_epoch = max(producer.coordinator_epoch, coordinator_epoch)
        producer.batches += batches
        del producer.batches[:-BATCHES_MAX]
        if batches:
            self.end_offset = max(self.end_offset, batches[-1].last_offset + 1)
        if first_offset >= 0:
            self.transactions.begin(producer_id, first_offset)
            self.end_offset = max(self.end_offset, first_offset + 1)

    def forget_idle(self, now: Instant, expiration_ms: int) -> None:
        assert expiration_ms >= 0
        idle = [p for p, state in self.known.items() if state.seen + expiration_ms < now]
        for producer_id in idle:
            if not self.transactions.is_open(producer_id):
                del self.known[producer_id]

    def forget_gone(self, log_start_offset: int, now: Instant, expiration_ms: int) -> None:
        """After a restart nobody knows when a producer was last heard of. One whose records the log has is given its
        span again; of another the time of its last record decides, or restarts would keep it for ever."""
        assert log_start_offset >= 0 and expiration_ms >= 0
        for producer_id, producer in list(self.known.items()):
            last = producer.batches[-1] if producer.batches else None
            if self.transactions.is_open(producer_id):
                continue
            if last is not None and last.last_offset < log_start_offset and last.timestamp + expiration_ms < now:
                del self.known[producer_id]

    def check(self) -> None:
        self.transactions.check()
        assert self.transactions.open.keys() <= self.known.keys(), "a transaction is open of nobody"
        for producer_id, producer in self.known.items():
            assert producer_id >= 0
            offsets = [one.base_offset for one in producer.batches]
            assert len(offsets) <= BATCHES_MAX
            assert offsets == sorted(set(offsets)), f"batches of producer {producer_id} are out of order"
            assert all(one.last_offset < self.end_offset for one in producer.batches), "a cut may take it"


def remembered(batch: BatchHeader, base_offset: int, stamp: int = -1) -> Remembered:
    timestamp = stamp if stamp >= 0 else batch.max_timestamp
    last_offset = base_offset + batch.last_offset_delta
    return Remembered(batch.base_sequence, batch.last_sequence, base_offset, last_offset, timestamp)


def step_back(sequence: int, steps: int) -> int:
    """Sequences count from 0 to the largest, and begin again."""
    return (sequence - steps) & SEQUENCE_MAX
