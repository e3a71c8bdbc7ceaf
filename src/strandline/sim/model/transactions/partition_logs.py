"""Partition logs as values: what the real log knows of producers, by the real rules, and the records as readers see
them."""

from typing import Any, NamedTuple, cast

from strandline.base.errors import ErrorCode
from strandline.log.log import Log
from strandline.log.producers.producers import Producers, Remembered
from strandline.replica.serving.transactions.verifying import Verifying
from strandline.sim.model.transactions.machine import NOW, Sent
from strandline.sim.model.transactions.requests import Tag
from strandline.wire.batch import BatchHeader, build, read_header
from strandline.wire.control import EndTxnMarker, build_end_txn

OPEN, COMMITTED, ABORTED = "open", "committed", "aborted"


class Record(NamedTuple):
    """One of a transaction, and what a read_committed reader makes of it."""

    tag: Tag
    producer_id: int
    fate: str = OPEN


class Batch(NamedTuple):
    producer_id: int
    epoch: int
    sequence: int
    tag: Tag
    may_begin: bool
    from_zero: bool


class PartitionLog:
    """There is one object for all that are alike, so it is compared by identity."""

    __slots__ = ("following", "history", "newest", "records")

    def __init__(self, history: tuple[Batch | Sent, ...], records: tuple[Record, ...], newest: tuple[Any, ...]) -> None:
        self.history = history
        self.records = records
        self.newest = newest  # of each producer id: its epoch, and that of its coordinator
        self.following: dict[Batch | Sent, tuple[PartitionLog, ErrorCode]] = {}

    @property
    def open(self) -> tuple[Record, ...]:
        return tuple(record for record in self.records if record.fate == OPEN)


class Knowing:
    """As much of a log as its rules for producers need."""

    def __init__(self) -> None:
        self.producers = Producers()
        self.records: list[Record] = []
        self.end_offset = 0
        # Of a leader and its questions to coordinators: the model has these itself.
        self.log = self
        self.questions: dict[Any, Any] = {}
        self.is_enabled = True

    @property
    def transactions(self) -> Any:
        return self.producers.transactions

    def take(self, given: Batch | Sent) -> ErrorCode:
        error = self.append(given) if isinstance(given, Batch) else self.mark(given)
        self.producers.check()
        return error

    def append(self, batch: Batch) -> ErrorCode:
        header = header_of(batch.producer_id, batch.epoch, batch.sequence)
        verdict = self.producers.judge(header)
        if isinstance(verdict, Remembered):
            return ErrorCode.NONE
        if verdict is not None:
            return verdict
        why = Log.why_not_in_transaction(cast(Log, self), header, may_begin=batch.may_begin, from_zero=batch.from_zero)
        if why is not None:
            return why.error
        self.producers.appended(header, self.end_offset, NOW)
        self.end_offset += 1
        self.records.append(Record(batch.tag, batch.producer_id))
        return ErrorCode.NONE

    def mark(self, sent: Sent) -> ErrorCode:
        marker = EndTxnMarker(sent.commits, sent.coordinator_epoch)
        why = self.producers.why_no_marker(sent.producer_id, sent.epoch, marker, sent.version)
        if why is not None:
            return why
        batch = build_end_txn(marker, timestamp=NOW, producer_id=sent.producer_id, producer_epoch=sent.epoch)
        ended = self.producers.appended(read_header(batch), self.end_offset, NOW, marker=marker)
        self.end_offset += 1
        if ended is not None:
            fate = ABORTED if ended.is_aborted else COMMITTED
            self.records = [
                record._replace(fate=fate)
                if record.producer_id == ended.producer_id and record.fate == OPEN
                else record
                for record in self.records
            ]
        return ErrorCode.NONE

    def must_ask(self, batch: Batch) -> bool:
        header = header_of(batch.producer_id, batch.epoch, batch.sequence)
        return Verifying.must_ask(cast(Verifying, self), cast(Any, self), cast(Any, self), header)


class PartitionLogs:
    def __init__(self) -> None:
        self.known: dict[tuple[Any, ...], PartitionLog] = {}
        self.asking: dict[tuple[PartitionLog, Batch], bool] = {}
        self.empty = self.of((), Knowing())

    def step(self, log: PartitionLog, given: Batch | Sent) -> tuple[PartitionLog, ErrorCode]:
        found = log.following.get(given)
        if found is None:
            knowing = self.again(log)
            error = knowing.take(given)
            found = log.following[given] = self.of((*log.history, given), knowing), error
        return found

    def must_ask(self, log: PartitionLog, batch: Batch) -> bool:
        """Must the coordinator be asked before this batch is appended?"""
        key = log, batch
        if key not in self.asking:
            self.asking[key] = self.again(log).must_ask(batch)
        return self.asking[key]

    def again(self, log: PartitionLog) -> Knowing:
        knowing = Knowing()
        for given in log.history:
            knowing.take(given)
        return knowing

    def of(self, history: tuple[Batch | Sent, ...], knowing: Knowing) -> PartitionLog:
        producers = tuple(
            (producer_id, one.epoch, one.coordinator_epoch, tuple(batch.first_sequence for batch in one.batches))
            for producer_id, one in sorted(knowing.producers.known.items())
        )
        records = tuple(knowing.records)
        key = producers, tuple(knowing.transactions.open), records
        found = self.known.get(key)
        if found is None:
            newest = tuple(row[:3] for row in producers)
            found = self.known[key] = PartitionLog(history, records, newest)
        return found


def header_of(producer_id: int, epoch: int, sequence: int) -> BatchHeader:
    row = (NOW, b"k", b"v", ())
    batch = build([row], producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=True)
    return read_header(batch)
