"""Compacted topics in real processes, with real clients, and with nodes that are killed meanwhile."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition
from tests.cluster.disks.test_files import batches_of
from tests.cluster.driving import create, isr_of, quiet, until

from strandline.testing.local_cluster import LocalCluster, NodeProcess

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore"), pytest.mark.long]
EAGER = {
    "log_cleaner_backoff_ms": "100",
    "log_cleaner_min_cleanable_ratio": "0.01",
    "log_flush_offset_checkpoint_interval_ms": "200",
}
KEYS = 20


def folder(node: NodeProcess, partition: str) -> Path:
    return node.data_path / partition


def size(node: NodeProcess, partition: str) -> int:
    """Of its segments; one may be replaced between two looks."""
    total = 0
    for path in folder(node, partition).glob("*.log"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def cleaned_to(node: NodeProcess, topic: str) -> int:
    """By Kafka's checkpoint; the largest of all partitions."""
    path = node.data_path / "cleaner-offset-checkpoint"
    rows = [line.split() for line in path.read_text().splitlines()[2:]] if path.exists() else []
    return max((int(offset) for name, _, offset in rows if name == topic), default=0)


def everything(cluster: LocalCluster, topic: str) -> list[Message]:
    consumer = Consumer(quiet(cluster.bootstrap, group_id="reader", enable_partition_eof=True))
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[Message] = []

    def at_the_end() -> bool:
        for message in consumer.consume(500, 0.2):
            error = message.error()
            if error is None:
                found.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                return True
        return False

    until(at_the_end, 30)
    consumer.close()
    return found


def restart(cluster: LocalCluster, node: NodeProcess) -> None:
    node.kill()
    node.start()
    until(lambda: node.node_id in isr_of(cluster, "t"), 30)


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_of_each_key_the_last_value_is_left_also_where_nodes_are_killed_meanwhile(
    start_cluster: Callable[..., LocalCluster], codec: str
) -> None:
    cluster = start_cluster(**EAGER)
    create(cluster, "t", cleanup_policy="compact", internal_segment_bytes="20000")
    producer = Producer(
        quiet(cluster.bootstrap, enable_idempotence=True, compression_type=codec, reconnect_backoff_max_ms=200)
    )
    last: dict[bytes, bytes | None] = {}

    def write(first: int, count: int) -> None:
        for number in range(first, first + count):
            key = b"k%d" % (number % KEYS)
            value = None if number % 31 == 0 else b"%d " % number * 20
            producer.produce("t", value, key)
            last[key] = value
            if number % 50 == 0:
                assert producer.flush(30) == 0
        assert producer.flush(30) == 0

    for turn, node in enumerate(cluster.nodes):
        write(turn * 2000, 2000)
        until(lambda node=node, turn=turn: cleaned_to(node, "t") > turn * 2000, 30)
        restart(cluster, node)
    write(6000, 2000)
    for node in cluster.nodes:  # one that was away copies what the others had compacted already
        until(lambda node=node: size(node, "t-0") < 60_000, 30)
        for segment in sorted(folder(node, "t-0").glob("*.log")):
            batches_of(segment)  # each one whole, for another reader
    messages = everything(cluster, "t")
    offsets = [message.offset() for message in messages]
    assert offsets == sorted(set(offsets))
    assert len(messages) < 4000
    found = {message.key(): message.value() for message in messages}
    assert found == last


def test_committed_offsets_are_compacted_and_right_after_all_nodes_are_killed(
    start_cluster: Callable[..., LocalCluster],
) -> None:
    cluster = start_cluster(
        offsets_topic_num_partitions="1", log_roll_ms="500", log_retention_check_interval_ms="100", **EAGER
    )
    create(cluster, "t", partitions=3)
    consumer = Consumer(quiet(cluster.bootstrap, group_id="g", enable_auto_commit=False))
    consumers = {"g": consumer, "h": Consumer(quiet(cluster.bootstrap, group_id="h", enable_auto_commit=False))}
    for one in consumers.values():
        until(lambda one=one: one.committed([TopicPartition("t", 0)], timeout=30))
    for offset in range(1, 400):
        for one in consumers.values():
            one.commit(offsets=[TopicPartition("t", p, offset + p) for p in range(3)], asynchronous=False)
    for node in cluster.nodes:
        until(lambda node=node: cleaned_to(node, "__consumer_offsets") > 1500, 30)
        until(lambda node=node: size(node, "__consumer_offsets-0") < 60_000, 30)
    for node in cluster.nodes:
        node.kill()
    for node in cluster.nodes:
        node.start()
    until(lambda: len(isr_of(cluster, "t")) == 3, 30)
    for group in consumers:
        again = Consumer(quiet(cluster.bootstrap, group_id=group, enable_auto_commit=False))
        wanted = [TopicPartition("t", p) for p in range(3)]
        assert [one.offset for one in again.committed(wanted, timeout=30)] == [399, 400, 401]
        again.close()
    for one in consumers.values():
        one.close()
