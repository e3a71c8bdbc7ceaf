"""confluent-kafka (librdkafka) against a cluster that stays whole."""

import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from tests.cluster.driving import admin_of, create, leads, partition_of, quiet, until

from strandline.testing.local_cluster import LocalCluster

pytestmark = pytest.mark.cluster

DAY_ONE = 1_700_000_000_000


@pytest.fixture
def admin(shared_cluster: LocalCluster) -> AdminClient:
    return admin_of(shared_cluster)


@pytest.fixture
def name() -> str:
    return f"c-{uuid.uuid4().hex[:10]}"


def produce(cluster: LocalCluster, topic: str, *records: dict[str, Any], **settings: Any) -> list[Message]:
    """Produce and flush; what was delivered, in the order of the acknowledgements."""
    delivered: list[Message] = []

    def acknowledged(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        delivered.append(message)

    producer = Producer(quiet(cluster.bootstrap, linger_ms=2, **settings))
    for record in records:
        producer.produce(topic, on_delivery=acknowledged, **record)
    assert producer.flush(20) == 0
    return delivered


def take(consumer: Consumer, count: int, timeout_s: float = 15.0) -> list[Message]:
    """The next so many messages."""
    taken: list[Message] = []

    def enough() -> bool:
        taken.extend(consumer.consume(count - len(taken), 0.1))
        return len(taken) >= count

    until(enough, timeout_s)
    assert [message.error() for message in taken] == [None] * count
    return taken


@pytest.fixture
def reader(shared_cluster: LocalCluster) -> Iterator[Consumer]:
    """A consumer for `assign`, outside of any group's bookkeeping."""
    settings = quiet(shared_cluster.bootstrap, group_id="none", enable_auto_commit=False, auto_offset_reset="earliest")
    consumer = Consumer(settings)
    yield consumer
    consumer.close()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_as_they_were_sent(
    shared_cluster: LocalCluster, topic: str, reader: Consumer, codec: str
) -> None:
    sent = [
        {"key": b"k", "value": b"v" * 2000, "timestamp": DAY_ONE, "headers": [("a", b"1"), ("a", b""), ("b", None)]},
        {"key": None, "value": b"", "timestamp": DAY_ONE + 5, "headers": []},
        {"key": b"", "value": None, "timestamp": DAY_ONE + 1, "headers": []},
    ]
    produce(shared_cluster, topic, *sent, compression_type=codec)
    reader.assign([TopicPartition(topic, 0, 0)])
    got = take(reader, 3)
    assert [
        {"key": m.key(), "value": m.value(), "timestamp": m.timestamp()[1], "headers": m.headers() or []} for m in got
    ] == sent
    assert [m.offset() for m in got] == [0, 1, 2]


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_record_of_nearly_a_megabyte(shared_cluster: LocalCluster, topic: str, reader: Consumer, codec: str) -> None:
    value = bytes(range(256)) * 3900
    produce(shared_cluster, topic, *[{"value": value}] * 3, compression_type=codec)
    reader.assign([TopicPartition(topic, 0, 0)])
    assert [message.value() for message in take(reader, 3)] == [value] * 3


def test_an_idempotent_producer_keeps_order(shared_cluster: LocalCluster, topic: str, reader: Consumer) -> None:
    values = [b"%d" % i for i in range(5000)]
    produce(shared_cluster, topic, *({"value": value} for value in values), enable_idempotence=True)
    reader.assign([TopicPartition(topic, 0, 0)])
    assert [message.value() for message in take(reader, 5000)] == values


def test_where_to_start_by_time_by_offset_at_the_ends(
    shared_cluster: LocalCluster, topic: str, reader: Consumer, admin: AdminClient
) -> None:
    for minute in (0, 1, 3, 2):  # one batch each; the latest time is not at the latest offset
        produce(shared_cluster, topic, {"value": b"%d" % minute, "timestamp": DAY_ONE + 60_000 * minute})
    asked = {DAY_ONE - 1: 0, DAY_ONE + 1: 1, DAY_ONE + 60_001: 2, DAY_ONE + 180_001: -1}
    for timestamp, offset in asked.items():
        (found,) = reader.offsets_for_times([TopicPartition(topic, 0, timestamp)], timeout=10)
        assert found.offset == offset, timestamp
    assert reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=10) == (0, 4)
    where = TopicPartition(topic, 0)
    specs = {OffsetSpec.earliest(): 0, OffsetSpec.latest(): 4, OffsetSpec.max_timestamp(): 2}
    for spec, offset in specs.items():
        assert admin.list_offsets({where: spec})[where].result(10).offset == offset
    reader.assign([TopicPartition(topic, 0, 3)])
    assert take(reader, 1)[0].value() == b"2"
    reader.seek(TopicPartition(topic, 0, 1))
    assert take(reader, 1)[0].value() == b"1"


def member(cluster: LocalCluster, group: str, topic: str) -> Consumer:
    consumer = Consumer(
        quiet(
            cluster.bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6000,
            heartbeat_interval_ms=200,
        )
    )
    consumer.subscribe([topic])
    return consumer


def test_a_group_goes_on_where_it_committed(shared_cluster: LocalCluster, topic: str, name: str) -> None:
    produce(shared_cluster, topic, *({"value": b"%d" % i} for i in range(10)))
    first = member(shared_cluster, name, topic)
    taken = take(first, 10)
    first.commit(message=taken[5], asynchronous=False)
    first.close()
    second = member(shared_cluster, name, topic)
    assert [message.value() for message in take(second, 4)] == [b"6", b"7", b"8", b"9"]
    assert second.committed([TopicPartition(topic, 0)], timeout=10)[0].offset == 6
    second.close()


def test_a_group_reads_a_topic_that_was_made_anew_from_its_beginning(
    shared_cluster: LocalCluster, topic: str, name: str, admin: AdminClient
) -> None:
    produce(shared_cluster, topic, *({"value": b"old"} for _ in range(100)))
    first = member(shared_cluster, name, topic)
    first.commit(message=take(first, 100)[-1], asynchronous=False)
    first.close()
    admin.delete_topics([topic])[topic].result(10)
    until(lambda: partition_of(shared_cluster, topic) is None)
    create(shared_cluster, topic)
    produce(shared_cluster, topic, *({"value": b"%d" % i} for i in range(150)))
    second = member(shared_cluster, name, topic)
    assert [message.value() for message in take(second, 150)] == [b"%d" % i for i in range(150)]
    second.close()


def test_members_share_the_partitions_and_inherit_them(shared_cluster: LocalCluster, name: str) -> None:
    create(shared_cluster, name, partitions=4)
    one, two = member(shared_cluster, name, name), member(shared_cluster, name, name)

    def owned(consumer: Consumer) -> set[int]:
        assert not [m for m in consumer.consume(10, 0.05) if m.error()]
        return {where.partition for where in consumer.assignment()}

    until(lambda: len(owned(one)) == len(owned(two)) == 2)
    assert owned(one) | owned(two) == {0, 1, 2, 3}
    two.close()
    until(lambda: len(owned(one)) == 4)
    one.close()


def test_a_group_is_listed_described_and_deleted(
    shared_cluster: LocalCluster, topic: str, name: str, admin: AdminClient
) -> None:
    produce(shared_cluster, topic, {"value": b"v"})
    consumer = member(shared_cluster, name, topic)
    consumer.commit(message=take(consumer, 1)[0], asynchronous=False)

    described = admin.describe_consumer_groups([name])[name].result(10)
    assert (described.state.name, len(described.members)) == ("STABLE", 1)
    assert described.members[0].assignment.topic_partitions == [TopicPartition(topic, 0)]
    with pytest.raises(KafkaException) as refused:
        admin.delete_consumer_groups([name])[name].result(10)
    assert refused.value.args[0].code() == KafkaError.NON_EMPTY_GROUP
    consumer.close()

    listed = admin.list_consumer_groups().result(10)
    assert not listed.errors
    assert name in {group.group_id for group in listed.valid}
    committed = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name].result(10)
    assert [(p.topic, p.partition, p.offset) for p in committed.topic_partitions] == [(topic, 0, 1)]
    until(lambda: admin.describe_consumer_groups([name])[name].result(10).state.name == "EMPTY")
    admin.delete_consumer_groups([name])[name].result(10)
    assert name not in {group.group_id for group in admin.list_consumer_groups().result(10).valid}


def test_a_topic_is_created_described_grown_and_deleted(
    shared_cluster: LocalCluster, name: str, admin: AdminClient
) -> None:
    new = NewTopic(name, num_partitions=2, replica_assignment=[[3, 1], [2, 3]])
    admin.create_topics([new], validate_only=True)[name].result(10)
    assert name not in admin.list_topics(timeout=10).topics
    admin.create_topics([new])[name].result(10)
    until(lambda: leads(shared_cluster, name, 0) and leads(shared_cluster, name, 1))

    described = admin.describe_topics(TopicCollection([name]))[name].result(10)
    assert [[node.id for node in p.replicas] for p in described.partitions] == [[3, 1], [2, 3]]
    assert [p.leader.id for p in described.partitions] == [3, 2]
    admin.create_partitions([NewPartitions(name, 5)])[name].result(10)
    until(lambda: len(admin.list_topics(name, timeout=10).topics[name].partitions) == 5)
    admin.delete_topics([name])[name].result(10)
    until(lambda: partition_of(shared_cluster, name) is None)


def test_configs_of_topics_and_brokers_are_reported_and_changed(
    shared_cluster: LocalCluster, topic: str, admin: AdminClient
) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topic)

    def entries() -> dict[str, ConfigEntry]:
        found: dict[str, ConfigEntry] = admin.describe_configs([resource])[resource].result(10)
        return found

    assert entries()["retention.ms"].value == "604800000"
    assert entries()["retention.ms"].is_default
    changed = ConfigResource(ResourceType.TOPIC, topic)
    changed.add_incremental_config(ConfigEntry("retention.ms", "3600000", incremental_operation=AlterConfigOpType.SET))
    admin.incremental_alter_configs([changed])[changed].result(10)
    until(lambda: entries()["retention.ms"].value == "3600000")
    assert not entries()["retention.ms"].is_default
    broker = ConfigResource(ResourceType.BROKER, "2")
    of_broker = admin.describe_configs([broker])[broker].result(10)
    assert of_broker["node.id"].value == "2"
    assert of_broker["replica.lag.time.max.ms"].value == "1500"


def test_the_cluster_is_described(shared_cluster: LocalCluster, admin: AdminClient) -> None:
    described = admin.describe_cluster().result(10)
    assert {node.id: node.port for node in described.nodes} == {n.node_id: n.port for n in shared_cluster.nodes}
    assert described.cluster_id == (shared_cluster.folder / "cluster.id").read_text().strip()
    assert described.controller.id in {1, 2, 3}


def test_records_are_deleted_from_the_front(
    shared_cluster: LocalCluster, topic: str, reader: Consumer, admin: AdminClient
) -> None:
    for i in range(5):
        produce(shared_cluster, topic, {"value": b"%d" % i})
    where = TopicPartition(topic, 0, 3)
    assert admin.delete_records([where])[where].result(10).low_watermark == 3
    assert reader.get_watermark_offsets(where, timeout=10) == (3, 5)
    reader.assign([TopicPartition(topic, 0, 0)])  # before the start: auto.offset.reset sends it to the earliest
    assert [message.value() for message in take(reader, 2)] == [b"3", b"4"]


def test_an_unknown_topic_is_created_on_first_use(shared_cluster: LocalCluster, name: str, reader: Consumer) -> None:
    started = time.monotonic()
    produce(shared_cluster, name, {"value": b"first"})
    assert time.monotonic() - started < 15
    reader.assign([TopicPartition(name, 0, 0)])
    assert take(reader, 1)[0].value() == b"first"
