"""Which versions of a write are decided: the last one of each name, in a compacted topic.

A decision is a record, written in a transaction of the driver's transactional id. Whoever enters (`Journal.enter`)
gets the next epoch of that id. So what another driver was about to decide is committed before this, and then it is
read here, or it never is. Between `enter` and a `write` that succeeds nobody else has decided anything.

Records of other names are passed over, and their transactions are not waited for: whether a record counts is told by
the marker that follows it, of the same producer.
"""

import time
from collections.abc import Iterator
from zlib import crc32

from msgspec import DecodeError, Struct, json

from strandline.base.errors import ErrorCode
from strandline.base.value import Value
from strandline.client.admin.topics import create_topic
from strandline.client.cluster import EARLIEST, LATEST, Cluster
from strandline.client.config import READ_UNCOMMITTED
from strandline.client.errors import ProduceFailed, StrandlineError, UnknownTopic, refused
from strandline.client.patience import Patience
from strandline.client.producing import Producer
from strandline.client.two_phase import Begun, ask_all, begin, end_request
from strandline.wire.batch import batches, build
from strandline.wire.compress import Codec
from strandline.wire.control import read_marker
from strandline.wire.record import records
from strandline_spark.sink.exactly_once.names import driver_id

TOPIC = "__strandline_sink"
PARTITIONS = 8
REPLICAS = 3
CONFIGS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(1 << 20),  # what is to be read at most, beyond one record for each name
    "min.cleanable.dirty.ratio": "0.1",
    "max.message.bytes": str(16 << 20),
}
TOPIC_WAIT_MS = 10_000
TIMEOUT_MS = 60_000  # of the driver's own transactions, which last some milliseconds
FORMAT = 1
FENCED = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE)


class Fenced(StrandlineError):
    """Another driver has entered since: nothing was decided here."""


class Decided(Struct, frozen=True, array_like=True):
    """A task's transaction: what it is called itself, and as what it may be ended."""

    transactional_id: str
    producer_id: int
    epoch: int
    client_id: int
    client_epoch: int

    @property
    def begun(self) -> Begun:
        return Begun(self.transactional_id, self.producer_id, self.epoch)

    @property
    def client(self) -> Begun:
        return Begun(self.transactional_id, self.client_id, self.client_epoch)


class Decision(Value, frozen=True):
    """The transactions of version `version` are committed, and no others of it or of versions before."""

    name: str
    version: int
    run: str
    at_ms: int
    transactions: tuple[Decided, ...]
    is_done: bool = False  # each of them is committed
    format: int = FORMAT

    @property
    def is_over(self) -> bool:
        """Nobody will ask for it again: a name that was made for one run is not used by another."""
        return self.is_done and self.name == self.run


class Journal:
    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.begun: Begun | None = None
        self.partition = partition_of(name, count_of(cluster))

    def enter(self) -> None:
        """From now on other drivers decide nothing before they have entered themselves. Raises `KafkaError`."""
        self.begun = begin(self.cluster, driver_id(self.name), TIMEOUT_MS, two_phase=False)

    def read(self) -> Decision | None:
        """The last decision. Raises `KafkaError`."""
        found = None
        for name, value in decisions(self.cluster, self.partition):
            if name == self.name:
                found = value
        return None if found is None else decoded(found)

    def write(self, decision: Decision) -> None:
        """It is decided when this returns. Raises `Fenced` if it is not; after any other error nobody knows, before
        somebody has entered and read."""
        assert self.begun is not None and decision.name == self.name
        value = None if decision.is_over else json.encode(decision)
        batch = build([(time.time_ns() // 1_000_000, self.name.encode(), value, ())], codec=Codec.ZSTD)
        entered = self.begun
        try:
            with Producer(
                self.cluster,
                producer=entered.producer,
                transactional_id=entered.transactional_id,
                renews=False,
                acks=-1,
            ) as producer:
                producer.send(TOPIC, self.partition, bytearray(batch))
                producer.flush()
        except ProduceFailed as error:
            if error.code in FENCED:
                raise Fenced(f"another driver decides about {self.name}") from None
            raise
        self.begun = self.committed(entered)

    def committed(self, entered: Begun) -> Begun:
        """With the epoch by which its producer goes on."""
        requests = {entered.transactional_id: end_request(entered, commit=True)}
        answer = ask_all(self.cluster, requests, "recording a decision")
        row = answer[entered.transactional_id]
        if row.error_code in FENCED:
            raise Fenced(f"another driver decides about {self.name}")
        if row.error_code:
            raise refused(row.error_code, f"recording a decision about {self.name}")
        return Begun(entered.transactional_id, row.producer_id, row.producer_epoch)


# --- the topic


def count_of(cluster: Cluster) -> int:
    """How many partitions it has. A broker may not yet have heard of it. Raises `KafkaError`."""
    patience = Patience(cluster.config, f"waiting for topic {TOPIC}", TOPIC_WAIT_MS)
    while True:
        try:
            return len(cluster.view(TOPIC).partitions)
        except UnknownTopic as error:
            patience.pause(error.problem)


def partition_of(name: str, count: int) -> int:
    return crc32(name.encode()) % count


def decisions(cluster: Cluster, partition: int) -> Iterator[tuple[str, bytes | None]]:
    """Those of one partition that count, by name, in their order. None: there is nothing to know about the name any
    more. Raises `KafkaError`."""
    at = (TOPIC, partition)
    start = cluster.list_offsets({at: EARLIEST}, READ_UNCOMMITTED)[at].offset
    end = cluster.list_offsets({at: LATEST}, READ_UNCOMMITTED)[at].offset
    pending: dict[int, list[tuple[str, bytes | None]]] = {}  # by producer: what no marker has followed yet
    for fetched in cluster.read(*at, start, end, isolation=READ_UNCOMMITTED) if start < end else ():
        content = bytes(fetched.records)
        for header in batches(content):
            if not header.is_control:
                rows = [(bytes(one.key or b"").decode(errors="replace"), one.value) for one in records(header, content)]
                pending.setdefault(header.producer_id, []).extend(rows)
                continue
            marker = read_marker(content[header.position : header.end])
            written = pending.pop(header.producer_id, [])
            if marker is not None and marker.commits:
                yield from written


def decoded(value: bytes) -> Decision:
    """Raises StrandlineError."""
    try:
        return json.decode(value, type=Decision)
    except DecodeError as error:
        raise StrandlineError(
            f"topic {TOPIC} has a record that is not a decision of the sink: {error}",
            "another program wrote it, or a newer version of strandline-spark",
        ) from None


def ensure_topic(cluster: Cluster) -> None:
    """Create the topic of decisions if it does not exist. Raises `KafkaError`, `StrandlineError`."""
    if TOPIC in cluster.topics([TOPIC]):
        return
    replicas = min(REPLICAS, len(cluster.brokers()))
    in_sync = {"min.insync.replicas": str(max(1, replicas - 1))}
    try:
        create_topic(cluster.config, TOPIC, PARTITIONS, replicas, {**CONFIGS, **in_sync})
    except StrandlineError:
        if TOPIC not in cluster.topics([TOPIC]):  # else another driver was first
            raise


def all_decisions(cluster: Cluster) -> dict[str, Decision]:
    """The last one of each name; none if no sink has ever decided anything."""
    try:
        count = len(cluster.view(TOPIC).partitions)
    except UnknownTopic:
        return {}
    last = {name: value for partition in range(count) for name, value in decisions(cluster, partition)}
    return {name: decoded(value) for name, value in last.items() if value is not None}
