"""Clients with quotas on a real cluster: the answers say how long they must wait, and strict mutations are refused."""

import uuid
from typing import Any

import pytest
from confluent_kafka import Producer
from msgspec.structs import replace
from tests.cluster.driving import create, quiet, until

from strandline.base.errors import ErrorCode
from strandline.client.admin.quotas import alter_quotas, component, quotas_of
from strandline.client.ask import PLAIN, ask
from strandline.testing.local_cluster import HOST, LocalCluster
from strandline.wire.batch import build
from strandline.wire.messages.records.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.wire.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from strandline.wire.messages.topics.create_topics import CreatableTopic, CreateTopicsRequest
from strandline.wire.messages.topics.metadata import MetadataRequest

pytestmark = pytest.mark.cluster

RECORD_BYTES = 10_000
WINDOWS_S = 10  # that a client may use at once: quota.window.num less the current one


def limited(cluster: LocalCluster, key: str, value: float) -> str:
    """A new client id with this quota, which the node knows by now."""
    name = f"q-{uuid.uuid4().hex[:10]}"
    alter_quotas(cluster.bootstrap, (("client-id", name),), {key: value})
    until(lambda: quotas_of(cluster.bootstrap, component("client-id", name)), 10)
    return name


def asking(cluster: LocalCluster, message: Any, version: int, client_id: str) -> Any:
    host, _, port = cluster.bootstrap.partition(":")
    return ask(host, int(port), message, version, config=replace(PLAIN, client_id=client_id))


def produce(topic: str, records: int) -> ProduceRequest:
    batch = build([(0, None, bytes(RECORD_BYTES), ())] * records)
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=batch),))
    return ProduceRequest(acks=-1, timeout_ms=5000, topic_data=(data,))


def test_who_produces_and_fetches_too_much_is_told_how_long_to_wait(one_node: LocalCluster) -> None:
    topic = f"q-{uuid.uuid4().hex[:10]}"
    create(one_node, topic)
    rate = RECORD_BYTES / WINDOWS_S
    client = limited(one_node, "producer_byte_rate", rate)
    assert asking(one_node, produce(topic, 4), 9, "anybody").throttle_time_ms == 0
    answer = asking(one_node, produce(topic, 4), 9, client)
    (row,) = answer.responses[0].partition_responses
    assert (row.error_code, row.base_offset) == (ErrorCode.NONE, 4), "what is too much is written all the same"
    assert 28_000 < answer.throttle_time_ms <= 30_100
    reader = limited(one_node, "consumer_byte_rate", 2.5 * rate)
    partitions = (FetchPartition(partition=0, partition_max_bytes=1 << 20),)
    fetch = FetchRequest(max_wait_ms=500, min_bytes=1, topics=(FetchTopic(topic=topic, partitions=partitions),))
    read = [len(asking(one_node, fetch, 11, name).responses[0].partitions[0].records) for name in ("anybody", reader)]
    assert read[0] > 8 * RECORD_BYTES
    assert read[1] <= 2.5 * RECORD_BYTES or read[1] == read[0] // 2, "no more than all windows allow, or one batch"
    assert asking(one_node, fetch, 11, reader).throttle_time_ms > 0


def test_who_takes_too_much_of_a_nodes_time_waits(one_node: LocalCluster) -> None:
    client = limited(one_node, "request_percentage", 0.001)
    metadata = MetadataRequest(topics=None)
    until(lambda: asking(one_node, metadata, 12, client).throttle_time_ms > 0, 20)
    assert asking(one_node, metadata, 12, "anybody").throttle_time_ms == 0


def test_librdkafka_hears_that_it_is_throttled(one_node: LocalCluster) -> None:
    topic = f"q-{uuid.uuid4().hex[:10]}"
    create(one_node, topic)
    client = limited(one_node, "producer_byte_rate", 1000)
    events: list[Any] = []
    producer = Producer(quiet(one_node.bootstrap, client_id=client) | {"throttle_cb": events.append})
    for _ in range(3):
        producer.produce(topic, bytes(RECORD_BYTES))
    until(lambda: producer.poll(0.05) is not None and events, 20)
    assert events[0].throttle_time > 0
    producer.purge()


def test_mutations_beyond_the_quota_are_refused_and_the_topic_is_not_created(one_node: LocalCluster) -> None:
    client = limited(one_node, "controller_mutation_rate", 1.0)
    names = [f"q-{uuid.uuid4().hex[:10]}" for _ in range(3)]
    rows = tuple(CreatableTopic(name=name, num_partitions=8, replication_factor=1) for name in names)
    answer = asking(one_node, CreateTopicsRequest(topics=rows, timeout_ms=5000), 7, client)
    errors = {row.name: row.error_code for row in answer.topics}
    assert [errors[name] for name in names] == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    assert answer.throttle_time_ms > 0
    again = CreateTopicsRequest(topics=rows[2:], timeout_ms=5000)
    config = replace(PLAIN, client_id=client)
    answer = ask(HOST, one_node.node(1).controller_port, again, 7, config=config)
    assert answer.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED, "nor by the controllers' listener"
    assert asking(one_node, again, 7, "anybody").topics[0].error_code == ErrorCode.NONE
