"""What a topic makes of produced batches, as real clients see it: its codec, its clock, its limits."""

import asyncio
import uuid
import warnings
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, KafkaError, Producer, TopicPartition
from tests.cluster.driving import create, leader_of, quiet, until
from tests.cluster.kafka_files import GZIP, LZ4, NONE, SNAPPY, ZSTD, batches_of

from strandline.base.errors import ErrorCode
from strandline.client.ask import ask
from strandline.testing.local_cluster import HOST, LocalCluster
from strandline.wire.batch import HEADER_SIZE, build, read_header, repacked
from strandline.wire.compress import Codec
from strandline.wire.messages.cluster.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from strandline.wire.messages.records.produce import PartitionProduceData, ProduceRequest, TopicProduceData

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from aiokafka import AIOKafkaConsumer
    from kafka import KafkaConsumer, KafkaProducer

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore")]

TOPIC, BROKER = 2, 4
DAY_ONE = 1_700_000_000_000
OWN = {"uncompressed": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
VALUES = [b"%d " % i * 60 for i in range(50)]


def topic_with(cluster: LocalCluster, **config: str) -> str:
    name = f"c-{uuid.uuid4().hex[:10]}"
    create(cluster, name, **config)
    return name


def stored_codecs(cluster: LocalCluster, topic: str) -> list[int]:
    directory = cluster.node(leader_of(cluster, topic)).data_path / f"{topic}-0"
    return [batch.codec for batch in batches_of(directory / f"{0:020d}.log")]


def send(cluster: LocalCluster, topic: str, *values: bytes, **settings: Any) -> list[int | None]:
    """The error code of each record, as librdkafka tells it."""
    codes: list[int | None] = []
    producer = Producer(quiet(cluster.bootstrap, linger_ms=20, **settings))
    for i, value in enumerate(values):
        producer.produce(topic, value, b"k%d" % i, on_delivery=lambda error, _: codes.append(error and error.code()))
    assert producer.flush(20) == 0
    return codes


def received(cluster: LocalCluster, topic: str, count: int) -> list[Any]:
    consumer = Consumer(quiet(cluster.bootstrap, group_id="g", check_crcs=True))
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[Any] = []
    until(lambda: (found.extend(consumer.consume(count, timeout=0.2)), len(found) >= count)[1])
    consumer.close()
    return found


@pytest.mark.parametrize("name", OWN)
def test_every_client_reads_a_topic_that_has_a_codec_of_its_own(shared_cluster: LocalCluster, name: str) -> None:
    topic = topic_with(shared_cluster, compression_type=name)
    producer = KafkaProducer(
        bootstrap_servers=shared_cluster.bootstrap.split(","),
        compression_type="gzip" if name != "gzip" else None,
        linger_ms=20,
    )
    sent = [producer.send(topic, value, key=b"k", timestamp_ms=DAY_ONE) for value in VALUES]
    assert [future.get(15).offset for future in sent] == list(range(len(VALUES)))
    producer.close()
    assert set(stored_codecs(shared_cluster, topic)) == {OWN[name]}

    assert [message.value() for message in received(shared_cluster, topic, len(VALUES))] == VALUES
    assert asyncio.run(by_aiokafka(shared_cluster, topic)) == VALUES
    if name in ("uncompressed", "gzip"):  # kafka-python has no other codecs here
        assert by_kafka_python(shared_cluster, topic) == VALUES


async def by_aiokafka(cluster: LocalCluster, topic: str) -> list[bytes]:
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest")
    async with consumer:
        return [(await asyncio.wait_for(consumer.getone(), 10)).value for _ in VALUES]


def by_kafka_python(cluster: LocalCluster, topic: str) -> list[bytes]:
    consumer = KafkaConsumer(topic, bootstrap_servers=cluster.bootstrap.split(","), auto_offset_reset="earliest")
    found: list[bytes] = []

    def enough() -> bool:
        for records in consumer.poll(timeout_ms=100).values():
            found.extend(record.value for record in records)
        return len(found) >= len(VALUES)

    until(enough)
    consumer.close()
    return found


def test_a_type_that_is_changed_while_brokers_run_holds_for_what_comes_next(cluster: LocalCluster) -> None:
    """First for all brokers, then for the topic, which counts more."""
    create(cluster, "t")
    assert send(cluster, "t", b"v" * 500) == [None]
    for resource_type, resource, name in ((BROKER, "", "gzip"), (TOPIC, "t", "zstd"), (TOPIC, "t", "producer")):
        entry = AlterableConfig(name="compression.type", config_operation=0, value=name)
        change = AlterConfigsResource(resource_type=resource_type, resource_name=resource, configs=(entry,))
        answer = ask(HOST, cluster.nodes[0].port, IncrementalAlterConfigsRequest(resources=(change,)), 1)
        assert [row.error_code for row in answer.responses] == [ErrorCode.NONE]
        wanted = OWN.get(name, NONE)
        until(lambda wanted=wanted: send(cluster, "t", b"v" * 500) and stored_codecs(cluster, "t")[-1] == wanted)
    codecs = stored_codecs(cluster, "t")
    assert list(dict.fromkeys(codecs)) == [NONE, GZIP, ZSTD]
    assert codecs == [*sorted(codecs[:-1]), NONE]
    assert len(received(cluster, "t", len(codecs))) == len(codecs)


def test_a_client_learns_when_its_batch_is_too_large_as_the_topic_stores_it(shared_cluster: LocalCluster) -> None:
    topic = topic_with(shared_cluster, compression_type="uncompressed", max_message_bytes="2000")
    too_large = KafkaError.MSG_SIZE_TOO_LARGE
    assert send(shared_cluster, topic, b"v" * 3000, compression_type="lz4") == [too_large]
    assert send(shared_cluster, topic, b"v" * 1000, compression_type="lz4") == [None]
    assert stored_codecs(shared_cluster, topic) == [NONE]


def test_an_idempotent_producer_goes_on_in_a_topic_that_recompresses(shared_cluster: LocalCluster) -> None:
    topic = topic_with(shared_cluster, compression_type="zstd", compression_zstd_level="1")
    values = [b"%d" % i for i in range(3000)]
    codes = send(shared_cluster, topic, *values, enable_idempotence=True, compression_type="snappy", batch_size=2000)
    assert codes == [None] * 3000
    assert [message.value() for message in received(shared_cluster, topic, 3000)] == values


def answer_to(cluster: LocalCluster, topic: str, version: int, batch: bytes) -> Any:
    data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=batch),))
    request = ProduceRequest(acks=-1, timeout_ms=5000, topic_data=(data,))
    answer = ask(HOST, cluster.node(leader_of(cluster, topic)).port, request, version)
    return answer.responses[0].partition_responses[0]


def test_a_producer_that_is_too_old_for_zstd_gets_an_error(shared_cluster: LocalCluster, topic: str) -> None:
    batch = build([(DAY_ONE, b"k", b"v", ())], codec=Codec.ZSTD)
    old = answer_to(shared_cluster, topic, 6, batch)
    assert (old.error_code, old.base_offset) == (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, -1)
    assert answer_to(shared_cluster, topic, 7, batch).error_code == ErrorCode.NONE


def test_records_that_are_invalid_are_refused_by_a_topic_that_must_read_them(shared_cluster: LocalCluster) -> None:
    topic = topic_with(shared_cluster, compression_type="gzip")
    two, one = build([(DAY_ONE, b"k", b"v", ())] * 2), build([(DAY_ONE, b"k", b"v", ())])
    wrong = repacked(read_header(two), two, Codec.NONE, one[HEADER_SIZE:])
    assert answer_to(shared_cluster, topic, 9, bytes(wrong)).error_code == ErrorCode.INVALID_RECORD
    assert answer_to(shared_cluster, topic, 9, two).error_code == ErrorCode.NONE


def test_with_log_append_time_consumers_see_the_brokers_clock(shared_cluster: LocalCluster) -> None:
    topic = topic_with(shared_cluster, message_timestamp_type="LogAppendTime", compression_type="zstd")
    stamped = answer_to(shared_cluster, topic, 9, build([(DAY_ONE, b"k", b"v", ())]))
    assert stamped.log_append_time_ms > DAY_ONE
    (message,) = received(shared_cluster, topic, 1)
    assert message.timestamp() == (TIMESTAMP_LOG_APPEND_TIME, stamped.log_append_time_ms)


def test_a_record_from_too_long_ago_is_refused_and_named(shared_cluster: LocalCluster) -> None:
    topic = topic_with(shared_cluster, message_timestamp_before_max_ms="3600000")
    assert send(shared_cluster, topic, b"now") == [None]
    producer = Producer(quiet(shared_cluster.bootstrap))
    codes = []
    producer.produce(topic, b"then", timestamp=DAY_ONE, on_delivery=lambda error, _: codes.append(error.code()))
    assert producer.flush(20) == 0
    assert codes == [KafkaError.INVALID_TIMESTAMP]
    now = received(shared_cluster, topic, 1)[0].timestamp()[1]
    answer = answer_to(shared_cluster, topic, 9, build([(now, None, b"a", ()), (DAY_ONE, None, b"b", ())]))
    assert (answer.error_code, [error.batch_index for error in answer.record_errors]) == (
        ErrorCode.INVALID_TIMESTAMP,
        [1],
    )
