"""How many Produce requests of one record each a cluster answers in a second, for `strandline bench requests`.

The client must cost little, since it shares the machine: each connection sends the same frame again and again, several
ahead of their answers, and of an answer only the error code is read.
"""

import selectors
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from ssl import SSLSocket, SSLWantReadError
from struct import Struct

from strandline.base.errors import ErrorCode
from strandline.base.value import Value
from strandline.bench.load import Latency
from strandline.bench.topic import bench_topic
from strandline.bench.usage import Usage, usage, used_between
from strandline.client.ask import config_of
from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline.client.connection import Connection
from strandline.client.errors import refused
from strandline.client.librdkafka import addresses
from strandline.wire.batch import build
from strandline.wire.frame import encode_request
from strandline.wire.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData

VERSION = 9
TIMEOUT_MS = 30_000
ANSWER_BYTES = 1 << 16
SIZE = Struct(">i")
ERROR = Struct(">h")


class RequestsConfig(Value, frozen=True):
    record_size: int
    partitions: int
    replication_factor: int
    connections: int
    in_flight: int  # requests of each connection that are sent and not answered
    seconds: float
    warmup_s: float
    pids: tuple[int, ...] = ()


class RequestsMeasured(Value, frozen=True):
    bootstrap: str
    requests: int
    per_second: float
    latency: Latency | None  # from the send of a request to its answer
    processes: tuple[Usage, ...]


class Asker:
    """One connection to one partition's leader, which always has as many requests under way."""

    def __init__(self, connection: Connection, topic: str, partition: int, record_size: int) -> None:
        self.connection = connection
        self.socket: socket.socket = connection.socket
        self.frame = frame_of(topic, partition, record_size)
        # Correlation id, tags, one topic (its name in a compact string), one partition (its index): then the error.
        self.error_at = 4 + 1 + 1 + 1 + len(topic) + 1 + 4
        self.buffer = bytearray()
        self.sent: list[float] = []  # when, oldest first

    def send(self, count: int) -> None:
        self.sent += [time.perf_counter()] * count
        self.socket.setblocking(True)
        self.socket.sendall(self.frame * count)
        self.socket.setblocking(False)

    def receive(self) -> list[float]:
        """How long each request took whose answer has come, in seconds. Raises `KafkaError`, OSError."""
        with suppress(BlockingIOError, SSLWantReadError):
            while True:
                got = self.socket.recv(ANSWER_BYTES)
                if not got:
                    raise ConnectionResetError(f"{self.connection} closed the connection")
                self.buffer += got
                if not (isinstance(self.socket, SSLSocket) and self.socket.pending()):
                    break
        count, at = 0, 0
        while len(self.buffer) - at >= SIZE.size:
            after = at + SIZE.size + SIZE.unpack_from(self.buffer, at)[0]
            if after > len(self.buffer):
                break
            if error := ERROR.unpack_from(self.buffer, at + SIZE.size + self.error_at)[0]:
                raise refused(ErrorCode(error), f"{self.connection} did not take a record")
            count, at = count + 1, after
        del self.buffer[:at]
        now = time.perf_counter()
        done, self.sent = self.sent[:count], self.sent[count:]
        return [now - since for since in done]


def frame_of(topic: str, partition: int, record_size: int) -> bytes:
    data = PartitionProduceData(index=partition, records=build([(0, None, bytes(record_size), ())]))
    request = ProduceRequest(
        acks=-1, timeout_ms=TIMEOUT_MS, topic_data=(TopicProduceData(name=topic, partition_data=(data,)),)
    )
    return b"".join(encode_request(request, VERSION, 0, "strandline-bench"))


def measure_requests(cluster: ClientConfig, config: RequestsConfig) -> RequestsMeasured:
    """Raises `KafkaError` if a record is rejected, OSError if a connection ends."""
    with (
        bench_topic(cluster, config.partitions, config.replication_factor) as topic,
        askers(cluster, topic, config) as all_askers,
        selectors.DefaultSelector() as selector,
    ):
        for asker in all_askers:
            selector.register(asker.socket, selectors.EVENT_READ, asker)
            asker.send(config.in_flight)
        exchange(selector, config.warmup_s)
        before = [usage(pid) for pid in config.pids]
        began = time.perf_counter()
        latencies = exchange(selector, config.seconds)
        span = time.perf_counter() - began
        used = tuple(used_between(old, usage(old.pid)) for old in before)
    rate = len(latencies) / span
    return RequestsMeasured(addresses(cluster), len(latencies), rate, Latency.of(latencies), used)


def exchange(selector: selectors.BaseSelector, seconds: float) -> list[float]:
    """Send a request for each answer."""
    until = time.perf_counter() + seconds
    latencies: list[float] = []
    while time.perf_counter() < until:
        for key, _ in selector.select(0.1):
            asker: Asker = key.data
            if done := asker.receive():
                asker.send(len(done))
                latencies += done
    return latencies


@contextmanager
def askers(config: ClientConfig, topic: str, wanted: RequestsConfig) -> Iterator[list[Asker]]:
    """One after the other for each partition in turn."""
    with ExitStack() as stack, Cluster(config_of(config)) as cluster:
        for partition in range(wanted.partitions):  # until its leader has heard of the topic
            cluster.produce(topic, partition, build([(0, None, b"", ())]))
        made = []
        for number in range(wanted.connections):
            partition = number % wanted.partitions
            connection = Connection(*cluster.address_of(cluster.leader_of(topic, partition)), config)
            stack.callback(connection.close)
            made.append(Asker(connection, topic, partition, wanted.record_size))
        yield made
