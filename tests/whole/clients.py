"""Clients that behave as real ones do: they follow Metadata, retry, and remember what they were told.

Each is a generator that yields a request and gets the answer (None if there was none), or a list of requests to be sent
at once and gets a list, or yields milliseconds to wait.
"""

from collections.abc import Generator
from random import Random
from typing import TYPE_CHECKING, Any

from tests.whole.network import Station

from strandline.base.effects import Answered, Endpoint, Event, Failed, Received, Send
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId, TopicIdPartition, TopicPartition, Uuid
from strandline.wire.batch import build
from strandline.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from strandline.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from strandline.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.messages.init_producer_id import InitProducerIdRequest
from strandline.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from strandline.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from strandline.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.record import all_records

if TYPE_CHECKING:
    from tests.whole.cluster import World

Life = Generator[Any, Any, None]
E = ErrorCode


def endpoint(node: int) -> Endpoint:
    return Endpoint(f"n{node}", 9092)


class Client(Station):
    def __init__(self, world: "World", name: str) -> None:
        super().__init__(name, world.network)
        self.world = world
        self.rng = Random(f"{world.seed} {name}")
        self.is_running = True
        self.is_stopped = False
        self.is_done = False
        self.asked = 0
        self.life_of: Life | None = None
        self.answers: dict[int, Any] = {}
        self.is_list = False
        self.leader: tuple[int, int, Uuid] | None = None  # node, leader epoch, topic id
        self.epoch_seen: dict[Uuid, int] = {}

    def begin(self) -> None:
        self.life_of = self.live()
        self.world.time.later(0, lambda: self.go(None))

    def live(self) -> Life:
        raise NotImplementedError

    def go(self, answer: Any) -> None:
        assert self.life_of is not None
        with self.world.telling(f"{self.name} goes on with {answer}"):
            try:
                wish = self.life_of.send(answer)
            except StopIteration:
                self.is_done = True
                return
            if isinstance(wish, int):
                self.world.time.later(wish, lambda: self.go(None))
                return
            wishes = wish if isinstance(wish, list) else [wish]
            self.is_list = isinstance(wish, list)
            self.answers = {}
            for to, message, version, timeout_ms in wishes:
                self.asked += 1
                self.answers[self.asked] = ...
                self.network.send(self, Send(to, "", message, version, timeout_ms, ("client", self.asked)))

    def event(self, event: Event) -> None:
        assert isinstance(event, Answered | Failed), event
        self.answers[event.token[1]] = event.message if isinstance(event, Answered) else None
        answers = list(self.answers.values())
        if ... not in answers:
            self.go(answers if self.is_list else answers[0])

    def tell(self, text: str) -> None:
        self.world.tell(f"{self.name} {text}")

    def any_node(self) -> Endpoint:
        return endpoint(self.rng.randrange(1, 4))

    def find_leader(self, topic: str, partition: int) -> Generator[Any, Any, bool]:
        """One look; older leader epochs than the newest one seen are not believed (as clients do since KIP-320)."""
        request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False)
        answer = yield self.any_node(), request, 12, 1000
        self.leader = None
        if answer is None or not answer.topics or answer.topics[0].error_code:
            return False
        for row in answer.topics[0].partitions:
            topic_id = answer.topics[0].topic_id
            if row.partition_index == partition and row.leader_id >= 0:
                if row.leader_epoch < self.epoch_seen.get(topic_id, -1):
                    return False
                self.epoch_seen[topic_id] = row.leader_epoch
                self.leader = (row.leader_id, row.leader_epoch, topic_id)
        return self.leader is not None


class Producer(Client):
    """One batch at a time, each until it is acknowledged, certainly refused, or given up after `patience_ms`."""

    def __init__(
        self, world: "World", name: str, topic: str, partition: int = 0, *, acks: int = -1, idempotent: bool = True
    ) -> None:
        super().__init__(world, name)
        self.at = TopicPartition(topic, partition)
        self.acks = acks
        self.is_idempotent = idempotent and acks == -1
        self.pid, self.pid_epoch, self.sequence = -1, -1, 0
        self.sent = 0
        self.acked = 0
        self.pause_ms = 30
        self.patience_ms = 1 << 40 if self.is_idempotent else 20_000
        self.sequence_topic: Uuid | None = None  # to which topic the sequence belongs, once something is acknowledged

    def live(self) -> Life:
        while not self.is_stopped:
            if self.is_idempotent and self.pid < 0:
                answer = yield self.any_node(), InitProducerIdRequest(transaction_timeout_ms=1000), 4, 2000
                if answer is None or answer.error_code:
                    yield 100
                    continue
                self.pid, self.pid_epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0
                self.sequence_topic = None
            count = self.rng.randrange(1, 4)
            values = tuple(f"{self.name}-{self.sent + i}".encode() for i in range(count))
            self.sent += count
            yield from self.produce(values)
            yield self.rng.randrange(0, 2 * self.pause_ms)

    def produce(self, values: tuple[bytes, ...]) -> Life:
        world = self.world
        deadline = world.now + self.patience_ms
        drafts = [(world.now, None, value, ()) for value in values]
        batch = build(
            drafts,
            producer_id=self.pid,
            producer_epoch=self.pid_epoch,
            base_sequence=self.sequence if self.is_idempotent else -1,
        )
        while world.now < deadline:
            if self.leader is None and not (yield from self.find_leader(*self.at)):
                yield self.rng.randrange(20, 100)
                continue
            assert self.leader is not None
            answer = yield self.request(batch)
            if answer is None:
                self.leader = None
                yield 20
                continue
            row = answer.responses[0].partition_responses[0]
            error = E(row.error_code)
            if error is E.NONE or (error is E.DUPLICATE_SEQUENCE_NUMBER):
                self.acknowledged(row.base_offset, values)
                return
            self.refused(error, values)
            if error in (E.OUT_OF_ORDER_SEQUENCE_NUMBER, E.UNKNOWN_PRODUCER_ID, E.INVALID_PRODUCER_EPOCH):
                self.pid = -1  # the batch is given up: it may be there or not
                return
            self.leader = None
            yield self.rng.randrange(10, 60)
        self.pid = -1

    def request(self, batch: bytes) -> Any:
        assert self.leader is not None
        rows = (PartitionProduceData(index=self.at.partition, records=bytearray(batch)),)
        data = (TopicProduceData(name=self.at.topic, partition_data=rows),)
        return endpoint(self.leader[0]), ProduceRequest(acks=self.acks, timeout_ms=1500, topic_data=data), 9, 2500

    def acknowledged(self, offset: int, values: tuple[bytes, ...]) -> None:
        self.acked += 1
        self.sequence += len(values) if self.is_idempotent else 0
        if self.leader is not None:
            self.sequence_topic = self.leader[2]
        if self.acks == -1 and offset >= 0:
            self.world.laws.acked(self.at, offset, values, once=self.is_idempotent)

    def refused(self, error: ErrorCode, values: tuple[bytes, ...]) -> None:
        self.tell(f"is refused {values[0]!r}: {error.name}")
        if self.world.laws.is_data_lost:
            return
        if error in (E.OUT_OF_ORDER_SEQUENCE_NUMBER, E.UNKNOWN_PRODUCER_ID) and self.sequence_topic is not None:
            # Between topics of one name this is right, also when a leader that was cut off still leads the older one;
            # within one it means that an acknowledged batch is forgotten.
            if self.leader is not None and self.leader[2] != self.sequence_topic:
                return
            live = [at for at in self.world.laws.named(self.at) if at.topic_id not in self.world.laws.deleted]
            assert not live or self.sequence_topic in self.world.laws.deleted, (
                f"{self.name} lost its sequence in {self.at}: {error.name} for {values} at {self.sequence}"
            )


class Pipelined(Producer):
    """Several batches in flight; what was refused is sent again, in order (max.in.flight.requests.per.connection=3)."""

    def produce(self, values: tuple[bytes, ...]) -> Life:
        world = self.world
        window: list[tuple[bytes, bytes]] = []
        for i, value in enumerate(values):
            batch = build(
                [(world.now, None, value, ())],
                producer_id=self.pid,
                producer_epoch=self.pid_epoch,
                base_sequence=self.sequence + i,
            )
            window.append((value, batch))
        while window:
            if self.leader is None and not (yield from self.find_leader(*self.at)):
                yield self.rng.randrange(20, 100)
                continue
            answers = yield [self.request(batch) for _, batch in window]
            left: list[tuple[bytes, bytes]] = []
            for entry, answer in zip(window, answers, strict=True):
                row = None if answer is None else answer.responses[0].partition_responses[0]
                error = None if row is None else E(row.error_code)
                if row is not None and error in (E.NONE, E.DUPLICATE_SEQUENCE_NUMBER):
                    self.acknowledged(row.base_offset, (entry[0],))
                    continue
                if error in (E.OUT_OF_ORDER_SEQUENCE_NUMBER, E.UNKNOWN_PRODUCER_ID) and not left:
                    self.refused(error, (entry[0],))
                    self.pid = -1
                    return
                left.append(entry)
            if left:
                self.leader = None
                yield self.rng.randrange(10, 60)
            window = left


class Consumer(Client):
    def __init__(self, world: "World", name: str, topic: str, partition: int = 0) -> None:
        super().__init__(world, name)
        self.at = TopicPartition(topic, partition)
        self.positions: dict[Uuid, int] = {}
        self.read = 0

    def live(self) -> Life:
        while not self.is_stopped:
            if self.leader is None and not (yield from self.find_leader(*self.at)):
                yield self.rng.randrange(20, 100)
                continue
            assert self.leader is not None
            node, epoch, topic_id = self.leader
            position = self.positions.get(topic_id, 0)
            row = FetchPartition(
                partition=self.at.partition,
                current_leader_epoch=epoch,
                fetch_offset=position,
                partition_max_bytes=1 << 16,
            )
            topics = (FetchTopic(topic_id=topic_id, partitions=(row,)),)
            answer = yield endpoint(node), FetchRequest(max_wait_ms=200, min_bytes=1, topics=topics), 15, 2000
            if answer is None or answer.error_code or not answer.responses:
                self.leader = None
                yield 50
                continue
            data = answer.responses[0].partitions[0]
            if data.error_code:
                error = E(data.error_code)
                if error is E.OFFSET_OUT_OF_RANGE:
                    assert self.world.laws.is_data_lost, f"{self.name}: {position} of {self.at} is out of range"
                    self.positions[topic_id] = 0
                self.leader = None
                yield 30
                continue
            self.take(topic_id, position, data.records or b"")

    def take(self, topic_id: Uuid, position: int, buffer: Any) -> None:
        for record in all_records(buffer):
            if record.offset >= position:
                at = TopicIdPartition(topic_id, self.at.partition)
                self.world.laws.consumed(at, record.offset, bytes(record.value or b""))
                self.positions[topic_id] = record.offset + 1
                self.read += 1


class Committer(Client):
    """Commits growing offsets for one group; the last acknowledged one must never be lost."""

    def __init__(self, world: "World", name: str, topic: str) -> None:
        super().__init__(world, name)
        self.topic = topic
        self.tried = 0
        self.acked = 0
        self.coordinator: int | None = None

    def live(self) -> Life:
        while not self.is_stopped:
            if self.coordinator is None and not (yield from self.find_coordinator()):
                yield 100
                continue
            self.tried += 1
            rows = (OffsetCommitRequestPartition(partition_index=0, committed_offset=self.tried),)
            topics = (OffsetCommitRequestTopic(name=self.topic, partitions=rows),)
            answer = yield self.at(), OffsetCommitRequest(group_id=self.name, topics=topics), 8, 2000
            error = None if answer is None else E(answer.topics[0].partitions[0].error_code)
            if error is E.NONE:
                self.acked = self.tried
            else:
                self.coordinator = None
            yield self.rng.randrange(20, 120)
        yield from self.verify()

    def at(self) -> Endpoint:
        assert self.coordinator is not None
        return endpoint(self.coordinator)

    def find_coordinator(self) -> Generator[Any, Any, bool]:
        answer = yield self.any_node(), FindCoordinatorRequest(coordinator_keys=(self.name,)), 4, 2000
        if answer is None or answer.coordinators[0].error_code:
            return False
        self.coordinator = answer.coordinators[0].node_id
        return True

    def verify(self) -> Life:
        while True:
            if self.coordinator is None and not (yield from self.find_coordinator()):
                yield 100
                continue
            wanted = (OffsetFetchRequestTopics(name=self.topic, partition_indexes=(0,)),)
            groups = (OffsetFetchRequestGroup(group_id=self.name, topics=wanted),)
            answer = yield self.at(), OffsetFetchRequest(groups=groups), 8, 2000
            if answer is None or answer.groups[0].error_code:
                self.coordinator = None
                yield 100
                continue
            row = answer.groups[0].topics[0].partitions[0]
            assert E(row.error_code) is E.NONE, E(row.error_code)
            if self.world.laws.is_data_lost:
                return
            # An unanswered commit may still arrive, so that only the lower bound is certain.
            assert self.acked <= row.committed_offset <= self.tried or (
                not self.acked and row.committed_offset == -1
            ), f"{self.name}: offset {row.committed_offset} is committed, {self.acked} was acknowledged"
            return


class Admin(Client):
    """Does its errands one after another, each until it has a definite answer."""

    def __init__(self, world: "World", name: str) -> None:
        super().__init__(world, name)
        self.errands: list[Any] = []

    def live(self) -> Life:
        while self.errands or not self.is_stopped:
            if not self.errands:
                yield 50
                continue
            yield from self.errands.pop(0)

    def ask(self, what: str, request: Any, version: int, timeout_ms: int = 3000) -> Generator[Any, Any, Any]:
        answer = yield self.any_node(), request, version, timeout_ms
        self.tell(f"{what}: {'no answer' if answer is None else 'answered'}")
        return answer

    def create(self, name: str, partitions: int = 1, **configs: str) -> Life:
        rows = tuple(CreatableTopicConfig(name=k.replace("_", "."), value=v) for k, v in configs.items())
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=3, configs=rows)
        refusals = 0
        while True:
            answer = yield from self.ask(f"creates {name}", CreateTopicsRequest(topics=(topic,), timeout_ms=2000), 7)
            error = None if answer is None else E(answer.topics[0].error_code)
            # A controller that was just deposed, and does not know it yet, may still see a topic that is deleted.
            refusals = refusals + 1 if error is E.TOPIC_ALREADY_EXISTS else 0
            if error is E.NONE or refusals == 3:
                return
            yield 500 if refusals else 200

    def delete(self, name: str) -> Life:
        """By id: a request by name that arrives late would take the next topic of that name."""
        wanted = (MetadataRequestTopic(name=name),)
        topic_id = None
        while topic_id is None:
            request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
            answer = yield self.any_node(), request, 12, 1000
            if answer is not None and answer.topics and not answer.topics[0].error_code:
                topic_id = answer.topics[0].topic_id
                if topic_id in self.world.laws.deleted:
                    return  # this node does not know yet that it was deleted, and created again
            else:
                yield 100
        self.world.laws.deleted[topic_id] = None
        while True:
            deletion = DeleteTopicsRequest(topics=(DeleteTopicState(topic_id=topic_id),), timeout_ms=2000)
            answer = yield from self.ask(f"deletes {name}", deletion, 6)
            error = None if answer is None else E(answer.responses[0].error_code)
            if error in (E.NONE, E.UNKNOWN_TOPIC_ID):
                return
            yield 200

    def trim(self, name: str) -> Life:
        """Delete what is committed, on the leader."""
        if not (yield from self.find_leader(name, 0)):
            return
        assert self.leader is not None
        rows = (DeleteRecordsPartition(partition_index=0, offset=-1),)
        topics = (DeleteRecordsTopic(name=name, partitions=rows),)
        answer = yield endpoint(self.leader[0]), DeleteRecordsRequest(topics=topics, timeout_ms=2000), 2, 3000
        row = None if answer is None else answer.topics[0].partitions[0]
        self.tell(f"trims {name}: {'no answer' if row is None else (E(row.error_code).name, row.low_watermark)}")

    def configure(self, name: str, key: str, value: str) -> Life:
        row = AlterableConfig(name=key, config_operation=0, value=value)
        resource = AlterConfigsResource(resource_type=2, resource_name=name, configs=(row,))
        yield from self.ask(f"sets {key}={value} of {name}", IncrementalAlterConfigsRequest(resources=(resource,)), 1)


__all__ = ["Admin", "Client", "Committer", "Consumer", "NodeId", "Producer", "Received"]
