"""Clients that behave as real ones do: they follow Metadata, retry, record what they did and which answers they got.

A client is a generator and touches nothing: it yields a request and gets the answer (None if there was none), or a list
of requests to be sent at once and gets a list, or yields milliseconds to wait. So the same client runs in the simulator
and against real processes; who runs it is its `Stage`.
"""

from collections.abc import Generator
from random import Random
from typing import Any, Protocol

from strandline.base.effects import Endpoint
from strandline.base.errors import ErrorCode
from strandline.base.ids import TopicIdPartition, TopicPartition, Uuid
from strandline.base.value import Value
from strandline.history.operation import History, Key, Operation
from strandline.wire.messages.topics.metadata import MetadataRequest, MetadataRequestTopic

Life = Generator[Any, Any, None]


REFUSED = (  # for lack of a right: nothing was done, and what is not permitted now may be later
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
)


class Request(Value, frozen=True):
    to: Endpoint
    message: Any
    version: int
    timeout_ms: int


class Stage(Protocol):
    """Where clients act."""

    @property
    def history(self) -> History: ...

    @property
    def bootstrap(self) -> tuple[Endpoint, ...]:
        """Brokers to ask first."""
        ...

    def now_ms(self) -> int:
        """Since the beginning."""
        ...

    def wall_ms(self) -> int:
        """Since the epoch, for records."""
        ...

    def random(self, name: str) -> Random: ...

    def note(self, client: str, text: str) -> None:
        """A line for people."""
        ...

    # What a stage that sees into the brokers may check at once. Others do nothing.

    def acknowledged(self, at: TopicIdPartition, offset: int, values: tuple[bytes, ...]) -> None: ...

    def consumed(self, at: TopicIdPartition, end: int) -> None: ...

    def suspect(self, at: TopicIdPartition, why: str) -> None:
        """A client got an answer that is not allowed, unless this topic is deleted or had too many faults."""
        ...

    def deleted(self, topic_id: Uuid) -> None:
        """From now on this topic may be gone."""
        ...

    def is_exceeded(self, topic: str) -> bool:
        """Have the faults taken more of this topic than was promised to survive?"""
        ...

    def was_removed(self, group: str, topic: str, partition: int) -> bool:
        """Was a group's offset ever removed? A clock that jumps lets one expire that was committed just now."""
        ...


class Route(Value, frozen=True):
    """Who leads a partition, as Metadata said last."""

    leader: Endpoint
    leader_epoch: int
    topic_id: Uuid


class Client:
    def __init__(self, stage: Stage, name: str) -> None:
        self.stage = stage
        self.name = name
        self.rng = stage.random(name)
        self.is_stopped = False  # so that it ends
        self.is_done = False
        self.leader_epochs: dict[tuple[Uuid, int], int] = {}  # the newest seen
        # As Metadata said last:
        self.endpoints: dict[int, Endpoint] = {}
        self.racks: list[str] = []

    def live(self) -> Life:
        raise NotImplementedError

    def report(self, text: str) -> None:
        self.stage.note(self.name, text)

    def pause(self, low_ms: int, high_ms: int) -> int:
        return self.rng.randrange(low_ms, high_ms)

    def any_node(self) -> Endpoint:
        return self.rng.choice(self.stage.bootstrap)

    def record(self, operation: Operation) -> None:
        self.stage.history.record(operation)

    def find_leader(self, at: TopicPartition) -> Generator[Any, Any, Route | None]:
        """One look. Leader epochs older than the newest one seen are not believed (as clients do since KIP-320)."""
        request = MetadataRequest(topics=(MetadataRequestTopic(name=at.topic),), allow_auto_topic_creation=False)
        answer = yield Request(self.any_node(), request, 12, 1000)
        if answer is None or not answer.topics or answer.topics[0].error_code:
            return None
        self.endpoints = {broker.node_id: Endpoint(broker.host, broker.port) for broker in answer.brokers}
        self.racks = [broker.rack for broker in answer.brokers if broker.rack]
        topic_id = answer.topics[0].topic_id
        for row in answer.topics[0].partitions:
            if row.partition_index == at.partition and row.leader_id >= 0:
                key = (topic_id, at.partition)
                if row.leader_epoch < self.leader_epochs.get(key, -1):
                    return None
                self.leader_epochs[key] = row.leader_epoch
                if row.leader_id in self.endpoints:
                    return Route(self.endpoints[row.leader_id], row.leader_epoch, topic_id)
        return None


def key_of(at: TopicPartition, topic_id: Uuid) -> Key:
    return Key(at.topic, topic_id, at.partition)
