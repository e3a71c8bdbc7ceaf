"""Producers: one batch at a time, or several in flight."""

from collections.abc import Generator
from typing import Any

from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicIdPartition, TopicPartition, Uuid
from strandline.history.operation import Kind as Action
from strandline.history.operation import Operation, Outcome, Write
from strandline.sim.clients.client import REFUSED, Client, Life, Request, Route, Stage, key_of
from strandline.wire.batch import SEQUENCE_MAX, Draft, build
from strandline.wire.messages.records.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData

E = ErrorCode
FOR_EVER = 1 << 40
GIVE_UP_MS = 20_000  # delivery.timeout.ms of a producer that is not idempotent
LOST_SEQUENCE = (E.OUT_OF_ORDER_SEQUENCE_NUMBER, E.UNKNOWN_PRODUCER_ID, E.INVALID_PRODUCER_EPOCH)
# A leader that is deposed while a batch waits for its followers says NOT_LEADER_OR_FOLLOWER, as Kafka does, and one
# whose directory fails KAFKA_STORAGE_ERROR: a follower may have the batch by then.
MAYBE_WRITTEN = (
    E.NOT_LEADER_OR_FOLLOWER,
    E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    E.REQUEST_TIMED_OUT,
    E.KAFKA_STORAGE_ERROR,
    *LOST_SEQUENCE,
)
BY_ID = 13  # the first version of Produce that names topics by id


class Producer(Client):
    """Each batch until it is acknowledged, certainly refused, or given up. What it sends is unique."""

    first_sequence = 0  # with a producer id that is new

    def __init__(
        self,
        stage: Stage,
        name: str,
        at: TopicPartition,
        *,
        acks: int = -1,
        is_idempotent: bool = True,
        pace_ms: int = 30,
    ) -> None:
        super().__init__(stage, name)
        self.at = at
        self.acks = acks
        self.is_idempotent = is_idempotent and acks == -1
        self.patience_ms = FOR_EVER if self.is_idempotent else GIVE_UP_MS
        self.producer_id, self.producer_epoch, self.sequence = -1, -1, 0
        self.sent = 0
        self.acked = 0
        self.pace_ms = pace_ms
        self.route: Route | None = None
        # Batches of one operation go to one topic, whatever its name means by then.
        self.topic_id: Uuid | None = None
        self.sequence_topic: Uuid | None = None  # where this producer id's last acknowledged batch is

    def live(self) -> Life:
        while not self.is_stopped:
            if self.is_idempotent and self.producer_id < 0:
                answer = yield Request(self.any_node(), InitProducerIdRequest(transaction_timeout_ms=1000), 4, 2000)
                if answer is None or answer.error_code:
                    yield 100
                    continue
                self.producer_id, self.producer_epoch = answer.producer_id, answer.producer_epoch
                self.sequence = self.first_sequence
                self.sequence_topic = None
            values = tuple(f"{self.name}-{self.sent + i}".encode() for i in range(self.rng.randrange(1, 4)))
            self.sent += len(values)
            yield from self.produce(values)
            yield self.pause(0, 2 * self.pace_ms)

    def batch(self, values: tuple[bytes, ...], ahead: int = 0) -> bytes:
        return build(
            self.drafts(values),
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=(self.sequence + ahead) & SEQUENCE_MAX if self.is_idempotent else -1,
        )

    def drafts(self, values: tuple[bytes, ...]) -> list[Draft]:
        now = self.stage.wall_ms()
        return [(now, None, value, ()) for value in values]

    def produce(self, values: tuple[bytes, ...]) -> Life:
        """One operation of the history, however often it is tried."""
        stage = self.stage
        began, batch = stage.now_ms(), self.batch(values)
        outcome, offset, error = Outcome.FAIL, -1, ""
        self.topic_id = None
        while stage.now_ms() < began + self.patience_ms:
            route = yield from self.lead()
            if route is None:
                if self.is_stopped and not self.is_idempotent:
                    break
                continue
            answer = yield self.request(route, batch)
            if answer is None:
                outcome = Outcome.UNKNOWN
                self.route = None
                yield 20
                if self.acks == 0:
                    break
                continue
            row = answer.responses[0].partition_responses[0]
            code = E(row.error_code)
            if code in (E.NONE, E.DUPLICATE_SEQUENCE_NUMBER):
                outcome, offset = Outcome.OK, row.base_offset
                self.took(route, offset, values)
                break
            error = code.name
            if code in MAYBE_WRITTEN:
                outcome = Outcome.UNKNOWN
            self.route = None
            if self.refused(route, code, values):
                break
            yield self.pause(10, 60)
        if outcome is not Outcome.OK:
            self.producer_id = -1
        self.note(began, outcome, values, offset, error)

    def lead(self) -> Generator[Any, Any, Route | None]:
        """The partition's leader; within one operation never that of another topic of the same name."""
        if self.route is None:
            self.route = yield from self.find_leader(self.at)
            if self.route is None:
                yield self.pause(20, 100)
                return None
        if self.topic_id is None:
            self.topic_id = self.route.topic_id
        return self.route

    def request(self, route: Route, batch: bytes) -> Request:
        rows = (PartitionProduceData(index=self.at.partition, records=bytearray(batch)),)
        data = (TopicProduceData(topic_id=self.topic_id or route.topic_id, partition_data=rows),)
        return Request(route.leader, ProduceRequest(acks=self.acks, timeout_ms=1500, topic_data=data), BY_ID, 2500)

    def took(self, route: Route, offset: int, values: tuple[bytes, ...]) -> None:
        self.acked += 1
        self.sequence = (self.sequence + len(values)) & SEQUENCE_MAX if self.is_idempotent else 0
        topic_id = self.sequence_topic = self.topic_id or route.topic_id
        if self.acks == -1 and offset >= 0:
            self.stage.acknowledged(TopicIdPartition(topic_id, self.at.partition), offset, self.stored(values))

    def stored(self, values: tuple[bytes, ...]) -> tuple[bytes, ...]:
        """What the log has of them."""
        return values

    def refused(self, route: Route, code: ErrorCode, values: tuple[bytes, ...]) -> bool:
        """Is it over with this batch? The topic may be another one by now, or its sequence forgotten."""
        self.report(f"is refused {values[0]!r}: {code.name}")
        if code in LOST_SEQUENCE and self.sequence_topic == self.topic_id and self.topic_id is not None:
            at = TopicIdPartition(self.topic_id, self.at.partition)
            self.stage.suspect(at, f"{self.name}'s sequence is forgotten: {code.name} for {values} at {self.sequence}")
        return code in LOST_SEQUENCE or code is E.UNKNOWN_TOPIC_ID

    def note(self, began: int, outcome: Outcome, values: tuple[bytes, ...], offset: int, error: str) -> None:
        if self.topic_id is None:
            return  # it never left
        key = key_of(self.at, self.topic_id)
        writes = tuple(Write(key, value, offset + i if offset >= 0 else -1) for i, value in enumerate(values))
        self.record(
            Operation(
                process=self.name,
                kind=Action.SEND,
                began_ms=began,
                ended_ms=self.stage.now_ms(),
                outcome=outcome,
                acks=self.acks,
                is_idempotent=self.is_idempotent,
                writes=writes,
                error=error,
            )
        )


class Pipelined(Producer):
    """Several batches in flight; what was refused is sent again, in order (max.in.flight.requests.per.connection=3)."""

    def produce(self, values: tuple[bytes, ...]) -> Life:
        began = self.stage.now_ms()
        self.topic_id = None
        window = [(value, self.batch((value,), ahead=i)) for i, value in enumerate(values)]
        doubtful: dict[bytes, None] = {}
        while window:
            route = yield from self.lead()
            if route is None:
                continue
            answers = yield [self.request(route, batch) for _, batch in window]
            left: list[tuple[bytes, bytes]] = []
            fatal = ""
            for (value, batch), answer in zip(window, answers, strict=True):
                row = None if answer is None else answer.responses[0].partition_responses[0]
                code = None if row is None else E(row.error_code)
                if row is not None and code in (E.NONE, E.DUPLICATE_SEQUENCE_NUMBER):
                    self.took(route, row.base_offset, (value,))
                    self.note(began, Outcome.OK, (value,), row.base_offset, "")
                    continue
                if code is None or code in MAYBE_WRITTEN:
                    doubtful[value] = None
                if code is not None and not left and (self.refused(route, code, (value,)) or code in REFUSED):
                    fatal = code.name
                left.append((value, batch))
            if fatal:
                for value, _ in left:
                    outcome = Outcome.UNKNOWN if value in doubtful else Outcome.FAIL
                    self.note(began, outcome, (value,), -1, fatal)
                self.producer_id = -1
                self.route = None
                return
            if left:
                self.route = None
                yield self.pause(10, 60)
            window = left
