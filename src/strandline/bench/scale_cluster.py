"""A cluster with many partitions, looked at from outside: what its nodes know of them, use, and how long they are deaf.

What a node's metadata says it has also done: it takes its roles in the step in which it applies the records. New logs
come later, so they are counted.
"""

import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NoReturn
from urllib.request import urlopen

from confluent_kafka import KafkaError, Message, Producer

from strandline.base.errors import ErrorCode, error_of
from strandline.bench.usage import usage
from strandline.broker.metrics.of_process import LONG_STEPS
from strandline.client.ask import ask
from strandline.client.config import ClientConfig
from strandline.client.connection import Connection
from strandline.client.errors import Unreachable
from strandline.client.librdkafka import client_config
from strandline.testing.local_cluster import HOST, LocalCluster, NodeProcess
from strandline.wire.messages.cluster.api_versions import ApiVersionsRequest
from strandline.wire.messages.cluster.describe_cluster import DescribeClusterRequest
from strandline.wire.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from strandline.wire.messages.topics.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from strandline.wire.messages.topics.metadata import MetadataRequest, MetadataResponsePartition

CONTROLLERS = 2  # the endpoint type of DescribeCluster
PATIENCE_S = 300.0
POLL_S = 0.02
POLL_SHARE = 4  # looking costs the node time: rest so many times as long as the last look took
PING_S = 0.01
HELD = {
    what: re.compile(rf'^{LONG_STEPS.name}_{what}{{cause="([^"]*)"}} (\S+)$', re.MULTILINE) for what in ("count", "sum")
}


class NotMeasured(Exception):
    """The cluster did not come to where it could be measured."""


class Partitions:
    """The topics of one measurement, on a cluster of three."""

    def __init__(self, cluster: LocalCluster, prefix: str, topics: int, partitions: int) -> None:
        self.cluster = cluster
        share, rest = divmod(partitions, topics)
        self.sizes = {f"{prefix}-{i}": share + (i < rest) for i in range(topics)}
        self.count = partitions

    def create(self) -> None:
        factor = len(self.cluster.nodes)
        topics = tuple(
            CreatableTopic(name=n, num_partitions=c, replication_factor=factor) for n, c in self.sizes.items()
        )
        request = CreateTopicsRequest(topics=topics, timeout_ms=30_000)
        node = self.cluster.nodes[0]
        answer: CreateTopicsResponse = ask(HOST, node.port, request, 7, timeout_s=60)
        for topic in answer.topics:
            if topic.error_code:
                raise NotMeasured(f"topic {topic.name}: {topic.error_message or error_of(topic.error_code).name}")

    def delete(self) -> None:
        request = DeleteTopicsRequest(topics=tuple(DeleteTopicState(name=n) for n in self.sizes), timeout_ms=30_000)
        answer: DeleteTopicsResponse = ask(HOST, self.cluster.nodes[0].port, request, 6, timeout_s=60)
        for topic in answer.responses:
            # An unknown topic: the answer of the controller was lost on the way, and it was asked again.
            if topic.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                raise NotMeasured(f"topic {topic.name}: {topic.error_message or error_of(topic.error_code).name}")
        self.count = 0

    def await_on(self, nodes: list[NodeProcess], holds: Callable[[MetadataResponsePartition], bool], what: str) -> None:
        """Until in every node's metadata all partitions are there, and are as wanted."""
        until = time.monotonic() + PATIENCE_S
        for node in nodes:
            while True:
                began = time.monotonic()
                try:
                    answer = ask(HOST, node.port, MetadataRequest(topics=None), 12, timeout_s=30)
                    named = [topic.partitions for topic in answer.topics if topic.name in self.sizes]
                    if sum(len(rows) for rows in named) == self.count and all(holds(p) for rows in named for p in rows):
                        break
                except OSError:
                    pass
                if time.monotonic() > until:
                    raise NotMeasured(f"after {PATIENCE_S:.0f} s node {node.node_id} still sees {what}")
                time.sleep(max(POLL_S, POLL_SHARE * (time.monotonic() - began)))

    def await_in_sync(self, nodes: list[NodeProcess]) -> None:
        factor = len(self.cluster.nodes)
        self.await_on(nodes, lambda p: p.leader_id > 0 and len(p.isr_nodes) == factor, "partitions out of sync")

    def await_logs(self, nodes: list[NodeProcess]) -> None:
        """Until every node has as many directories as there are partitions: they come, and go, after the metadata."""
        prefixes = tuple(f"{name}-" for name in self.sizes)
        until = time.monotonic() + PATIENCE_S
        for node in nodes:
            while sum(entry.startswith(prefixes) for entry in os.listdir(node.data_path)) != self.count:
                if time.monotonic() > until:
                    raise NotMeasured(f"after {PATIENCE_S:.0f} s node {node.node_id} has not {self.count} logs")
                time.sleep(POLL_S)

    def await_led(self, nodes: list[NodeProcess]) -> None:
        alive = [node.node_id for node in nodes]
        self.await_on(nodes, lambda p: p.leader_id in alive, "partitions without a live leader")

    def write(self) -> None:
        """One small record into every partition, acknowledged by all in-sync replicas."""
        refused: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                refused.append(error)

        producer = Producer(client_config(self.cluster.bootstrap, **{"acks": "all", "linger.ms": 5}))
        for name, count in self.sizes.items():
            for partition in range(count):
                producer.produce(name, b"scale", partition=partition, on_delivery=delivered)
        left = producer.flush(PATIENCE_S)
        if refused or left:
            raise NotMeasured(f"{len(refused) + left} records were not acknowledged: {refused[:1]}")


def active_controller(nodes: list[NodeProcess]) -> int:
    """The id of the controller that these nodes agree on; 0 while they do not, or it is none of them."""
    leaders: dict[int, None] = {}
    for node in nodes:
        try:
            request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
            leaders[ask(HOST, node.controller_port, request, 1, timeout_s=10).controller_id] = None
        except OSError:
            return 0
    agreed = next(iter(leaders)) if len(leaders) == 1 else 0
    return agreed if agreed in [node.node_id for node in nodes] else 0


def await_controller(nodes: list[NodeProcess]) -> int:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        found = active_controller(nodes)
        if found:
            return found
        time.sleep(POLL_S)
    raise NotMeasured(f"no active controller within {PATIENCE_S:.0f} s")


def await_service(nodes: list[NodeProcess], name: str) -> None:
    """Until the controller has created a small topic: it is active, and what it writes is committed."""
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            answer = ask(HOST, nodes[0].port, CreateTopicsRequest(topics=(topic,), timeout_ms=30_000), 7, timeout_s=60)
        except OSError:
            continue
        if answer.topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            return
        time.sleep(POLL_S)
    raise NotMeasured(f"no topic could be created within {PATIENCE_S:.0f} s")


def open_files(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def cpu_s(nodes: list[NodeProcess]) -> float:
    return sum(usage(node.pid).cpu_s for node in nodes)


def resident_mb(nodes: list[NodeProcess]) -> float:
    """The mean of these nodes."""
    return sum(usage(node.pid).resident_mb for node in nodes) / len(nodes)


Held = dict[str, tuple[int, float]]  # by cause: how often the loop was held for 10 ms or more, and milliseconds in all


def held_by(nodes: list[NodeProcess]) -> Held:
    """Since these nodes have started."""
    found: Held = {}
    for node in nodes:
        try:
            with urlopen(f"http://{HOST}:{node.metrics_port}/metrics", timeout=PATIENCE_S) as answer:
                text = answer.read().decode()
        except OSError:
            continue  # it is not up
        counts, sums = ({cause: float(value) for cause, value in HELD[what].findall(text)} for what in ("count", "sum"))
        for cause, count in counts.items():
            times, ms = found.get(cause, (0, 0.0))
            found[cause] = times + int(count), ms + sums[cause]
    return found


class Pinger:
    """Asks one node the cheapest question again and again. The longest wait for an answer is how long it was deaf:
    a node does one thing at a time."""

    def __init__(self, node: NodeProcess) -> None:
        self.node = node
        self.longest_s = 0.0
        self.is_over = False
        self.thread = threading.Thread(target=self.listen, daemon=True)
        self.thread.start()

    def listen(self) -> None:
        wait_ms = int(PATIENCE_S * 1000)
        config = ClientConfig(((HOST, self.node.port),), request_timeout_ms=wait_ms, setup_timeout_ms=wait_ms)
        try:
            with closing(Connection(HOST, self.node.port, config, learns_versions=False)) as connection:
                while not self.is_over:
                    began = time.monotonic()
                    connection.ask(ApiVersionsRequest(), 3)
                    self.longest_s = max(self.longest_s, time.monotonic() - began)
                    time.sleep(PING_S)
        except Unreachable:
            pass  # it was killed, or is not up yet

    def stop(self) -> float:
        self.is_over = True
        self.thread.join()
        return self.longest_s


@contextmanager
def listening(nodes: list[NodeProcess]) -> Iterator[list[Pinger]]:
    pingers = [Pinger(node) for node in nodes]
    try:
        yield pingers
    finally:
        for pinger in pingers:
            pinger.stop()


def give_up(node: NodeProcess, what: str) -> NoReturn:
    raise NotMeasured(f"node {node.node_id} {what}; the end of its log:\n{node.log_tail()}")
