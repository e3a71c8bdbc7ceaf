"""librdkafka's consumers of the consumer protocol (KIP-848) against real processes."""

import signal
import subprocess
import sys
import uuid

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupType, Producer, TopicPartition
from tests.cluster.driving import admin_of, create, quiet, until

from strandline.testing.local_cluster import LocalCluster

pytestmark = pytest.mark.cluster

PARTITIONS = 6

# A consumer in a process of its own, which can die without a word.
ALONE = """
import sys
from confluent_kafka import Consumer
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": sys.argv[2], "group.protocol": "consumer"})
consumer.subscribe([sys.argv[3]])
had = None
while True:
    consumer.poll(0.1)
    has = len(consumer.assignment())
    if has != had:
        print(has, flush=True)
        had = has
"""


def consumer(cluster: LocalCluster, group: str, topic: str) -> Consumer:
    made = Consumer(
        quiet(
            cluster.bootstrap,
            group_id=group,
            group_protocol="consumer",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
    )
    made.subscribe([topic])
    return made


def produce(cluster: LocalCluster, topic: str, count: int) -> None:
    producer = Producer(quiet(cluster.bootstrap))
    for number in range(count):
        producer.produce(topic, str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(20) == 0


def test_two_consumers_share_a_topic_and_when_one_dies_the_other_has_all_of_it(shared_cluster: LocalCluster) -> None:
    topic, group = f"cg-{uuid.uuid4().hex[:10]}", f"g-{uuid.uuid4().hex[:10]}"
    admin = admin_of(shared_cluster)
    create(shared_cluster, topic, partitions=PARTITIONS)
    produce(shared_cluster, topic, 60)
    mine = consumer(shared_cluster, group, topic)
    values: set[bytes] = set()

    def took(count: int) -> bool:
        values.update(m.value() or b"" for m in mine.consume(count, 0.1) if not m.error())
        return len(values) >= count

    until(lambda: took(60), 30)
    mine.commit(asynchronous=False)

    command = [sys.executable, "-c", ALONE, shared_cluster.bootstrap, group, topic]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        until(lambda: mine.poll(0.1) is None and len(mine.assignment()) == PARTITIONS // 2, 30)
        assert "3" in (other.stdout.readline().strip(), other.stdout.readline().strip())
        found = admin.describe_consumer_groups([group])[group].result(15)
        assert (found.state, found.type) == (ConsumerGroupState.STABLE, ConsumerGroupType.CONSUMER)
        assert sorted(len(member.assignment.topic_partitions) for member in found.members) == [3, 3]
        other.send_signal(signal.SIGKILL)
    until(lambda: mine.poll(0.1) is None and len(mine.assignment()) == PARTITIONS, 30)
    produce(shared_cluster, topic, 6)
    until(lambda: mine.poll(0.1) is not None, 30)
    offsets = mine.committed([TopicPartition(topic, p) for p in range(PARTITIONS)])
    assert [at.offset for at in offsets] == [10] * PARTITIONS
    mine.close()
    groups = {row.group_id: row for row in admin.list_consumer_groups().result(15).valid}
    assert (groups[group].state, groups[group].type) == (ConsumerGroupState.EMPTY, ConsumerGroupType.CONSUMER)
