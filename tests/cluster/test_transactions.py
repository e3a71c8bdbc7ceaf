"""Transactions of librdkafka on real processes: committed records are read, aborted ones are not, zombies fenced."""

import uuid
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from tests.cluster.driving import create, quiet, until

from strandline.testing.local_cluster import LocalCluster

pytestmark = pytest.mark.cluster


@pytest.fixture
def topic(shared_cluster: LocalCluster) -> str:
    name = f"t-{uuid.uuid4().hex[:10]}"
    create(shared_cluster, name, 3)
    return name


def producer_of(cluster: LocalCluster, transactional_id: str, **settings: Any) -> Producer:
    producer = Producer(quiet(cluster.bootstrap, transactional_id=transactional_id, linger_ms=2, **settings))
    producer.init_transactions(30)
    return producer


def write(producer: Producer, topic: str, *values: str) -> None:
    """Each value into each partition."""
    for value in values:
        for partition in range(3):
            producer.produce(topic, value.encode(), partition=partition)


def read(cluster: LocalCluster, topic: str, isolation: str = "read_committed") -> list[tuple[int, str]]:
    """All up to the last stable offset, or to the high watermark."""
    settings = {"group_id": "none", "enable_auto_commit": False, "isolation_level": isolation}
    consumer = Consumer(quiet(cluster.bootstrap, enable_partition_eof=True, auto_offset_reset="earliest", **settings))
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(3)])
    found, ends = [], 0
    while ends < 3:
        message = consumer.poll(20)
        assert message is not None, found
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ends += 1
        else:
            found.append((message.partition(), message.value().decode()))
    consumer.close()
    return sorted(found)


def each_partition(*values: str) -> list[tuple[int, str]]:
    return sorted((partition, value) for partition in range(3) for value in values)


def test_a_transaction_counts_in_all_partitions_or_in_none(shared_cluster: LocalCluster, topic: str) -> None:
    producer = producer_of(shared_cluster, topic)
    producer.begin_transaction()
    write(producer, topic, "a", "b")
    assert producer.flush(20) == 0
    assert read(shared_cluster, topic) == []
    assert read(shared_cluster, topic, "read_uncommitted") == each_partition("a", "b")
    producer.commit_transaction(20)
    assert read(shared_cluster, topic) == each_partition("a", "b")
    producer.begin_transaction()
    write(producer, topic, "c")
    assert producer.flush(20) == 0
    producer.abort_transaction(20)
    producer.begin_transaction()
    write(producer, topic, "d")
    producer.commit_transaction(20)
    assert read(shared_cluster, topic) == each_partition("a", "b", "d")


def test_a_new_producer_aborts_what_the_one_before_it_left_open_and_fences_it(
    shared_cluster: LocalCluster, topic: str
) -> None:
    zombie = producer_of(shared_cluster, topic)
    zombie.begin_transaction()
    write(zombie, topic, "zombie")
    assert zombie.flush(20) == 0
    producer = producer_of(shared_cluster, topic)
    with pytest.raises(KafkaException) as fenced:
        zombie.commit_transaction(20)
    assert fenced.value.args[0].code() in (KafkaError._FENCED, KafkaError.PRODUCER_FENCED)
    producer.begin_transaction()
    write(producer, topic, "a")
    producer.commit_transaction(20)
    assert read(shared_cluster, topic) == each_partition("a")


def test_a_transaction_that_is_given_up_does_not_hold_up_readers_for_ever(
    shared_cluster: LocalCluster, topic: str
) -> None:
    producer = producer_of(shared_cluster, topic, transaction_timeout_ms=1_000)
    producer.begin_transaction()
    write(producer, topic, "given up")
    assert producer.flush(20) == 0
    other = producer_of(shared_cluster, f"{topic}-other")
    other.begin_transaction()
    write(other, topic, "a")
    other.commit_transaction(20)
    assert until(lambda: read(shared_cluster, topic), 30) == each_partition("a")
