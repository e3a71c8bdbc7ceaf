"""What is refused changes nothing, and nobody else notices."""

import random
import socket
import struct
import uuid

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions, NewTopic
from tests.cluster.driving import (
    admin_of,
    batches_on,
    create,
    flowing,
    leader_of,
    logs_agree,
    quiet,
    read_all,
    until,
)
from tests.receiving import receive

from strandline.base.errors import ErrorCode
from strandline.client.ask import ask
from strandline.testing.local_cluster import HOST, LocalCluster, NodeProcess
from strandline.wire.batch import build
from strandline.wire.messages.records.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

pytestmark = pytest.mark.cluster

CREATIONS = [
    ("a bad character", NewTopic("a/b", 1, 3), KafkaError.TOPIC_EXCEPTION),
    ("a name too long", NewTopic("x" * 250, 1, 3), KafkaError.TOPIC_EXCEPTION),
    ("dots alone", NewTopic("..", 1, 3), KafkaError.TOPIC_EXCEPTION),
    ("more replicas than brokers", NewTopic("r4", 1, 4), KafkaError.INVALID_REPLICATION_FACTOR),
    ("an unknown config", NewTopic("c", 1, 3, config={"no.such": "1"}), KafkaError.INVALID_CONFIG),
    ("a config out of range", NewTopic("c", 1, 3, config={"retention.ms": "-2"}), KafkaError.INVALID_CONFIG),
    (
        "an unknown broker",
        NewTopic("a", num_partitions=1, replica_assignment=[[1, 9]]),
        KafkaError.INVALID_REPLICA_ASSIGNMENT,
    ),
]


@pytest.mark.parametrize(("new", "code"), [row[1:] for row in CREATIONS], ids=[row[0] for row in CREATIONS])
def test_a_topic_is_refused(shared_cluster: LocalCluster, new: NewTopic, code: int) -> None:
    admin = admin_of(shared_cluster)
    with pytest.raises(KafkaException) as refused:
        admin.create_topics([new])[new.topic].result(10)
    assert refused.value.args[0].code() == code
    assert new.topic not in admin.list_topics(timeout=10).topics


def test_a_topic_that_exists_stays_as_it_is(shared_cluster: LocalCluster, topic: str) -> None:
    admin = admin_of(shared_cluster)
    with pytest.raises(KafkaException) as refused:
        admin.create_topics([NewTopic(topic, 7, 1)])[topic].result(10)
    assert refused.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
    with pytest.raises(KafkaException) as refused:
        admin.create_partitions([NewPartitions(topic, 1)])[topic].result(10)
    assert refused.value.args[0].code() == KafkaError.INVALID_PARTITIONS
    (partition,) = admin.list_topics(topic, timeout=10).topics[topic].partitions.values()
    assert len(partition.replicas) == 3


def test_an_unknown_topic_cannot_be_deleted_or_asked_for(shared_cluster: LocalCluster) -> None:
    admin = admin_of(shared_cluster)
    name = f"gone-{uuid.uuid4().hex[:8]}"
    with pytest.raises(KafkaException) as refused:
        admin.delete_topics([name])[name].result(10)
    assert refused.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    where = TopicPartition(name, 0, 1)
    with pytest.raises(KafkaException) as refused:
        admin.delete_records([where], request_timeout=3)[where].result(10)
    assert name not in admin.list_topics(timeout=10).topics


def produce_raw(cluster: LocalCluster, topic: str, records: bytes, partition: int = 0) -> int:
    """The error code of a Produce request with these bytes, sent to the leader."""
    leader = cluster.node(leader_of(cluster, topic))
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=partition, records=records),))
    answer = ask(HOST, leader.port, ProduceRequest(acks=-1, timeout_ms=5000, topic_data=(data,)), 9)
    return int(answer.responses[0].partition_responses[0].error_code)


def damaged(batch: bytes, position: int) -> bytes:
    return batch[:position] + bytes([batch[position] ^ 0x40]) + batch[position + 1 :]


GOOD = build([(1_700_000_000_000, b"k", b"value", ())])


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (damaged(GOOD, 65), ErrorCode.CORRUPT_MESSAGE),
        (damaged(GOOD, 22), ErrorCode.CORRUPT_MESSAGE),
        (damaged(GOOD, 18), ErrorCode.CORRUPT_MESSAGE),
        (GOOD[:-1], ErrorCode.CORRUPT_MESSAGE),
        (GOOD + GOOD, ErrorCode.INVALID_RECORD),
        (build([(1, None, b"v" * 1_100_000, ())]), ErrorCode.MESSAGE_TOO_LARGE),
    ],
    ids=["value", "attributes", "crc", "cut off", "two batches", "too large"],
)
def test_bad_bytes_are_refused_and_the_log_stays_as_it_is(
    shared_cluster: LocalCluster, topic: str, records: bytes, error: ErrorCode
) -> None:
    assert produce_raw(shared_cluster, topic, GOOD) == ErrorCode.NONE
    until(lambda: logs_agree(shared_cluster, topic))
    before = [batches_on(node, topic) for node in shared_cluster.nodes]
    assert produce_raw(shared_cluster, topic, records) == error
    assert [batches_on(node, topic) for node in shared_cluster.nodes] == before
    assert produce_raw(shared_cluster, topic, GOOD) == ErrorCode.NONE
    assert read_all(shared_cluster, topic) == [b"value", b"value"]


def test_a_partition_that_is_not_there_is_refused(shared_cluster: LocalCluster, topic: str) -> None:
    assert produce_raw(shared_cluster, topic, GOOD, partition=5) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_client_learns_that_its_message_is_too_large(shared_cluster: LocalCluster) -> None:
    name = f"small-{uuid.uuid4().hex[:8]}"
    create(shared_cluster, name, max_message_bytes="1000")
    codes = []
    producer = Producer(quiet(shared_cluster.bootstrap))
    producer.produce(name, b"x" * 2000, on_delivery=lambda error, _: codes.append(error and error.code()))
    producer.flush(10)
    producer.produce(name, b"x" * 500, on_delivery=lambda error, _: codes.append(error and error.code()))
    producer.flush(10)
    assert codes == [KafkaError.MSG_SIZE_TOO_LARGE, None]


@pytest.mark.parametrize("version", [99, 32767])
def test_an_unknown_version_of_api_versions_is_answered_in_version_0(
    shared_cluster: LocalCluster, version: int
) -> None:
    node = shared_cluster.nodes[0]
    for port in (node.port, node.controller_port):
        with socket.create_connection((HOST, port), timeout=5) as connection:
            connection.sendall(struct.pack(">ihhih", 10, 18, version, 77, -1))
            size = int.from_bytes(receive(connection, 4), "big")
            correlation_id, error, count = struct.unpack_from(">ihi", receive(connection, size))
            assert (correlation_id, error) == (77, ErrorCode.UNSUPPORTED_VERSION)
            assert size == 10 + 6 * count


def nonsense(rng: random.Random) -> list[bytes]:
    """What may come over a socket: noise, sizes that lie, requests cut off or with a body that makes no sense."""
    request = struct.pack(">hhih", 0, 9, 1, -1)
    return [
        rng.randbytes(rng.randrange(1, 300)),
        struct.pack(">i", 0x7FFF_FFFF) + rng.randbytes(100),
        struct.pack(">i", -1),
        struct.pack(">i", 0),
        struct.pack(">i", 50) + b"short",
        struct.pack(">i", 200) + request + rng.randbytes(200 - len(request)),
        struct.pack(">ihhih", 110, rng.randrange(0, 80), rng.randrange(0, 15), 1, -1) + rng.randbytes(100),
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ]


def throw(node: NodeProcess, port: int, frame: bytes) -> None:
    with socket.create_connection((HOST, port), timeout=2) as connection:
        try:
            connection.sendall(frame)
            connection.settimeout(0.02)
            connection.recv(1000)
        except OSError:
            pass  # Closed, or no answer yet: what counts is that the node lives on.
    assert node.running, node.log_tail()


def test_nonsense_at_both_ports_disturbs_nobody(cluster: LocalCluster) -> None:
    rng = random.Random(1)
    create(cluster, "t")
    with flowing(cluster, "t") as flow:
        for node in cluster.nodes:
            for port in (node.port, node.controller_port):
                for frame in [frame for _ in range(6) for frame in nonsense(rng)]:
                    throw(node, port, frame)
        flow.progress()
    assert read_all(cluster, "t") == flow.acked
    assert not any("crashed" in node.log_tail(1000) for node in cluster.nodes)
