"""A transaction coordinator on a log whose writes end when a test says so, with brokers that write markers then."""

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
from strandline.base.ids import OFFSETS_TOPIC, TRANSACTION_TOPIC, LeaderEpoch, TopicPartition, Uuid, by_topic
from strandline.base.time import Instant
from strandline.coordination.internal_log import Done, Part, Reached, Replayed
from strandline.metadata.features import TXN_FEATURE
from strandline.metadata.image import Image
from strandline.metadata.records import (
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from strandline.txn.config import TxnConfig
from strandline.txn.coordinator import Transactions
from strandline.txn.shard import Entry
from strandline.txn.transaction import Transaction, value_of
from strandline.wire.batch import build
from strandline.wire.codec import decode_all, encode_bytes
from strandline.wire.messages.records.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest
from strandline.wire.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from strandline.wire.messages.transactions.end_txn import EndTxnRequest
from strandline.wire.messages.transactions.transaction_records import encode_key, encode_value
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
ID = "app"


class HeldLog:
    """One partition of `__transaction_state`. Appends wait in `under_way` until the test ends them, in order."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.under_way: list[tuple[bytes, Done]] = []
        self.epoch: LeaderEpoch | None = LeaderEpoch(0)
        self.is_damaged = False
        self.has_committed = True

    def append_internal(
        self,
        topic: str,
        partition: int,
        batch: bytearray,
        now: Instant,
        done: Done,
        *,
        transaction: str = "",
        adds: bool = False,
    ) -> list[Effect]:
        assert topic == TRANSACTION_TOPIC and not transaction
        if self.epoch is None:
            return done(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, now)
        self.under_way.append((bytes(batch), done))
        return []

    def is_committed(self, topic: str, partition: int) -> bool:
        return self.has_committed

    def reader(self, topic: str, partition: int) -> "HeldReader":
        return HeldReader(self)

    def leads(self, topic: str, partition: int) -> LeaderEpoch | None:
        return self.epoch


class HeldReader:
    """Reads batch by batch, as far as the log went when the reader was made."""

    def __init__(self, log: HeldLog) -> None:
        self.log = log
        self.end = 0  # no marker is written here
        self.left = list(log.batches)

    def read(self, bytes_max: int, now: Instant) -> Part:
        if self.log.is_damaged:
            return Part((), 0, Reached.DAMAGE)
        found: list[Replayed] = []
        size = 0
        while self.left and size < bytes_max:
            batch = self.left.pop(0)
            size += len(batch)
            found.append(Replayed([(0, record.key, record.value) for record in all_records(batch)]))
        return Part(found, size, Reached.MORE if self.left else Reached.END)


class Ids:
    """Producer ids 100, 101, …; `held`: nobody gets one before `give`."""

    def __init__(self) -> None:
        self.next_id = 100
        self.is_held = False
        self.waiting: list[Callable[[int | ErrorCode, Instant], list[Effect]]] = []

    def next(self, done: Callable[[int | ErrorCode, Instant], list[Effect]], now: Instant) -> list[Effect]:
        if self.is_held:
            self.waiting.append(done)
            return []
        self.next_id += 1
        return done(self.next_id - 1, now)


class World:
    """Requests go in as a client would send them, and every answer is encoded in the version it was asked in."""

    def __init__(self, *, feature: int = 2, **config: Any) -> None:
        self.log, self.ids = HeldLog(), Ids()
        self.config = TxnConfig(**config)
        self.now = START
        self.answers: dict[int, Any] = {}
        self.asked: dict[int, Any] = {}
        self.sent: list[ToBroker] = []
        self.reports: list[str] = []
        self.written: list[tuple[TopicPartition, int, int, bool, int]] = []  # id, epoch, commits, coordinator's epoch
        self.image = Image()
        self.made = 0
        self.image.apply(FeatureLevelRecord(name=TXN_FEATURE, feature_level=feature))
        for node in (1, 2):
            self.image.apply(RegisterBrokerRecord(broker_id=node, broker_epoch=node, fenced=False))
        self.transactions = Transactions(self.config, self.log, self.ids)
        for name, partitions in ((TRANSACTION_TOPIC, 1), (OFFSETS_TOPIC, 1), ("t", 2), ("u", 1)):
            self.create(name, partitions)

    # --- metadata

    def create(self, name: str, partitions: int) -> None:
        """Partition 0 is led by broker 1, partition 1 by broker 2."""
        self.made += 1
        topic_id = Uuid(self.made.to_bytes(16, "big"))
        rows = [
            PartitionRecord(partition_id=p, topic_id=topic_id, replicas=(p + 1,), isr=(p + 1,), leader=p + 1)
            for p in range(partitions)
        ]
        self.change(TopicRecord(name=name, topic_id=topic_id), *rows)

    def delete(self, name: str) -> None:
        self.change(RemoveTopicRecord(topic_id=self.image.topic_ids[name]))

    def move(self, at: TopicPartition, leader: int) -> None:
        topic_id = self.image.topic_ids[at.topic]
        self.change(PartitionChangeRecord(partition_id=at.partition, topic_id=topic_id, leader=leader))

    def change(self, *records: Any) -> None:
        self.image.apply_all(list(records))
        self.take(self.transactions.apply(self.image, self.image.take_delta(), Instant(self.now)))

    def lead(self, epoch: int | None) -> None:
        """Another leader epoch of the partition begins; None: another broker leads it. Unended appends are lost here,
        while `elsewhere` may have them."""
        self.log.epoch = None if epoch is None else LeaderEpoch(epoch)
        lost, self.log.under_way = self.log.under_way, []
        for _, done in lost:
            self.take(done(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, Instant(self.now)))
        topic_id = self.image.topic_ids[TRANSACTION_TOPIC]
        self.change(PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=1 if epoch is not None else 2))

    # --- the world

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case ToBroker():
                    assert isinstance(effect.message, WriteTxnMarkersRequest)
                    encode_bytes(effect.message, effect.version)
                    self.sent.append(effect)
                case Report(text=text):
                    self.reports.append(text)
                case Reply(to=to, message=message):
                    assert to.sequence in self.asked, "an answer to nobody"
                    assert to.sequence not in self.answers, "answered twice"
                    encoded = encode_bytes(message, to.api_version)
                    self.answers[to.sequence] = decode_all(type(message), to.api_version, encoded)
                case _:
                    raise AssertionError(effect)
        self.transactions.check()

    def send(self, message: Any, version: int | None = None) -> int:
        number = len(self.asked)
        self.asked[number] = message
        to = ReplyTo(1, number, number, type(message).key, message.versions[-1] if version is None else version)
        received = Received(to, Caller("app", "10.0.0.1", "PLAINTEXT"), message)
        self.take(self.transactions.answer(received, Instant(self.now)))
        return number

    def ask(self, message: Any, version: int | None = None) -> Any:
        """Send, let writes be committed, and give back the answer, which must be there."""
        number = self.send(message, version)
        self.commit()
        return self.answers[number]

    def commit(self) -> int:
        count = 0
        while self.log.under_way:
            self.commit_one()
            count += 1
        return count

    def commit_one(self) -> None:
        batch, done = self.log.under_way.pop(0)
        self.log.batches.append(batch)
        self.take(done(ErrorCode.NONE, 0, Instant(self.now)))

    def fail(self, error: ErrorCode) -> None:
        _, done = self.log.under_way.pop(0)
        self.take(done(error, -1, Instant(self.now)))

    def write_markers(
        self, error: ErrorCode = ErrorCode.NONE, *, of: TopicPartition | None = None, at: int = 0, is_lost: bool = False
    ) -> None:
        """A broker that was asked writes its markers, and says so, unless its answer `is_lost`. `of`: `error` is of
        this partition only."""
        sent = self.sent[at] if is_lost else self.sent.pop(at)
        results = []
        for marker in sent.message.markers:
            topics = []
            for topic in marker.topics:
                rows = []
                for index in topic.partition_indexes:
                    where = TopicPartition(topic.name, index)
                    code = error if of in (None, where) else ErrorCode.NONE
                    rows.append(WritableTxnMarkerPartitionResult(partition_index=index, error_code=code))
                    if code is ErrorCode.NONE:
                        what = marker.producer_id, marker.producer_epoch, marker.transaction_result
                        self.written.append((where, *what, marker.coordinator_epoch))
                topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=tuple(rows)))
            results.append(WritableTxnMarkerResult(producer_id=marker.producer_id, topics=tuple(topics)))
        if is_lost:
            return
        answered = Answered(sent.token, WriteTxnMarkersResponse(markers=tuple(results)))
        self.take(self.transactions.step(answered, Instant(self.now)))

    def lose_request(self) -> None:
        sent = self.sent.pop(0)
        self.take(self.transactions.step(Failed(sent.token, Failure.CLOSED), Instant(self.now)))

    def run_until_idle(self) -> None:
        """Whatever is under way ends well."""
        while self.log.under_way or self.sent:
            self.commit()
            if self.sent:
                self.write_markers()

    def wait(self, span_ms: int) -> None:
        """Let time pass, stopping at each deadline as a driver does."""
        end = self.now + span_ms
        while self.transactions.deadline() <= end:
            self.now = max(self.now, self.transactions.deadline())
            self.take(self.transactions.expire(Instant(self.now)))
            assert self.transactions.deadline() > self.now, "the deadline does not move: a driver would spin"
        self.now = end

    def unanswered(self) -> list[Any]:
        return [self.asked[n] for n in self.asked if n not in self.answers]

    # --- what the coordinator holds

    def entry(self, transactional_id: str = ID) -> Entry:
        return self.transactions.shards.loaded[0].entries[transactional_id]

    def current(self, transactional_id: str = ID) -> Transaction:
        found = self.entry(transactional_id).current
        assert found is not None
        return found

    def put(self, transaction: Transaction) -> None:
        """As if another coordinator had written this before."""
        rows = [(START, encode_key(transaction.transactional_id), encode_value(value_of(transaction), 1), ())]
        self.log.batches.append(bytes(build(rows)))
        self.lead((self.log.epoch or 0) + 1)

    # --- requests

    def init(self, producer: tuple[int, int] = (-1, -1), *, version: int = 6, name: str = ID, **changes: Any) -> Any:
        return self.ask(init_request(producer, name=name, **changes), version)

    def start(self, name: str = ID, **changes: Any) -> tuple[int, int]:
        answer = self.init(name=name, **changes)
        assert answer.error_code == ErrorCode.NONE
        return answer.producer_id, answer.producer_epoch

    def add(self, producer: tuple[int, int], *wanted: TopicPartition, old: bool = False, verify: bool = False) -> Any:
        """The errors, by partition. `old`: a client asks, else a broker does."""
        return added(self.ask(add_request(producer, *wanted, old=old, verify=verify), 3 if old else 5), old=old)

    def end(self, producer: tuple[int, int], *, commits: bool = True, version: int = 5) -> Any:
        return self.ask(end_request(producer, commits=commits), version)

    def begun(self, *wanted: TopicPartition, old: bool = False) -> tuple[int, int]:
        """A producer with an open transaction."""
        producer = self.start()
        assert set(self.add(producer, *(wanted or (T0, T1)), old=old).values()) == {ErrorCode.NONE}
        return producer


def init_request(producer: tuple[int, int] = (-1, -1), *, name: str | None = ID, **changes: Any) -> Any:
    rows = {"transaction_timeout_ms": 60_000, "producer_id": producer[0], "producer_epoch": producer[1], **changes}
    return InitProducerIdRequest(transactional_id=name, **rows)


def topics_of(wanted: Iterable[TopicPartition]) -> tuple[AddPartitionsToTxnTopic, ...]:
    return tuple(AddPartitionsToTxnTopic(name=name, partitions=ids) for name, ids in by_topic(wanted).items())


def add_request(
    producer: tuple[int, int], *wanted: TopicPartition, old: bool, verify: bool = False, name: str = ID
) -> Any:
    if old:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=topics_of(wanted),
        )
    row = AddPartitionsToTxnTransaction(
        transactional_id=name,
        producer_id=producer[0],
        producer_epoch=producer[1],
        verify_only=verify,
        topics=topics_of(wanted),
    )
    return AddPartitionsToTxnRequest(transactions=(row,))


def added(answer: Any, *, old: bool = False) -> dict[TopicPartition, ErrorCode]:
    topics = answer.results_by_topic_v3_and_below if old else answer.results_by_transaction[0].topic_results
    return {
        TopicPartition(topic.name, row.partition_index): ErrorCode(row.partition_error_code)
        for topic in topics
        for row in topic.results_by_partition
    }


def offsets_request(producer: tuple[int, int], group: str = "g") -> Any:
    return AddOffsetsToTxnRequest(
        transactional_id=ID, producer_id=producer[0], producer_epoch=producer[1], group_id=group
    )


def end_request(producer: tuple[int, int], *, commits: bool = True, name: str = ID) -> Any:
    return EndTxnRequest(transactional_id=name, producer_id=producer[0], producer_epoch=producer[1], committed=commits)
