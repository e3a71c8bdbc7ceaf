"""How a transactional producer speaks to its coordinator: it asks again until there is a definite answer."""

from collections.abc import Callable, Generator
from typing import Any

from strandline.base.effects import Endpoint
from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicPartition, by_topic
from strandline.sim.clients.client import REFUSED, Client, Life, Request, Stage
from strandline.wire.messages.groups.find_coordinator import TRANSACTION, FindCoordinatorRequest
from strandline.wire.messages.records.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from strandline.wire.messages.transactions.end_txn import EndTxnRequest

E = ErrorCode
TIMEOUT_MS = 2500
BUSY = (E.CONCURRENT_TRANSACTIONS, E.COORDINATOR_LOAD_IN_PROGRESS, *REFUSED)  # it did nothing
ELSEWHERE = (E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE)
# Other errors that pass: a topic that a coordinator does not know yet, a write that took too long.
AGAIN = (*BUSY, *ELSEWHERE, E.REQUEST_TIMED_OUT, E.UNKNOWN_TOPIC_OR_PARTITION, E.OPERATION_NOT_ATTEMPTED)


class CoordinatedProducer(Client):
    """`is_old`: it tells the coordinator each partition before it writes there, and keeps its epoch when a transaction
    ends (before KIP-890's second part)."""

    def __init__(self, stage: Stage, name: str, transactional_id: str, *, is_old: bool, timeout_ms: int) -> None:
        super().__init__(stage, name)
        self.transactional_id = transactional_id
        self.is_old = is_old
        self.timeout_ms = timeout_ms  # of its transactions
        self.coordinator: Endpoint | None = None
        self.producer_id, self.epoch = -1, -1
        self.sequences: dict[TopicPartition, int] = {}
        self.is_fit = False  # it has a producer id, and nothing says that it was fenced

    def find_coordinator(self) -> Life:
        request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=(self.transactional_id,))
        answer = yield Request(self.any_node(), request, 4, 2000)
        if answer is None or answer.coordinators[0].error_code:
            yield self.pause(50, 150)
        else:
            self.coordinator = Endpoint(answer.coordinators[0].host, answer.coordinators[0].port)

    def ask(
        self, message: Any, version: int, error_of: Callable[[Any], ErrorCode]
    ) -> Generator[Any, Any, tuple[ErrorCode, Any, bool]]:
        """The error, the answer, and whether an earlier attempt may have had an effect."""
        is_doubtful = False
        while True:
            if self.coordinator is None:
                yield from self.find_coordinator()
                continue
            answer = yield Request(self.coordinator, message, version, TIMEOUT_MS)
            error = None if answer is None else error_of(answer)
            if error is not None and error not in AGAIN:
                return error, answer, is_doubtful
            is_doubtful |= error not in BUSY
            if error is None or error in ELSEWHERE:
                self.coordinator = None
            yield self.pause(10, 60)

    def init(self, *, goes_on: bool) -> Life:
        """`goes_on`: it says who it is, and is fenced if it is not the last one (KIP-360)."""
        known = (self.producer_id, self.epoch) if goes_on else (-1, -1)
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self.timeout_ms,
            producer_id=known[0],
            producer_epoch=known[1],
        )
        error, answer, _ = yield from self.ask(request, 5, lambda answer: E(answer.error_code))
        if error is not E.NONE:
            self.report(f"gets no producer id: {error.name}")
            self.producer_id = -1
            yield self.pause(20, 100)
            return
        self.is_fit = True
        self.become(answer.producer_id, answer.producer_epoch)

    def become(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self.producer_id, self.epoch = producer_id, epoch
            self.sequences = {}

    def add(self, ats: list[TopicPartition]) -> Generator[Any, Any, ErrorCode]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=tuple(
                AddPartitionsToTxnTopic(name=name, partitions=ids) for name, ids in by_topic(ats).items()
            ),
        )
        error, _, _ = yield from self.ask(request, 3, first_error)
        return error

    def end(self, *, commits: bool) -> Generator[Any, Any, tuple[ErrorCode, bool]]:
        """The error, and whether it may have ended so nevertheless."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commits,
        )
        version = 4 if self.is_old else 5
        error, answer, is_doubtful = yield from self.ask(request, version, lambda answer: E(answer.error_code))
        if error is E.NONE and not self.is_old:
            self.become(answer.producer_id, answer.producer_epoch)
        return error, is_doubtful


def first_error(answer: Any) -> ErrorCode:
    codes = [
        row.partition_error_code for topic in answer.results_by_topic_v3_and_below for row in topic.results_by_partition
    ]
    return E(next((code for code in codes if code and code != E.OPERATION_NOT_ATTEMPTED), max(codes, default=0)))
