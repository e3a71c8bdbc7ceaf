"""What clients ask for, and leaders of partitions on their behalf, as the requests that they really send."""

from enum import Enum
from typing import Any, NamedTuple

from strandline.base.effects import Caller, Received, ReplyTo
from strandline.base.errors import ErrorCode, error_of
from strandline.wire.messages.records.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from strandline.wire.messages.transactions.end_txn import EndTxnRequest

ID = "app"
TOPIC = "t"
TIMEOUT_MS = 60_000
NOBODY = (-1, -1)
CALLER = Caller("app", "10.0.0.1", "PLAINTEXT")
INIT_VERSION = 6
ADD_VERSION, VERIFY_VERSION = 3, 5
END_VERSION = {1: 4, 2: 5}  # by transaction.version

# The coordinator is another one, or cannot answer just now: the request is sent again.
AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)


class Kind(Enum):
    INIT = "InitProducerId"
    ADD = "AddPartitionsToTxn"
    WRITE = "Produce"
    END = "EndTxn"


class Stage(Enum):
    """Of a batch, and of the question that it waits for; other requests are sent, or wait at a coordinator."""

    SENT = "sent"
    ASKING = "asking"  # the leader of the partition asks the coordinator
    HELD = "held"  # by a coordinator that has not answered yet


Producer = tuple[int, int]  # id and epoch
Tag = tuple[int, int]  # a client, and which of its transactions


class Asked(NamedTuple):
    """A request of a client, or a copy of it that is late. `number` tells the copies of one client apart."""

    client: int
    number: int
    kind: Kind
    producer: Producer
    transaction: int  # of the client
    partition: int = -1
    sequence: int = 0
    commits: bool = False
    keeps: bool = False
    stage: Stage = Stage.SENT
    is_stale: bool = False  # a marker was appended since the coordinator was asked

    @property
    def tag(self) -> Tag:
        return self.client, self.transaction

    @property
    def reply_to(self) -> tuple[int, int]:
        return self.client, self.number


class Answer(NamedTuple):
    to: tuple[int, int]
    error: ErrorCode
    producer: Producer = NOBODY
    ongoing: Producer = NOBODY  # of a transaction that was kept


class Call(NamedTuple):
    """A request at a coordinator."""

    asked: Asked
    version: int  # transaction.version
    is_two_phase: bool


def received(call: Call) -> Received:
    asked = call.asked
    producer_id, epoch = asked.producer
    message: Any
    match asked.kind:
        case Kind.INIT:
            version = INIT_VERSION
            message = InitProducerIdRequest(
                transactional_id=ID,
                transaction_timeout_ms=TIMEOUT_MS,
                producer_id=producer_id,
                producer_epoch=epoch,
                enable2_pc=call.is_two_phase,
                keep_prepared_txn=asked.keeps,
            )
        case Kind.ADD:
            version = ADD_VERSION
            message = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=ID,
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=(AddPartitionsToTxnTopic(name=TOPIC, partitions=(asked.partition,)),),
            )
        case Kind.WRITE:
            version = VERIFY_VERSION
            message = question(asked, call.version)
        case Kind.END:
            version = END_VERSION[call.version]
            message = EndTxnRequest(
                transactional_id=ID, producer_id=producer_id, producer_epoch=epoch, committed=asked.commits
            )
    to = ReplyTo(asked.client, asked.number, 0, type(message).key, version)
    return Received(to, CALLER, message)


def question(asked: Asked, version: int) -> AddPartitionsToTxnRequest:
    """The leader of a partition asks before it appends the first batch: add it, or was it added (KIP-890)?"""
    row = AddPartitionsToTxnTransaction(
        transactional_id=ID,
        producer_id=asked.producer[0],
        producer_epoch=asked.producer[1],
        verify_only=version < 2,
        topics=(AddPartitionsToTxnTopic(name=TOPIC, partitions=(asked.partition,)),),
    )
    return AddPartitionsToTxnRequest(transactions=(row,))


def answer_of(to: ReplyTo, message: Any) -> Answer:
    whom = to.connection, to.sequence
    if to.api_key == AddPartitionsToTxnRequest.key:
        is_old = to.api_version <= ADD_VERSION
        topics = message.results_by_topic_v3_and_below if is_old else message.results_by_transaction[0].topic_results
        return Answer(whom, error_of(topics[0].results_by_partition[0].partition_error_code))
    error = error_of(message.error_code)
    if error is not ErrorCode.NONE:
        return Answer(whom, error)
    producer = message.producer_id, message.producer_epoch
    if to.api_key == EndTxnRequest.key:
        return Answer(whom, error, producer)
    ongoing = message.ongoing_txn_producer_id, message.ongoing_txn_producer_epoch
    return Answer(whom, error, producer, ongoing)
