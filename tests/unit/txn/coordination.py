"""A transaction coordinator on a log whose writes are committed, or fail, when a test says so, and brokers that write
markers when it says so."""

from collections.abc import Callable, Iterable
from typing import Any

from strandline.base.effects import (
    Answered,
    Caller,
    Effect,
    Failed,
    Failure,
    Received,
    Reply,
    ReplyTo,
    Report,
    ToBroker,
)
from strandline.base.errors import ErrorCode
from strandline.base.ids import OFFSETS_TOPIC, TRANSACTION_TOPIC, LeaderEpoch, TopicPartition, Uuid
from strandline.base.time import Instant
from strandline.coordination.internal_log import Done, Replayed
from strandline.metadata.image import Image
from strandline.metadata.records import (
    BrokerEndpoint,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from strandline.txn.config import TxnConfig
from strandline.txn.coordinator import Transactions
from strandline.txn.shard import Entry
from strandline.txn.transaction import Transaction
from strandline.wire.codec import decode_all, encode_bytes
from strandline.wire.messages.records.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from strandline.wire.messages.transactions.end_txn import EndTxnRequest
from strandline.wire.messages.transactions.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from strandline.wire.record import all_records

START = 1_000_000
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
LEADERS = {T0: 1, T1: 2, U0: 2}


class HeldLog:
    """One partition of `__transaction_state`. Appends wait in `under_way` until the test ends them, in order."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.under_way: list[tuple[bytes, Done]] = []
        self.epoch: LeaderEpoch | None = LeaderEpoch(0)
        self.has_committed = True

    def append_internal(
        self, topic: str, partition: int, batch: bytearray, now: Instant, done: Done, **_: object
    ) -> list[Effect]:
        assert topic == TRANSACTION_TOPIC
        self.under_way.append((bytes(batch), done))
        return []

    def is_whole(self, topic: str, partition: int, now: Instant) -> bool:
        return True

    def is_committed(self, topic: str, partition: int) -> bool:
        return self.has_committed

    def replay(self, topic: str, partition: int) -> Iterable[Replayed]:
        return [Replayed(record) for batch in self.batches for record in all_records(batch)]

    def leads(self, topic: str, partition: int) -> LeaderEpoch | None:
        return self.epoch


class Ids:
    """Producer ids at once, from 1000 on; or an error."""

    def __init__(self) -> None:
        self.count = 999
        self.error: ErrorCode | None = None

    def next(self, done: Callable[[int | ErrorCode, Instant], list[Effect]], now: Instant) -> list[Effect]:
        if self.error is not None:
            return done(self.error, now)
        self.count += 1
        return done(self.count, now)


class Coordination:
    def __init__(self, **config: Any) -> None:
        self.log = HeldLog()
        self.ids = Ids()
        self.config = TxnConfig(**config)
        self.now = START
        self.answers: dict[int, Any] = {}
        self.asked: dict[int, Any] = {}
        self.sent: list[ToBroker] = []  # that no test has answered
        self.markers: list[tuple[int, int, bool, TopicPartition, int]] = []  # id, epoch, commits, where, coordinator
        self.image = Image()
        self.made = 0
        self.transactions = Transactions(self.config, self.log, self.ids)
        for node in (1, 2):
            endpoint = BrokerEndpoint(name="PLAINTEXT", host="h", port=node)
            self.image.apply(
                RegisterBrokerRecord(broker_id=node, broker_epoch=node, end_points=(endpoint,), fenced=False)
            )
        self.create(TRANSACTION_TOPIC, [1])
        self.create(OFFSETS_TOPIC, [1])
        self.create("t", [1, 2])
        self.create("u", [2])

    # --- metadata

    def create(self, name: str, leaders: list[int]) -> None:
        self.made += 1
        topic_id = Uuid(self.made.to_bytes(16, "big"))
        rows = [
            PartitionRecord(partition_id=p, topic_id=topic_id, replicas=(1, 2), isr=(1, 2), leader=leader)
            for p, leader in enumerate(leaders)
        ]
        self.image.apply_all([TopicRecord(name=name, topic_id=topic_id), *rows])
        self.apply()

    def delete(self, name: str) -> None:
        self.image.apply(RemoveTopicRecord(topic_id=self.image.topic_ids[name]))
        self.apply()

    def lead(self, at: TopicPartition, leader: int) -> None:
        topic_id = self.image.topic_ids[at.topic]
        self.image.apply(PartitionChangeRecord(partition_id=at.partition, topic_id=topic_id, leader=leader))
        self.apply()

    def apply(self) -> None:
        self.take(self.transactions.apply(self.image, self.image.take_delta(), Instant(self.now)))

    def fail_over(self) -> None:
        """Another broker leads the partition, with what is committed; what was under way is not."""
        under_way, self.log.under_way = self.log.under_way, []
        self.log.epoch = None
        self.touch()
        for _, done in under_way:
            self.take(done(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, Instant(self.now)))
        epoch = self.transactions_epoch = getattr(self, "transactions_epoch", 0) + 1
        self.sent = []
        self.transactions = Transactions(self.config, self.log, self.ids)
        self.log.epoch = LeaderEpoch(epoch)
        image, self.image = self.image, Image()
        self.image = image
        self.touch()

    def touch(self) -> None:
        """Metadata that concerns the topic, though nothing changes."""
        topic_id = self.image.topic_ids[TRANSACTION_TOPIC]
        self.image.apply(PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=1))
        self.apply()

    # --- the world

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Reply(to=to, message=message):
                    assert to.sequence in self.asked, "an answer to nobody"
                    assert to.sequence not in self.answers, "answered twice"
                    again = decode_all(type(message), to.api_version, encode_bytes(message, to.api_version))
                    self.answers[to.sequence] = again
                case ToBroker():
                    assert effect.version in type(effect.message).versions
                    self.sent.append(effect)
                case _:
                    assert isinstance(effect, Report), effect
        self.transactions.check()

    def send(self, message: Any, version: int | None = None) -> int:
        number = len(self.asked)
        self.asked[number] = message
        chosen = type(message).versions[-1] if version is None else version
        to = ReplyTo(1, number, number, type(message).api_key, chosen)
        received = Received(to, Caller("app", "10.0.0.1", "PLAINTEXT"), message)
        self.take(self.transactions.answer(received, Instant(self.now)))
        return number

    def ask(self, message: Any, version: int | None = None) -> Any:
        """Send, let writes be committed, and give back the answer, which must be there."""
        number = self.send(message, version)
        self.commit()
        return self.answers[number]

    def commit_one(self) -> None:
        batch, done = self.log.under_way.pop(0)
        self.log.batches.append(batch)
        self.take(done(ErrorCode.NONE, 0, Instant(self.now)))

    def commit(self) -> None:
        while self.log.under_way:
            self.commit_one()

    def fail(self, error: ErrorCode) -> None:
        _, done = self.log.under_way.pop(0)
        self.take(done(error, -1, Instant(self.now)))

    def write_markers(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """The broker that was asked first writes all its markers."""
        asked = self.sent.pop(0)
        request: WriteTxnMarkersRequest = asked.message
        for marker in request.markers:
            for topic in marker.topics:
                for index in topic.partition_indexes if error is ErrorCode.NONE else ():
                    at = TopicPartition(topic.name, index)
                    row = marker.producer_id, marker.producer_epoch, marker.transaction_result, at
                    self.markers.append((*row, marker.coordinator_epoch))
        results = tuple(
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=tuple(
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=tuple(
                            WritableTxnMarkerPartitionResult(partition_index=i, error_code=error)
                            for i in topic.partition_indexes
                        ),
                    )
                    for topic in marker.topics
                ),
            )
            for marker in request.markers
        )
        answer = Answered(asked.token, WriteTxnMarkersResponse(markers=results))
        self.take(self.transactions.step(answer, Instant(self.now)))

    def lose_markers(self) -> None:
        """The answer of the broker that was asked first does not come."""
        asked = self.sent.pop(0)
        self.take(self.transactions.step(Failed(asked.token, Failure.CLOSED), Instant(self.now)))

    def complete(self) -> None:
        """Whatever is under way comes to its end."""
        while self.log.under_way or self.sent:
            self.commit()
            while self.sent:
                self.write_markers()

    def wait(self, span_ms: int) -> None:
        end = self.now + span_ms
        while self.transactions.deadline() <= end:
            self.now = max(self.now, self.transactions.deadline())
            self.take(self.transactions.expire(Instant(self.now)))
            assert self.transactions.deadline() > self.now, "the deadline does not move: a driver would spin"
        self.now = end

    @property
    def entry(self) -> Entry:
        return self.transactions.shards.loaded[0].entries["id"]

    @property
    def current(self) -> Transaction:
        assert self.entry.current is not None
        return self.entry.current

    # --- requests

    def init(self, producer: tuple[int, int] = (-1, -1), version: int = 5, **changes: Any) -> Any:
        return self.ask(init_request(producer, **changes), version)

    def begin(self, *partitions: TopicPartition) -> tuple[int, int]:
        """A producer with these partitions in its transaction: id and epoch."""
        got = self.init()
        assert got.error_code == ErrorCode.NONE
        producer = got.producer_id, got.producer_epoch
        assert self.add(producer, *(partitions or (T0,))) == [ErrorCode.NONE] * max(1, len(partitions))
        return producer

    def add(self, producer: tuple[int, int], *partitions: TopicPartition, verify: bool = False) -> list[ErrorCode]:
        return added(self.ask(add_request(producer, *partitions, verify=verify), 5))

    def end(self, producer: tuple[int, int], *, commits: bool = True, version: int = 5) -> Any:
        return self.ask(end_request(producer, commits=commits), version)


def init_request(producer: tuple[int, int] = (-1, -1), **changes: Any) -> InitProducerIdRequest:
    fields = {"transactional_id": "id", "transaction_timeout_ms": 60_000, **changes}
    return InitProducerIdRequest(producer_id=producer[0], producer_epoch=producer[1], **fields)


def add_request(
    producer: tuple[int, int], *partitions: TopicPartition, verify: bool = False
) -> AddPartitionsToTxnRequest:
    topics = tuple(AddPartitionsToTxnTopic(name=at.topic, partitions=(at.partition,)) for at in partitions)
    one = AddPartitionsToTxnTransaction(
        transactional_id="id", producer_id=producer[0], producer_epoch=producer[1], verify_only=verify, topics=topics
    )
    return AddPartitionsToTxnRequest(transactions=(one,))


def end_request(producer: tuple[int, int], *, commits: bool) -> EndTxnRequest:
    return EndTxnRequest(transactional_id="id", producer_id=producer[0], producer_epoch=producer[1], committed=commits)


def added(answer: Any) -> list[ErrorCode]:
    rows = [
        row
        for one in answer.results_by_transaction
        for topic in one.topic_results
        for row in topic.results_by_partition
    ]
    return [ErrorCode(row.partition_error_code) for row in rows]
