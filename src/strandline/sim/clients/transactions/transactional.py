"""A transactional producer: it writes into several partitions, and commits or aborts.

One operation of the history for each transaction. It happened if the commit was acknowledged, and certainly not if
nobody has asked for a commit, or if the only answer to it was a refusal; else nobody knows.
"""

from collections.abc import Generator, Sequence
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.base.ids import TRANSACTION_TOPIC, TopicIdPartition, TopicPartition, Uuid
from strandline.history.operation import Kind as Action
from strandline.history.operation import Operation, Outcome, Read, Write
from strandline.sim.clients.client import Life, Request, Route, Stage, key_of
from strandline.sim.clients.transactions.coordinated_producer import CoordinatedProducer
from strandline.wire.batch import SEQUENCE_MAX, build
from strandline.wire.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData

E = ErrorCode
BY_NAME, BY_ID = 11, 13  # Produce before implicit adding, and the newest
PATIENCE_MS = 8000  # for the batches of one transaction, before it is aborted
WRITTEN = (E.NONE, E.DUPLICATE_SEQUENCE_NUMBER)
FENCED = (E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH, E.INVALID_PRODUCER_ID_MAPPING)
# The transaction can only be aborted. An older client takes another epoch then, for its sequences are lost.
FAILED = (E.TRANSACTION_ABORTABLE, E.OUT_OF_ORDER_SEQUENCE_NUMBER, E.UNKNOWN_PRODUCER_ID, E.INVALID_TXN_STATE)


class Batch:
    """What goes to one partition at once, until it is acknowledged."""

    def __init__(self, at: TopicPartition, values: tuple[bytes, ...], content: bytes) -> None:
        self.at = at
        self.values = values
        self.content = content
        self.offset = -1
        self.topic_id: Uuid | None = None


class Transactional(CoordinatedProducer):
    """`naps`: it begins only now and then, for a few transactions, and fences who has the same id. `leaves`: it is gone
    in the end, in the middle of a transaction."""

    def __init__(
        self,
        stage: Stage,
        name: str,
        transactional_id: str,
        ats: Sequence[TopicPartition],
        *,
        is_old: bool = False,
        timeout_ms: int = 1500,
        pace_ms: int = 30,
        naps: bool = False,
        leaves: bool = False,
    ) -> None:
        super().__init__(stage, name, transactional_id, is_old=is_old, timeout_ms=timeout_ms)
        self.ats = tuple(ats)
        self.pace_ms = pace_ms
        self.naps = naps
        self.leaves = leaves
        self.routes: dict[TopicPartition, Route] = {}
        self.sent = 0
        self.acked = 0  # commits
        self.must_begin_again = False  # its sequences are lost
        # Of this transaction:
        self.sent_batches: list[Batch] = []
        self.reads: list[Read] = []

    def live(self) -> Life:
        while not self.is_stopped:
            if self.naps and self.rng.randrange(4) == 0:
                yield from self.nap()
                continue
            if not self.is_fit:
                yield from self.init(goes_on=False)
                continue
            yield from self.transact()
            yield self.pause(0, 2 * self.pace_ms)
        if self.leaves and self.is_fit:
            began = self.begin()
            error = yield from self.write(self.ats, began)
            self.note(began, Outcome.FAIL, error)

    def nap(self) -> Life:
        """Another one with this id may come meanwhile. It tells from its next answer only."""
        for _ in range(self.rng.randrange(5, 40)):
            if self.is_stopped:
                return
            yield 100

    def begin(self) -> int:
        """A transaction. When that is."""
        self.sent_batches, self.reads, self.must_begin_again = [], [], False
        return self.stage.now_ms()

    def transact(self) -> Life:
        began = self.begin()
        chosen = self.rng.sample(self.ats, self.rng.randrange(1, len(self.ats) + 1))
        error = yield from self.write(chosen, began)
        if self.rng.randrange(15) == 0 and not self.is_stopped:
            yield self.timeout_ms + 1000  # it hangs, and finds out later what became of its transaction
        wishes = error is E.NONE and self.rng.randrange(4) > 0
        if self.sent_batches:
            yield from self.finish(began, error, commits=wishes)

    def finish(self, began: int, error: ErrorCode, *, commits: bool) -> Generator[Any, Any, Outcome]:
        """Ask for the end, unless it is fenced, and note what became of the transaction. `error`: why it is aborted."""
        outcome = Outcome.FAIL
        if error not in FENCED or commits:
            ended, is_doubtful = yield from self.end(commits=commits)
            if ended is E.NONE and commits:
                outcome = Outcome.OK
                self.acked += 1
            elif commits and is_doubtful:
                outcome = Outcome.UNKNOWN
            error = ended
        self.note(began, outcome, error)
        self.is_fit = error is E.NONE
        if error is E.NONE and self.must_begin_again:
            yield from self.init(goes_on=True)
        return outcome

    def write(self, chosen: Sequence[TopicPartition], began: int) -> Generator[Any, Any, ErrorCode]:
        """Some batches into each of these. The first error that ends it."""
        if self.is_old:
            error = yield from self.add(list(chosen))
            if error is not E.NONE:
                self.report(f"may not begin: {error.name}")
                self.is_fit = error not in FENCED
                return error
        for _ in range(self.rng.randrange(1, 4)):
            error = yield from self.deliver([self.batch(at) for at in chosen if self.rng.randrange(5)], began)
            if error is not E.NONE:
                return error
            if self.rng.randrange(4) == 0:
                yield self.pause(0, 100)
        return E.NONE

    def deliver(self, left: list[Batch], began: int) -> Generator[Any, Any, ErrorCode]:
        """Again and again, until all of these are acknowledged. The first error that ends it."""
        self.sent_batches += left
        while left:
            if self.stage.now_ms() > began + PATIENCE_MS:
                self.must_begin_again = True
                return E.REQUEST_TIMED_OUT
            error = yield from self.send(left)
            if error is not E.NONE:
                return error
            left = [batch for batch in left if batch.offset < 0]
        return E.NONE

    def batch(self, at: TopicPartition, notes: Sequence[str] = ()) -> Batch:
        """`notes`: a record for each, and what its value says behind its number."""
        texts = notes or [""] * self.rng.randrange(1, 3)
        values = tuple(f"{self.name}-{self.sent + i}{text}".encode() for i, text in enumerate(texts))
        self.sent += len(values)
        now, sequence = self.stage.wall_ms(), self.sequences.get(at, 0)
        content = build(
            [(now, None, value, ()) for value in values],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        self.sequences[at] = (sequence + len(values)) & SEQUENCE_MAX
        return Batch(at, values, content)

    def send(self, batches: list[Batch]) -> Generator[Any, Any, ErrorCode]:
        """Once, all at the same time. The first error that does not pass."""
        for batch in batches:
            if batch.at not in self.routes:
                route = yield from self.find_leader(batch.at)
                if route is None:
                    yield self.pause(20, 100)
                    return E.NONE
                self.routes[batch.at] = route
        answers = yield [self.request(batch) for batch in batches]
        fatal = E.NONE
        for batch, answer in zip(batches, answers, strict=True):
            code = None if answer is None else E(answer.responses[0].partition_responses[0].error_code)
            if code in WRITTEN:
                self.took(batch, answer.responses[0].partition_responses[0].base_offset)
                continue
            self.routes.pop(batch.at)
            if code in FENCED or code in FAILED:
                self.report(f"is refused {batch.values[0]!r}: {code.name}")
                self.must_begin_again = self.is_old
                if fatal not in FENCED:
                    fatal = code
        if any(batch.offset < 0 for batch in batches):
            yield self.pause(10, 60)
        return fatal

    def request(self, batch: Batch) -> Request:
        route = self.routes[batch.at]
        batch.topic_id = route.topic_id
        rows = (PartitionProduceData(index=batch.at.partition, records=bytearray(batch.content)),)
        data = (TopicProduceData(name=batch.at.topic, topic_id=route.topic_id, partition_data=rows),)
        message = ProduceRequest(transactional_id=self.transactional_id, acks=-1, timeout_ms=1500, topic_data=data)
        return Request(route.leader, message, BY_NAME if self.is_old else BY_ID, 2500)

    def took(self, batch: Batch, offset: int) -> None:
        batch.offset = offset
        assert batch.topic_id is not None
        if offset >= 0 and not self.stage.is_exceeded(TRANSACTION_TOPIC):  # or another one may have the same epoch
            at = TopicIdPartition(batch.topic_id, batch.at.partition)
            self.stage.acknowledged(at, offset, batch.values)

    def note(self, began: int, outcome: Outcome, error: ErrorCode) -> None:
        writes = tuple(
            Write(key_of(batch.at, batch.topic_id), value, batch.offset + i if batch.offset >= 0 else -1)
            for batch in self.sent_batches
            if batch.topic_id is not None
            for i, value in enumerate(batch.values)
        )
        self.report(f"{outcome}: a transaction of {len(writes)} records as {self.producer_id}/{self.epoch}")
        now = self.stage.now_ms()
        if self.reads:  # from anywhere: its earlier reads and these have no common order
            self.record(Operation(self.name, Action.ASSIGN, now, now, Outcome.OK))
        self.record(
            Operation(
                process=self.name,
                kind=Action.SEND,
                began_ms=began,
                ended_ms=now,
                outcome=outcome,
                is_idempotent=True,
                writes=writes,
                reads=tuple(self.reads),
                error="" if error is E.NONE else error.name,
                transactional_id=self.transactional_id,
                is_read_committed=bool(self.reads),
            )
        )
