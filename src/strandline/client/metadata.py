"""A cluster's metadata as a client has them, and connections to its brokers: whom to ask, and when to ask again.

Invariants:
  - a request that may be sent twice is sent again after a broken connection or a refusal that passes by itself, with
    metadata asked anew, until its time is over
  - questions have a connection of their own to each broker, readers and producers lease others: nobody waits behind a
    long poll
"""

import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from strandline.base.errors import ErrorCode
from strandline.base.ids import ZERO_UUID, Uuid, parse_uuid, uuid_text
from strandline.client.config import ClientConfig
from strandline.client.connection import Connection
from strandline.client.errors import (
    KafkaError,
    TopicIdChanged,
    UnknownTopic,
    Unreachable,
    Unsupported,
    passes_by_itself,
    refused,
)
from strandline.client.patience import Patience
from strandline.wire.messages.topics.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from strandline.wire.schema import Message

NOBODY = -1
MISSING_PATIENCE_MS = 3000  # a broker may not yet have heard of a topic that was just created
Partition = tuple[str, int]


class Broker(NamedTuple):
    id: int
    host: str
    port: int
    rack: str | None


class PartitionView(NamedTuple):
    leader: int  # −1: nobody
    leader_epoch: int  # −1: the broker does not report it
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class TopicView(NamedTuple):
    name: str
    topic_id: str  # Kafka's text form; empty if the brokers report none
    partitions: dict[int, PartitionView]

    @property
    def raw_id(self) -> Uuid:
        return parse_uuid(self.topic_id) if self.topic_id else ZERO_UUID


class Metadata:
    """Connects when first asked for something."""

    def __init__(self, config: ClientConfig) -> None:
        self.config = config
        self.by_id: dict[int, Broker] = {}
        self.known: dict[str, TopicView] = {}
        self.cluster_id = ""
        self.connections: dict[tuple[str, int], Connection] = {}  # for questions
        self.idle: dict[tuple[str, int], list[Connection]] = {}  # those of readers
        self.suspects: dict[tuple[str, int], float] = {}  # addresses that did not answer lately, and when

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for connection in [*self.connections.values(), *(c for kept in self.idle.values() for c in kept)]:
            connection.close()
        self.connections.clear()
        self.idle.clear()

    # --- connections

    def connection(self, broker: int) -> Connection:
        """The open connection to this broker for questions; nothing is in flight on it. Raises `Unreachable`."""
        return self.open(*self.address_of(broker))

    def address_of(self, broker: int) -> tuple[str, int]:
        found = self.by_id.get(broker)
        if found is None:
            raise Unreachable(f"the cluster has no broker {broker} now")
        return found.host, found.port

    def open(self, host: str, port: int) -> Connection:
        kept = self.connections.get((host, port))
        if kept is not None:
            if not kept.is_stale():
                return kept
            kept.close()
        fresh = self.connections[host, port] = self.dialled(host, port)
        return fresh

    def dialled(self, host: str, port: int) -> Connection:
        try:
            return Connection(host, port, self.config)
        except Unreachable:
            self.suspects[host, port] = time.monotonic()
            raise

    def lease(self, broker: int) -> Connection:
        """A connection that nobody else uses until it is given back (`release`)."""
        host, port = self.address_of(broker)
        kept = self.idle.get((host, port), [])
        while kept:
            connection = kept.pop()
            if not connection.is_stale():
                return connection
            connection.close()
        return self.dialled(host, port)

    def release(self, connection: Connection) -> None:
        if connection.is_open and not connection.in_flight:
            self.idle.setdefault((connection.host, connection.port), []).append(connection)
        else:
            connection.close()

    def addresses(self) -> Iterator[tuple[str, int]]:
        """Whom to ask for metadata: who answered before, then the others, then the bootstrap servers."""
        rows = [(broker.host, broker.port) for broker in self.by_id.values()]
        rows += [address for address in self.config.bootstrap if address not in rows]
        yield from sorted(rows, key=lambda row: (self.suspects.get(row, 0.0), row not in self.connections))

    def ask_any(self, message: Message) -> tuple[Any, Connection]:
        """The answer of whichever broker answers first, tried one after the other, and from whom it is."""
        failures: list[str] = []
        for host, port in self.addresses():
            try:
                connection = self.open(host, port)
                return connection.ask(message), connection
            except (Unreachable, Unsupported) as error:
                self.suspects[host, port] = time.monotonic()
                failures.append(error.problem)
        where = ",".join(f"{host}:{port}" for host, port in self.config.bootstrap)
        raise Unreachable(
            f"no broker answers at {where}: {'; '.join(dict.fromkeys(failures))}",
            "is the cluster running, and is kafka.bootstrap.servers right?",
        )

    def ask(self, broker: int, message: Message, timeout_ms: float | None = None) -> Any:
        """The answer of this broker to any request, in the highest version that both know; not tried again."""
        return self.connection(broker).ask(message, timeout_ms=timeout_ms)

    def brokers(self) -> dict[int, Broker]:
        """The brokers that are there now, by id."""
        self.refresh(())
        return dict(self.by_id)

    def topics(self, names: Sequence[str] | None = None) -> dict[str, TopicView]:
        """The named topics as they are now, or all; those that do not exist are left out.

        Raises `KafkaError` for an illegal name or where the broker forbids it, `TimedOut`/`Unreachable` if nobody
        answers in time."""
        if names is not None and not names:
            return {}
        patience = Patience(self.config, "asking for metadata")
        while True:
            try:
                return self.refresh(names)
            except KafkaError as error:
                if not passes_by_itself(error):
                    raise
                if isinstance(error, Unreachable) and patience.tries >= 2 and not self.by_id:
                    raise  # nobody ever answered: the address is wrong, rather than the cluster starting again
                patience.pause(error.problem)

    def refresh(self, names: Sequence[str] | None, *, creates: bool = False) -> dict[str, TopicView]:
        """Ask once. An empty sequence asks for the brokers alone, None for all topics. `creates`: brokers may create
        what is missing, if they are configured to; a later question finds it."""
        asked = None if names is None else tuple(MetadataRequestTopic(name=name) for name in names)
        answer, connection = self.ask_any(MetadataRequest(topics=asked, allow_auto_topic_creation=creates))
        assert isinstance(answer, MetadataResponse)
        if answer.error_code:
            raise refused(answer.error_code, f"{connection} answers no metadata")
        if answer.brokers:
            self.by_id = {b.node_id: Broker(b.node_id, b.host, b.port, b.rack) for b in answer.brokers}
        self.cluster_id = answer.cluster_id or ""
        found: dict[str, TopicView] = {}
        for topic in answer.topics:
            if topic.name is None:
                continue
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self.known.pop(topic.name, None)
                continue
            if topic.error_code:
                raise refused(topic.error_code, f"topic {topic.name}")
            self.known[topic.name] = found[topic.name] = view_of(topic)
        return found

    def view(self, topic: str, *, fresh: bool = False) -> TopicView:
        """The topic, as it was last heard of. Raises `UnknownTopic`."""
        if fresh or topic not in self.known:
            self.topics([topic])
        found = self.known.get(topic)
        if found is None:
            raise UnknownTopic(topic)
        return found

    def partition(self, topic: str, partition: int) -> tuple[TopicView, PartitionView]:
        """Raises `UnknownTopic` if the topic has no such partition; for a new one its metadata is asked for once."""
        found = self.view(topic)
        if partition not in found.partitions:
            found = self.view(topic, fresh=True)
        if partition not in found.partitions:
            raise UnknownTopic(topic, partition)
        return found, found.partitions[partition]

    def leader_of(self, topic: str, partition: int) -> int:
        """Raises `KafkaError` LEADER_NOT_AVAILABLE, which passes by itself, if nobody leads."""
        view = self.partition(topic, partition)[1]
        if view.leader == NOBODY:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{partition} has no leader now")
        return view.leader

    # --- after a failure

    def raise_or_wait(self, patience: Patience, error: KafkaError, topics: Sequence[str]) -> None:
        """After a failure: raise it if it does not pass by itself, else wait a little and ask for metadata anew.

        That a topic is missing, or another one, is believed after a while: brokers do not learn of it all at once."""
        if isinstance(error, UnknownTopic | TopicIdChanged):
            if patience.limit_ms - patience.left_ms > MISSING_PATIENCE_MS:
                raise error
        elif not passes_by_itself(error):
            raise error
        patience.pause(error.problem)
        try:
            self.refresh(topics)
        except KafkaError as failed:
            if not passes_by_itself(failed):
                raise


def view_of(topic: MetadataResponseTopic) -> TopicView:
    assert topic.name is not None
    return TopicView(
        topic.name,
        "" if topic.topic_id == ZERO_UUID else uuid_text(topic.topic_id),
        {
            p.partition_index: PartitionView(p.leader_id, p.leader_epoch, p.replica_nodes, p.isr_nodes)
            for p in sorted(topic.partitions, key=lambda p: p.partition_index)
        },
    )
