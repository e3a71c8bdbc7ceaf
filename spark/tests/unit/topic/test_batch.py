"""One DataFrame over a topic of a real node: the edges of what it reads, and what it refuses."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSourceReader, EqualTo, GreaterThan, InputPartition
from pyspark.sql.types import StructType
from spark.tests.unit.topic.conftest import Topic
from tests.cluster.driving import quiet
from tests.unit.client.partition import Partition

from strandline.base.errors import ErrorCode
from strandline.client.errors import TimedOut, Unreachable
from strandline.wire.messages.records.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from strandline_spark.errors import BadOption, DataLoss, StrandlineError
from strandline_spark.schemas import TYPES
from strandline_spark.topic.batch import TopicReader
from strandline_spark.topic.source import DefaultSource

MakeTopic = Callable[..., Topic]


def source_of(options: dict[str, str]) -> DefaultSource:
    """As Spark hands it to its planners: made once, then pickled."""
    copy: DefaultSource = cloudpickle.loads(cloudpickle.dumps(DefaultSource(options=options)))
    return copy


def reader_of(options: dict[str, str], schema: StructType | None = None) -> TopicReader:
    source = source_of(options)
    reader = source.reader(schema=schema or source.schema())
    assert isinstance(reader, TopicReader)
    return reader


def rows(reader: TopicReader) -> list[tuple[Any, ...]]:
    worker = cloudpickle.loads(cloudpickle.dumps(reader))
    return [
        tuple(row.values())
        for partition in reader.partitions()
        for batch in worker.read(cloudpickle.loads(cloudpickle.dumps(partition)))
        for row in batch.to_pylist()
    ]


def values(options: dict[str, str]) -> list[int]:
    return [int(row[0]) for row in rows(reader_of(options, StructType().add("value", "binary")))]


def test_only_the_columns_that_are_wanted_are_made_in_the_order_that_is_wanted(make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic.write(7, key=b"k", timestamp_ms=1_000_000)
    assert rows(reader_of(topic.options, StructType().add("offset", "long").add("key", "binary"))) == [(0, b"k")]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_every_codec_are_read_with_their_headers(make_topic: MakeTopic, codec: str) -> None:
    topic = make_topic()
    producer = Producer(quiet(topic.cluster.bootstrap, compression_type=codec, linger_ms=50))
    for number in range(500):
        producer.produce(topic.name, b"%d" % number * 50, headers=[("n", b"%d" % number), ("n", None)])
    assert producer.flush(20) == 0
    schema = StructType().add("value", "binary").add("headers", TYPES["headers"])
    found = rows(reader_of(topic.options, schema))
    assert [value for value, _ in found] == [b"%d" % number * 50 for number in range(500)]
    assert found[7][1] == [{"key": "n", "value": b"7"}, {"key": "n", "value": None}]


def test_a_column_that_no_topic_has_is_refused(make_topic: MakeTopic) -> None:
    source = source_of(make_topic().options)
    with pytest.raises(BadOption) as refused:
        source.reader(schema=StructType().add("offest", "long"))
    assert "a topic has no column 'offest'" in refused.value.problem
    with pytest.raises(BadOption) as refused:
        source.streamReader(schema=StructType().add("value", "string"))
    assert "is binary, and not string" in refused.value.problem


def test_what_comes_after_load_is_not_read(make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    topic.write(1)
    reader = reader_of(topic.options)
    topic.write(2)
    topic.write(3, partition=1)
    assert len(rows(reader)) == 1


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("endingOffsets", '{"TOPIC": {"0": -1, "1": 1}}'),
        ("endingTimestamp", "9999999"),
        ("endingOffsetsByTimestamp", '{"TOPIC": {"0": 9999999, "1": 9999999}}'),
    ],
)
def test_an_end_that_is_open_is_the_one_at_load_however_it_is_said(
    make_topic: MakeTopic, option: str, value: str
) -> None:
    topic = make_topic(2)
    topic.write(1, timestamp_ms=1_000_000)
    topic.write(2, partition=1, timestamp_ms=1_000_000)
    schema = StructType().add("partition", "integer").add("value", "binary")
    reader = reader_of({**topic.options, option: value.replace("TOPIC", topic.name)}, schema)
    topic.write(3, timestamp_ms=1_000_000)
    topic.write(4, partition=1, timestamp_ms=1_000_000)
    assert rows(reader) == [(0, b"1"), (1, b"2")]


def test_an_offset_that_is_named_is_the_end_though_the_log_did_not_reach_it_at_load(make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    topic.write(1)
    reader = reader_of({**topic.options, "endingOffsets": json.dumps({topic.name: {"0": 2, "1": -1}})})
    with pytest.raises(DataLoss):
        reader.partitions()
    topic.write(2, 3)
    assert len(rows(reader)) == 2


def test_a_cluster_that_does_not_report_the_ends_at_load_is_an_error_then() -> None:
    """Later actions would each read to another end."""
    with Partition() as broker:
        broker.answers[2] = lambda session, request: refusal(request, ErrorCode.LEADER_NOT_AVAILABLE)
        options = {"kafka.bootstrap.servers": f"127.0.0.1:{broker.port}", "subscribe": "t"}
        with pytest.raises(TimedOut, match="LEADER_NOT_AVAILABLE"):
            DefaultSource(options={**options, "kafka.default.api.timeout.ms": "200"})
        broker.is_there = False
        assert DefaultSource(options=options).ends is None  # who reads it says so, or writes to it


def refusal(request: ListOffsetsRequest, code: ErrorCode) -> ListOffsetsResponse:
    row = ListOffsetsPartitionResponse(partition_index=0, error_code=code)
    return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name=request.topics[0].name, partitions=(row,)),))


def test_a_topic_created_anew_since_load_is_another_one(make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic.write(1)
    reader = reader_of(topic.options)
    topic.recreate()
    topic.write(1, 2)
    with pytest.raises(DataLoss) as lost:
        reader.partitions()
    assert "created anew since load()" in lost.value.problem


def test_edges_by_offsets_by_timestamps_and_by_one_timestamp(make_topic: MakeTopic) -> None:
    topic = make_topic()
    for value in range(10):
        topic.write(value, timestamp_ms=1_000_000 + value * 1000)
    name = topic.name

    def at(**options: Any) -> list[int]:
        texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in options.items()}
        return values({**topic.options, **texts})

    assert at(startingOffsets={name: {"0": 7}}) == [7, 8, 9]
    assert at(startingOffsets={name: {"0": -2}}, endingOffsets={name: {"0": 2}}) == [0, 1]
    assert at(endingOffsets={name: {"0": -1}}) == list(range(10))
    assert at(startingOffsetsByTimestamp={name: {"0": 1_007_500}}) == [8, 9]
    assert at(startingTimestamp="1008000", startingOffsets="earliest") == [8, 9]
    assert at(endingOffsetsByTimestamp={name: {"0": 1_001_500}}) == [0, 1]
    assert at(endingTimestamp="1001000", endingOffsets="latest") == [0]
    assert at(endingTimestamp="9999999") == list(range(10))  # no record is as late: to the end
    assert at(startingTimestamp="9999999", startingOffsetsByTimestampStrategy="latest") == []
    with pytest.raises(BadOption) as refused:
        at(startingTimestamp="9999999")
    assert f"No offset matched from request of topic-partition {name}-0 and timestamp 9999999" in str(refused.value)


@pytest.mark.parametrize("name", ["startingOffsets", "endingOffsets", "startingOffsetsByTimestamp"])
def test_offsets_are_given_for_all_partitions_or_for_none(make_topic: MakeTopic, name: str) -> None:
    topic = make_topic(2)
    for numbers in ({"0": 0}, {"0": 0, "1": 0, "2": 0}):
        with pytest.raises(BadOption) as refused:
            values({**topic.options, name: json.dumps({topic.name: numbers})})
        assert "you must specify all TopicPartitions" in refused.value.problem


def test_partitions_are_assigned_by_hand(make_topic: MakeTopic) -> None:
    topic = make_topic(3)
    for partition in range(3):
        topic.write(partition, partition=partition)
    options = {"kafka.bootstrap.servers": topic.cluster.bootstrap}
    assert values({**options, "assign": json.dumps({topic.name: [0, 2]})}) == [0, 2]
    with pytest.raises(StrandlineError) as refused:
        values({**options, "assign": json.dumps({topic.name: [0, 3]})})
    assert f"{topic.name}-3 does not exist" in refused.value.problem


def test_topics_match_a_pattern_as_a_whole(make_topic: MakeTopic) -> None:
    topic, other = make_topic(), make_topic()
    topic.write(1)
    other.write(2)
    options = {"kafka.bootstrap.servers": topic.cluster.bootstrap}
    assert values({**options, "subscribePattern": f"({topic.name}|{other.name[:-1]})"}) == [1]
    assert values({**options, "subscribePattern": "nothing-.*"}) == []


def test_starting_offsets_that_retention_has_taken_are_a_loss(
    make_topic: MakeTopic, capfd: pytest.CaptureFixture[str]
) -> None:
    topic = make_topic()
    topic.write(*range(10))
    topic.delete_records(5)
    assert values(topic.options) == [5, 6, 7, 8, 9]  # earliest is what there is
    options = {**topic.options, "startingOffsets": json.dumps({topic.name: {"0": 3}})}
    with pytest.raises(DataLoss) as lost:
        values(options)
    assert f"startingOffsets for {topic.name}-0 was 3, and the partition has offsets 5 to 10" in lost.value.problem
    assert values({**options, "failOnDataLoss": "false"}) == [5, 6, 7, 8, 9]
    assert "was 3" in capfd.readouterr().err


def test_an_end_beyond_the_log_is_a_loss(make_topic: MakeTopic) -> None:
    topic = make_topic()
    topic.write(1, 2)
    with pytest.raises(DataLoss) as lost:
        values({**topic.options, "endingOffsets": json.dumps({topic.name: {"0": 5}})})
    assert "endingOffsets" in lost.value.problem


def test_filters_make_ranges_smaller_and_those_of_values_are_left(make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    topic.write(*range(10))
    topic.write(*range(10), partition=1)
    reader = reader_of(topic.options)
    by_value = EqualTo(("value",), b"x")
    filters = [EqualTo(("partition",), 1), GreaterThan(("offset",), 6), by_value]
    assert list(reader.pushFilters(filters)) == [by_value]
    (partition,) = reader.partitions()
    assert (partition.value.partition, partition.value.start, partition.value.end) == (1, 7, 10)


def test_a_reader_with_pushdown_passes_for_one_without_where_spark_has_it_switched_off(make_topic: MakeTopic) -> None:
    """Spark asks exactly this, and refuses the reader otherwise."""
    reader = reader_of(make_topic().options)
    assert getattr(reader.pushFilters, "__func__", None) is DataSourceReader.pushFilters


def test_the_stand_in_of_spark_for_no_partition_has_no_rows(make_topic: MakeTopic) -> None:
    reader = reader_of(make_topic().options)
    assert reader.partitions() == []
    assert list(reader.read(InputPartition(None))) == []


def test_a_cluster_that_is_not_there_is_an_error_at_load() -> None:
    with pytest.raises(Unreachable) as refused:
        DefaultSource(options={"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"})
    assert "127.0.0.1:1" in refused.value.problem


def test_options_that_make_sense_for_neither_are_an_error_at_load() -> None:
    with pytest.raises(BadOption):
        DefaultSource(options={"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", "minPartition": "1"})


def test_a_source_that_is_only_written_to_asks_nobody() -> None:
    assert DefaultSource(options={"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"}).ends is None
