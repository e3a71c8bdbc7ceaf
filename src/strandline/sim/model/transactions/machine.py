"""The real coordinator on a log whose writes end when the model says so.

A machine cannot be copied: what it waits for are functions. But it does nothing by itself, so it is made anew from all
that it was given since it loaded its partition (`coordinators`).
"""

from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from strandline.base.effects import Answered, Effect, Failed, Failure, Reply, ToBroker
from strandline.base.errors import ErrorCode
from strandline.base.ids import TRANSACTION_TOPIC, LeaderEpoch, NodeId, Uuid
from strandline.base.time import NEVER, Instant
from strandline.coordination.internal_log import Done, Part, Reached, Replayed
from strandline.metadata.features import TXN_FEATURE
from strandline.metadata.image import Delta, Image
from strandline.metadata.records import FeatureLevelRecord, PartitionRecord, RegisterBrokerRecord, TopicRecord
from strandline.sim.model.transactions.requests import ID, TOPIC, Answer, Call, answer_of, received
from strandline.txn.config import TxnConfig
from strandline.txn.coordinator import Transactions
from strandline.txn.expiring import bounded
from strandline.txn.shard import Entry
from strandline.txn.transaction import Transaction, restored, value_of
from strandline.wire.messages.transactions.transaction_records import decode_value, encode_key, encode_value
from strandline.wire.messages.transactions.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from strandline.wire.record import all_records

NOW = Instant(1_000_000)
TIMED_OUT = Instant(10_000_000)  # every transaction has, by then
PARTITIONS = (0, 1)  # each has a leader of its own: broker 1 and broker 2


class Load(NamedTuple):
    """It begins to lead. What a leader before it may have written last is committed, or not yet."""

    value: Transaction | None
    epoch: int
    is_committed: bool


class Ends(NamedTuple):
    """Its write ends."""

    error: ErrorCode


class Marked(NamedTuple):
    """The leader of a partition has answered WriteTxnMarkers; None: no answer came."""

    partition: int
    error: ErrorCode | None


class Due(NamedTuple):
    """Time is up for what `what` names."""

    what: str


class LogNews(NamedTuple):
    """It learns something about its log."""

    what: str


TRANSACTION, WAITING, MARKERS = Due("transaction"), Due("waiting"), Due("markers")
COMMITTED, RESIGN = LogNews("all is committed"), LogNews("another broker leads")
Input = Load | Call | Ends | Marked | Due | LogNews


class Sent(NamedTuple):
    """A marker on its way to the leader of a partition."""

    partition: int
    producer_id: int
    epoch: int
    commits: bool
    coordinator_epoch: int
    version: int


class Broken(NamedTuple):
    why: str


Output = Answer | Sent | Broken


class HeldLog:
    """The partition of `__transaction_state`, as the broker that leads it sees it."""

    def __init__(self, load: Load) -> None:
        self.value = load.value
        self.has_committed = load.is_committed
        self.epoch: LeaderEpoch | None = LeaderEpoch(load.epoch)
        self.under_way: list[tuple[bytes, Done]] = []

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
        assert self.epoch is not None and not transaction
        self.under_way.append((bytes(batch), done))
        return []

    def is_committed(self, topic: str, partition: int) -> bool:
        return self.has_committed

    def reader(self, topic: str, partition: int) -> "HeldLog":
        return self

    end = 0  # no marker is written here

    def read(self, bytes_max: int, now: Instant) -> Part:
        key = encode_key(ID)
        rows = () if self.value is None else ((0, key, encode_value(value_of(self.value), 1)),)
        return Part((Replayed(rows),), 0, Reached.END)

    def leads(self, topic: str, partition: int) -> LeaderEpoch | None:
        return self.epoch

    @property
    def written(self) -> Transaction | None:
        """The write that is under way."""
        if not self.under_way:
            return None
        value = decode_value(next(iter(all_records(self.under_way[0][0]))).value)
        assert value is not None, "ids do not expire here"
        return timeless(restored(ID, value))


class Ids:
    """Producer ids that nobody else gives out: no two coordinators have one epoch."""

    def __init__(self, epoch: int) -> None:
        self.block = 1_000 * (epoch + 1)
        self.given = 0

    def next(self, done: Callable[[int | ErrorCode, Instant], list[Effect]], now: Instant) -> list[Effect]:
        self.given += 1
        return done(self.block + self.given, now)


class Machine:
    def __init__(self, image: Image, delta: Delta, load: Load, *, two_phase: bool) -> None:
        self.image, self.delta = image, delta
        self.log, self.ids = HeldLog(load), Ids(load.epoch)
        self.transactions = Transactions(TxnConfig(two_phase_commit_enable=two_phase), self.log, self.ids)
        self.markers: dict[int, ToBroker] = {}  # that were not answered yet, by partition

    def take(self, given: Input) -> list[Output]:
        """What follows from it, for the world outside."""
        try:
            outputs = self.outputs(self.effects(given))
            self.transactions.check()
        except AssertionError as error:
            return [Broken(str(error) or "an assertion of the coordinator does not hold")]
        return outputs

    def effects(self, given: Input) -> list[Effect]:
        machine = self.transactions
        match given:
            case Load():
                return machine.apply(self.image, self.delta, NOW)
            case Call():
                return machine.answer(received(given), NOW)
            case Ends(error):
                _, done = self.log.under_way.pop(0)
                return done(error, 0, NOW)
            case Marked(partition, error):
                sent = self.markers.pop(partition)
                if error is None:
                    return machine.step(Failed(sent.token, Failure.CLOSED), NOW)
                return machine.step(Answered(sent.token, response(sent.message, error)), NOW)
            case Due():
                return self.expire(given)
            case LogNews():
                return self.log_news(given)

    def expire(self, due: Due) -> list[Effect]:
        machine = self.transactions
        if due == TRANSACTION:
            effects: list[Effect] = []
            for shard in machine.shards.loaded.values():
                effects += machine.expiring.abort_late(shard, TIMED_OUT)
            return effects
        if due == WAITING:
            return machine.shards.expire(machine.shards.first_due())
        return machine.markers.expire(machine.markers.deadline())

    def log_news(self, log_news: LogNews) -> list[Effect]:
        if log_news == COMMITTED:
            self.log.has_committed = True
            return self.transactions.follow_leadership(NOW)
        self.log.epoch = None
        effects: list[Effect] = []
        for _, done in self.log.under_way:
            effects += done(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, NOW)
        self.log.under_way = []
        return effects + self.transactions.apply(self.image, self.delta, NOW)

    def outputs(self, effects: list[Effect]) -> list[Output]:
        outputs: list[Output] = []
        for effect in effects:
            if isinstance(effect, Reply):
                outputs.append(answer_of(effect.to, effect.message))
            elif isinstance(effect, ToBroker):
                (marker,) = effect.message.markers
                partition = effect.node - 1
                assert [row.partition_indexes for row in marker.topics] == [(partition,)], "each leader has its own"
                self.markers[partition] = effect
                outputs.append(
                    Sent(
                        partition,
                        marker.producer_id,
                        marker.producer_epoch,
                        marker.transaction_result,
                        marker.coordinator_epoch,
                        marker.transaction_version,
                    )
                )
        return outputs

    # --- what it holds

    @property
    def entry(self) -> Entry | None:
        shard = self.transactions.shards.loaded.get(0)
        return None if shard is None else shard.entries.get(ID)

    @property
    def current(self) -> Transaction | None:
        entry = self.entry
        return None if entry is None or entry.current is None else timeless(entry.current)

    @property
    def due(self) -> tuple[Due, ...]:
        """What time may end now."""
        found = []
        if self.entry is not None and bounded(self.entry) is not None:
            found.append(TRANSACTION)
        if self.transactions.shards.first_due() != NEVER:
            found.append(WAITING)
        if self.transactions.markers.deadline() != NEVER:
            found.append(MARKERS)
        return tuple(found)


def timeless(transaction: Transaction) -> Transaction:
    """Nothing depends on when it was, once its time is up."""
    started = NOW if transaction.started_at >= 0 else -1
    return replace(transaction, updated_at=NOW, started_at=started, last_epoch=-1)


def cluster(version: int) -> tuple[Image, Delta]:
    """Two brokers. Broker 1 has `__transaction_state`, and each leads a partition of the topic."""
    image = Image()
    image.apply(FeatureLevelRecord(name=TXN_FEATURE, feature_level=version))
    for node in (1, 2):
        image.apply(RegisterBrokerRecord(broker_id=node, broker_epoch=node, fenced=False))
    for number, (name, partitions) in enumerate(((TRANSACTION_TOPIC, 1), (TOPIC, len(PARTITIONS))), 1):
        topic_id = Uuid(number.to_bytes(16, "big"))
        image.apply(TopicRecord(name=name, topic_id=topic_id))
        for at in range(partitions):
            nodes = (NodeId(at + 1),)
            image.apply(PartitionRecord(partition_id=at, topic_id=topic_id, replicas=nodes, isr=nodes, leader=nodes[0]))
    return image, image.take_delta()


def response(request: WriteTxnMarkersRequest, error: ErrorCode) -> WriteTxnMarkersResponse:
    """To a request with one marker for one partition."""
    (marker,) = request.markers
    (topic,) = marker.topics
    row = WritableTxnMarkerPartitionResult(partition_index=topic.partition_indexes[0], error_code=error)
    result = WritableTxnMarkerTopicResult(name=topic.name, partitions=(row,))
    return WriteTxnMarkersResponse(markers=(WritableTxnMarkerResult(producer_id=marker.producer_id, topics=(result,)),))
