"""Topics as DataFrames and streams, in a real Spark, from real nodes."""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from pyspark.errors import PySparkException
from pyspark.sql.functions import sum as sum_of
from pyspark.sql.functions import unix_micros
from pyspark.sql.types import StructType
from tests.cluster.driving import admin_of, create, leads, quiet, until

from strandline.testing.local_cluster import LocalCluster
from strandline_spark.errors import sentence_of
from strandline_spark.schemas import TOPIC_ROW, TOPIC_ROW_WITH_HEADERS
from strandline_spark.topic.source import DefaultSource, arrow_schema
from strandline_spark.topic.stream import TopicStreamReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.streaming.query import StreamingQuery

PARTITIONS = 3


@pytest.fixture
def topic(broker: LocalCluster) -> str:
    name = f"t-{uuid.uuid4().hex[:10]}"
    create(broker, name, PARTITIONS)
    return name


@pytest.fixture
def write(broker: LocalCluster, topic: str) -> Callable[..., None]:
    """So many records, one after another in the partitions; values go on from `first`."""

    def produce(count: int, first: int = 0, timestamp_ms: int = 0) -> None:
        producer = Producer(quiet(broker.bootstrap))
        for number in range(first, first + count):
            headers = [("n", b"%d" % number), ("none", None)]
            producer.produce(
                topic, b"%d" % number, b"k%d" % number, number % PARTITIONS, timestamp=timestamp_ms, headers=headers
            )
        assert producer.flush(20) == 0

    return produce


@pytest.fixture
def load(spark: "SparkSession", broker: LocalCluster, topic: str) -> Callable[..., "DataFrame"]:
    def read(schema: str | None = None, **options: Any) -> "DataFrame":
        reader = spark.read.format("strandline").option("kafka.bootstrap.servers", broker.bootstrap)
        if schema:
            reader = reader.schema(schema)
        return reader.options(**{"subscribe": topic, **options}).load()

    return read


class Streaming:
    """Runs of one query: its checkpoint and what its batches brought."""

    def __init__(self, spark: "SparkSession", broker: LocalCluster, topic: str, folder: Path) -> None:
        self.spark, self.broker, self.topic = spark, broker, topic
        self.checkpoint = folder / "checkpoint"
        self.batches: list[list[int]] = []
        self.lag: list[int] = []

    def run(self, **options: Any) -> "list[list[int]]":
        """The values of each batch of a run with Trigger.AvailableNow. Raises what ended it."""
        self.batches.clear()
        query = self.start(**options)
        query.awaitTermination(100)
        assert not query.isActive
        self.progress = query.recentProgress
        return self.batches

    def start(self, **options: Any) -> "StreamingQuery":
        frame = (
            self.spark.readStream.format("strandline")
            .option("kafka.bootstrap.servers", self.broker.bootstrap)
            .options(**{"subscribe": self.topic, "startingOffsets": "earliest", **options})
            .load()
        )
        writer = frame.writeStream.option("checkpointLocation", str(self.checkpoint)).foreachBatch(self.take)
        return writer.trigger(availableNow=True).start()

    def take(self, frame: "DataFrame", number: int) -> None:
        self.batches.append(sorted(int(row.value) for row in frame.select("value").collect()))

    def lose_last_commit(self) -> None:
        """As a crash between the sink's work and Spark's note of it."""
        commits = [path for path in (self.checkpoint / "commits").iterdir() if path.name.isdigit()]
        last = max(commits, key=lambda path: int(path.name))
        last.unlink()
        with suppress(FileNotFoundError):
            last.with_name(f".{last.name}.crc").unlink()


@pytest.fixture
def streaming(spark: "SparkSession", broker: LocalCluster, topic: str, tmp_path: Path) -> Iterator[Streaming]:
    yield Streaming(spark, broker, topic, tmp_path)
    for query in spark.streams.active:
        query.stop()


# --- batches


def test_a_topic_is_read_without_registration_with_the_connectors_columns(
    load: Callable[..., "DataFrame"], write: Callable[..., None], topic: str
) -> None:
    write(30, timestamp_ms=1_700_000_000_123)
    frame = load()
    assert frame.schema == TOPIC_ROW
    row = frame.where("value = '4'").withColumn("us", unix_micros("timestamp")).first()
    assert row is not None
    assert (row.key, row.topic, row.partition, row.offset, row.timestampType) == (b"k4", topic, 1, 1, 0)
    assert row.us == 1_700_000_000_123_000
    assert frame.count() == 30


def test_headers_are_there_if_they_are_asked_for(load: Callable[..., "DataFrame"], write: Callable[..., None]) -> None:
    write(3)
    frame = load(includeHeaders=True)
    assert frame.schema == TOPIC_ROW_WITH_HEADERS
    row = frame.where("value = '2'").first()
    assert row is not None
    assert [(header.key, header.value) for header in row.headers] == [("n", b"2"), ("none", None)]


def test_only_the_columns_of_a_given_schema_are_read(
    load: Callable[..., "DataFrame"], write: Callable[..., None]
) -> None:
    write(10)
    frame = load("offset long, key binary")
    assert frame.columns == ["offset", "key"]
    assert frame.agg(sum_of("offset")).collect()[0][0] == 0 + 1 + 2 + 3 + 0 + 1 + 2 + 0 + 1 + 2
    with pytest.raises(PySparkException) as refused:
        load("offset string").count()
    assert "the column 'offset' of a topic is bigint, and not string" in sentence_of(refused.value).problem


def test_two_actions_on_one_frame_see_the_same_records(
    load: Callable[..., "DataFrame"], write: Callable[..., None]
) -> None:
    write(10)
    frame = load()
    write(5, first=10)
    assert (frame.count(), frame.count(), load().count()) == (10, 10, 15)


def test_filters_on_partition_offset_and_timestamp_reach_the_source(
    load: Callable[..., "DataFrame"], write: Callable[..., None]
) -> None:
    write(30, timestamp_ms=1_000_000)
    write(30, first=30, timestamp_ms=2_000_000)
    one = load().where("partition = 1 and offset >= 3 and offset < 7")
    assert one.rdd.getNumPartitions() == 1
    assert sorted(row.offset for row in one.collect()) == [3, 4, 5, 6]
    late = load().where("timestamp > timestamp_millis(1000000) and partition in (0, 2) and topic != 'x'")
    assert sorted(int(row.value) for row in late.collect()) == [n for n in range(30, 60) if n % 3 != 1]
    assert load().where("value = '7' or partition = 0").count() == 21


def test_the_same_filters_are_spark_s_where_it_has_pushdown_switched_off(
    spark: "SparkSession", load: Callable[..., "DataFrame"], write: Callable[..., None]
) -> None:
    """As it is by default: a reader that takes filters would be refused."""
    write(30)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        one = load().where("partition = 1 and offset >= 3 and offset < 7")
        assert one.rdd.getNumPartitions() == PARTITIONS
        assert sorted(row.offset for row in one.collect()) == [3, 4, 5, 6]
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")


def test_ranges_are_bounded_by_offsets_and_cut_into_tasks(
    load: Callable[..., "DataFrame"], write: Callable[..., None], topic: str
) -> None:
    write(60)
    starting = json.dumps({topic: {"0": 18, "1": -2, "2": 20}})
    ending = json.dumps({topic: {"0": -1, "1": 13, "2": -1}})
    frame = load(startingOffsets=starting, endingOffsets=ending, minPartitions=8)
    assert frame.rdd.getNumPartitions() == 8
    assert frame.count() == 2 + 13


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"startingOffset": "earliest"}, "there is no option"),
        ({"subscribe": "nowhere"}, "nowhere does not exist in this cluster"),
        ({"kafka.auto.offset.reset": "earliest"}, "auto.offset.reset"),
    ],
)
def test_invalid_input_is_rejected_in_one_sentence(
    load: Callable[..., "DataFrame"], options: dict[str, str], words: str
) -> None:
    with pytest.raises(PySparkException) as refused:
        load(**options).count()
    assert words in sentence_of(refused.value).problem


def test_an_empty_topic_has_no_rows(load: Callable[..., "DataFrame"]) -> None:
    assert load().count() == 0
    assert load(minPartitions=10).collect() == []


def test_sql_reads_a_topic(spark: "SparkSession", broker: LocalCluster, write: Callable[..., None], topic: str) -> None:
    write(9)
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW events USING strandline "
        f"OPTIONS (`kafka.bootstrap.servers` '{broker.bootstrap}', subscribe '{topic}')"
    )
    assert spark.sql("SELECT count(*) FROM events WHERE partition = 2").collect()[0][0] == 3


# --- streams


def flat(batches: list[list[int]]) -> list[int]:
    return [value for batch in batches for value in batch]


def test_a_stream_reads_in_batches_of_a_limit_reports_its_lag_and_repeats_a_batch_whose_commit_is_lost(
    streaming: Streaming, write: Callable[..., None], topic: str
) -> None:
    write(30)
    batches = [batch for batch in streaming.run(maxOffsetsPerTrigger=12) if batch]
    assert [len(batch) for batch in batches] == [12, 12, 6]
    first = next(each for each in streaming.progress if each["numInputRows"])["sources"][0]

    def offsets(of: Any) -> int:
        tree = json.loads(of) if isinstance(of, str) else of
        return sum(position["offset"] for position in tree["topics"][topic]["partitions"].values())

    assert (offsets(first["endOffset"]), offsets(first["latestOffset"])) == (12, 30)
    last = batches[-1]
    write(30, first=30)
    streaming.lose_last_commit()
    batches = streaming.run()
    assert batches[0] == last
    assert sorted(flat(batches[1:])) == list(range(30, 60))


def test_trap_1_a_first_batch_that_is_repeated_begins_where_it_began(
    streaming: Streaming, write: Callable[..., None]
) -> None:
    write(10)
    assert flat(streaming.run(startingOffsets="latest")) == []
    write(10, first=10)
    streaming.lose_last_commit()
    assert sorted(flat(streaming.run(startingOffsets="latest"))) == list(range(10, 20))


def test_a_topic_created_anew_ends_the_stream_with_a_sentence(
    streaming: Streaming, write: Callable[..., None], broker: LocalCluster, topic: str
) -> None:
    write(3)
    streaming.run()
    admin = admin_of(broker)
    for future in admin.delete_topics([topic], operation_timeout=10).values():
        future.result(15)
    until(lambda: not leads(broker, topic))
    create(broker, topic, PARTITIONS)
    write(30)
    with pytest.raises(PySparkException) as lost:
        streaming.run()
    sentence = sentence_of(lost.value)
    assert "was deleted and created anew" in sentence.problem
    assert "failOnDataLoss" in sentence.advice
    assert sorted(flat(streaming.run(failOnDataLoss=False))) == list(range(30))


def test_a_leader_that_dies_while_a_stream_reads_costs_no_record(spark: "SparkSession", tmp_path: Path) -> None:
    with LocalCluster(tmp_path / "cluster", 3) as cluster:
        create(cluster, "t")
        producer = Producer(quiet(cluster.bootstrap))
        for number in range(40):
            producer.produce("t", b"%d" % number)
        assert producer.flush(20) == 0
        streaming = Streaming(spark, cluster, "t", tmp_path)
        taken = streaming.take

        def take(frame: "DataFrame", number: int) -> None:
            if number == 1:
                cluster.node(leads(cluster, "t")).kill()  # planned with this leader, read from the next one
            taken(frame, number)

        streaming.take = take  # type: ignore[method-assign]
        assert flat(streaming.run(maxOffsetsPerTrigger=15)) == list(range(40))


class CountedReader(TopicStreamReader):
    def latestOffset(self, start: dict[str, Any], limit: "ReadLimit") -> dict[str, Any]:  # noqa: N802
        with open(self.config.client_id, "a") as calls:
            calls.write(".")
        return super().latestOffset(start, limit)


class Counted(DefaultSource):
    """The topic source, but each question of Spark leaves a mark in a file."""

    @classmethod
    def name(cls) -> str:
        return "counted"

    def streamReader(self, schema: StructType) -> CountedReader:  # noqa: N802
        return CountedReader(self.options, arrow_schema(schema))


@pytest.mark.long
def test_an_idle_stream_asks_a_few_times_a_second(
    spark: "SparkSession", broker: LocalCluster, topic: str, tmp_path: Path, write: Callable[..., None]
) -> None:
    """Without a trigger interval Spark asks as fast as it is answered: by itself nearly a hundred times."""
    write(3)
    calls = tmp_path / "calls"
    spark.dataSource.register(Counted)
    options = {"subscribe": topic, "startingOffsets": "earliest", "kafka.client.id": str(calls)}
    frame = spark.readStream.format("counted").option("kafka.bootstrap.servers", broker.bootstrap).options(**options)
    writer = frame.load().writeStream.format("noop").option("checkpointLocation", str(tmp_path / "idle"))
    query = writer.start()
    try:
        until(lambda: any(each["numInputRows"] for each in query.recentProgress), 60)
        before, began = calls.stat().st_size, time.monotonic()
        until(lambda: calls.stat().st_size >= before + 5, 30)
        assert time.monotonic() - began > 1
    finally:
        query.stop()
