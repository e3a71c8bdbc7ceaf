"""What the cluster tests share: waiting for a condition, quiet clients, a producer that never stops, logs compared."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.worlds import QUICK

from strandline.client.ask import ask
from strandline.testing.local_cluster import HOST, LocalCluster, NodeProcess
from strandline.wire.batch import BatchHeader, scan
from strandline.wire.messages.cluster.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from strandline.wire.messages.groups.find_coordinator import FindCoordinatorRequest
from strandline.wire.messages.topics.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponsePartition

__all__ = ["QUICK"]

T = TypeVar("T")


def until(condition: Callable[[], T], timeout_s: float = 20.0) -> T:
    """What `condition` returns once it is true."""
    end = time.monotonic() + timeout_s
    while not (result := condition()):
        assert time.monotonic() < end, f"not so within {timeout_s} s: {condition}"
        time.sleep(0.02)
    return result


def until_is(expected: T, read: Callable[[], T], timeout_s: float = 20.0) -> None:
    """Until `read` returns that; what it returned last stands in the failure."""
    end = time.monotonic() + timeout_s
    while (result := read()) != expected:
        assert time.monotonic() < end, f"not {expected} within {timeout_s} s, but {result}"
        time.sleep(0.02)


def quiet(bootstrap: str, **settings: Any) -> dict[str, Any]:
    """librdkafka's settings, without its own complaints about lost connections."""
    named = {key.replace("_", "."): value for key, value in settings.items()}
    return {"bootstrap.servers": bootstrap, "log_level": 0, "error_cb": lambda error: None, **named}


def admin_of(cluster: LocalCluster) -> AdminClient:
    return AdminClient(quiet(cluster.bootstrap, reconnect_backoff_max_ms=200, reconnect_backoff_ms=20))


def create(cluster: LocalCluster, topic: str, partitions: int = 1, **config: str) -> None:
    """A topic on all nodes, that every node knows of and that leads."""
    settings = {key.replace("_", "."): value for key, value in config.items()}
    new = NewTopic(topic, partitions, len(cluster.nodes), config=settings)
    admin = admin_of(cluster)
    for future in admin.create_topics([new], operation_timeout=10).values():
        future.result(15)
    running = [node for node in cluster.nodes if node.running]
    # A librdkafka consumer that subscribes at a node which does not know the topic yet asks again in five minutes.
    until(lambda: all(leads(cluster, topic, p, [node]) for node in running for p in range(partitions)))


def partition_of(
    cluster: LocalCluster, topic: str, partition: int = 0, nodes: Sequence[NodeProcess] | None = None
) -> MetadataResponsePartition | None:
    """Leader, replicas and ISR as a running node (of `nodes`) tells them now; None while none knows the partition."""
    request = MetadataRequest(topics=(MetadataRequestTopic(name=topic),), allow_auto_topic_creation=False)
    for node in nodes or cluster.nodes:
        try:
            answer = ask(HOST, node.port, request, 12, timeout_s=0.5) if node.running else None
        except OSError:
            continue
        for state in answer.topics[0].partitions if answer else ():
            if state.partition_index == partition:
                return state
    return None


def leads(cluster: LocalCluster, topic: str, partition: int = 0, nodes: Sequence[NodeProcess] | None = None) -> int:
    """The partition's leader; 0 while there is none."""
    state = partition_of(cluster, topic, partition, nodes)
    return max(state.leader_id, 0) if state else 0


def leader_of(cluster: LocalCluster, topic: str) -> int:
    leader: int = until(lambda: leads(cluster, topic))
    return leader


def isr_of(cluster: LocalCluster, topic: str) -> set[int]:
    partition = partition_of(cluster, topic)
    return set(partition.isr_nodes) if partition else set()


def coordinator_of(cluster: LocalCluster, group: str) -> int:
    """The node that coordinates the group; 0 while none says so."""
    for node in cluster.nodes:
        try:
            answer = ask(HOST, node.port, FindCoordinatorRequest(key=group), 3, timeout_s=1) if node.running else None
        except OSError:
            continue
        if answer and answer.error_code == 0:
            return int(answer.node_id)
    return 0


def active_controller(cluster: LocalCluster) -> NodeProcess:
    """The leader of the metadata quorum, as the first node that runs and knows one tells."""
    topics = (TopicData(topic_name="__cluster_metadata", partitions=(PartitionData(partition_index=0),)),)

    def found() -> int:
        for node in cluster.nodes:
            if node.running:
                try:
                    answer = ask(HOST, node.port, DescribeQuorumRequest(topics=topics), 1, timeout_s=0.5)
                except OSError:
                    continue
                if answer.error_code == 0 and answer.topics[0].partitions[0].error_code == 0:
                    return int(answer.topics[0].partitions[0].leader_id)
        return 0

    return cluster.node(until(found))


def batches_on(node: NodeProcess, topic: str, partition: int = 0) -> list[bytes]:
    """All batches of the segment files of this node's replica, as they lie on disk."""
    found = []
    for segment in sorted((node.data_path / f"{topic}-{partition}").glob("*.log")):
        content = segment.read_bytes()
        found += [content[header.position : header.end] for header in scan(content).headers]
    return found


def headers_on(node: NodeProcess, topic: str, partition: int = 0) -> list[BatchHeader]:
    return [scan(batch).headers[0] for batch in batches_on(node, topic, partition)]


def logs_agree(cluster: LocalCluster, topic: str) -> bool:
    """The replicas' files hold the same bytes, and there are some."""
    first, *rest = (batches_on(node, topic) for node in cluster.nodes)
    return bool(first) and all(other == first for other in rest)


def read_all(cluster: LocalCluster, topic: str, timeout_s: float = 20.0) -> list[bytes]:
    """The values of partition 0 from its start to the high watermark of now."""
    consumer = Consumer(quiet(cluster.bootstrap, group_id="unused", enable_auto_commit=False))
    try:
        where = TopicPartition(topic, 0, 0)
        _, high = consumer.get_watermark_offsets(where, timeout=timeout_s)
        consumer.assign([where])
        values: list[bytes] = []
        end = time.monotonic() + timeout_s
        while consumer.position([where])[0].offset < high:
            assert time.monotonic() < end, f"read {len(values)} records of {high} in {timeout_s} s"
            for message in consumer.consume(10_000, 0.2):
                assert message.error() is None, message.error()
                values.append(message.value())
        return values
    finally:
        consumer.close()


class Flow:
    """An idempotent acks=all producer in a thread of its own; `acked` are the values that were acknowledged."""

    def __init__(self, cluster: LocalCluster, topic: str) -> None:
        self.topic = topic
        self.sent = 0
        self.acked: list[bytes] = []
        self.errors: list[str] = []
        self.stopping = threading.Event()
        self.producer = Producer(
            quiet(
                cluster.bootstrap,
                enable_idempotence=True,
                linger_ms=10,
                reconnect_backoff_ms=20,
                reconnect_backoff_max_ms=200,
                message_timeout_ms=60_000,
            )
        )
        self.thread = threading.Thread(target=self.run, name="flow")

    def run(self) -> None:
        while not self.stopping.is_set():
            if len(self.producer) < 2000:  # bounded, and slow enough to compare logs quickly
                self.producer.produce(self.topic, b"%d" % self.sent, on_delivery=self.delivered)
                self.sent += 1
            self.producer.poll(0.001)

    def delivered(self, error: object, message: Any) -> None:
        if error is None:
            self.acked.append(message.value())
        else:
            self.errors.append(str(error))

    def progress(self, more: int = 200, timeout_s: float = 30.0) -> None:
        """Until so many records more are acknowledged."""
        goal = len(self.acked) + more
        until(lambda: len(self.acked) >= goal, timeout_s)


@contextmanager
def flowing(cluster: LocalCluster, topic: str) -> Iterator[Flow]:
    """Produce while the block runs; then nothing may be left unacknowledged."""
    flow = Flow(cluster, topic)
    flow.thread.start()
    try:
        flow.progress()
        yield flow
    finally:
        flow.stopping.set()
        flow.thread.join()
        left = flow.producer.flush(30)
    assert left == 0
    assert flow.errors == []


def assert_nothing_lost(cluster: LocalCluster, topic: str, flow: Flow) -> None:
    """Every acknowledged record is there once, in order; all replicas are in sync and their files are equal."""
    assert len(flow.acked) == flow.sent
    until(lambda: isr_of(cluster, topic) == {node.node_id for node in cluster.nodes}, 30)
    until(lambda: logs_agree(cluster, topic), 15)
    values = read_all(cluster, topic)
    assert values == flow.acked
