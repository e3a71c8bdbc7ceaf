"""A group outlives the node that coordinates it."""

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.cluster.driving import coordinator_of, create, isr_of, quiet, until

from strandline.testing.local_cluster import LocalCluster

pytestmark = pytest.mark.cluster


def member(cluster: LocalCluster) -> Consumer:
    consumer = Consumer(
        quiet(
            cluster.bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6000,
            heartbeat_interval_ms=200,
            reconnect_backoff_max_ms=200,
        )
    )
    consumer.subscribe(["t"])
    return consumer


def produce(cluster: LocalCluster, *values: bytes) -> None:
    producer = Producer(quiet(cluster.bootstrap, enable_idempotence=True, reconnect_backoff_max_ms=200))
    for value in values:
        producer.produce("t", value)
    assert producer.flush(20) == 0


def take(consumer: Consumer, count: int) -> list[bytes]:
    values: list[bytes] = []

    def enough() -> bool:
        values.extend(m.value() for m in consumer.consume(count - len(values), 0.1) if not m.error())
        return len(values) >= count

    until(enough, 30)
    return values


def test_a_group_goes_on_when_its_coordinator_dies(cluster: LocalCluster) -> None:
    create(cluster, "t")
    produce(cluster, b"1", b"2", b"3")
    consumer = member(cluster)
    assert take(consumer, 3) == [b"1", b"2", b"3"]
    consumer.commit(asynchronous=False)
    dead = cluster.node(coordinator_of(cluster, "g"))
    dead.kill()
    until(lambda: coordinator_of(cluster, "g") not in (0, dead.node_id))
    produce(cluster, b"4")
    assert take(consumer, 1) == [b"4"]
    consumer.commit(asynchronous=False)
    consumer.close()

    produce(cluster, b"5")
    consumer = member(cluster)
    assert take(consumer, 1) == [b"5"]
    assert consumer.committed([TopicPartition("t", 0)], timeout=20)[0].offset == 4
    consumer.close()


def test_offsets_outlive_the_death_of_all_nodes(cluster: LocalCluster) -> None:
    create(cluster, "t")
    produce(cluster, b"1", b"2", b"3")
    consumer = member(cluster)
    first = consumer.poll(20)
    assert first is not None
    consumer.commit(message=first, asynchronous=False)
    consumer.close()
    for node in cluster.nodes:
        node.kill()
    for node in cluster.nodes:
        node.start()
    until(lambda: len(isr_of(cluster, "t")) == 3, 30)
    consumer = member(cluster)
    assert take(consumer, 2) == [b"2", b"3"]
    consumer.close()
