"""Arrow batches into topics of real nodes, read back by librdkafka; without Spark."""

from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType
from tests.cluster.client_topics import config_of, consumed, create_topic

from strandline.base.errors import ErrorCode
from strandline.client.cluster import Cluster
from strandline.client.errors import KafkaError, ProduceFailed, Unreachable
from strandline.testing.local_cluster import LocalCluster
from strandline_spark.errors import BadOption, BadRow
from strandline_spark.schemas import TYPES
from strandline_spark.sink.options import SinkOptions
from strandline_spark.sink.twin import murmur2
from strandline_spark.sink.writer import batch_writer, stream_writer
from strandline_spark.sink.writing import Reached, Writing

pytestmark = pytest.mark.timeout(120)


def table(**columns: Any) -> pa.RecordBatch:
    kinds = {"partition": pa.int32(), "topic": pa.string(), "key": pa.binary(), "value": pa.binary()}
    return pa.RecordBatch.from_pydict({name: pa.array(rows, kinds[name]) for name, rows in columns.items()})


def written(nodes: LocalCluster, topic: str | None, *batches: pa.RecordBatch, **options: str) -> list[Reached]:
    with (
        Cluster(config_of(nodes.bootstrap, **options)) as cluster,
        Writing(cluster, batches[0].schema.names, topic, " of task 3") as writing,
    ):
        for batch in batches:
            writing.write(batch)
        return writing.finish()


def values_in(nodes: LocalCluster, topic: str, partition: int = 0) -> list[bytes | None]:
    return [message.value() for message in consumed(nodes.bootstrap, topic, partition)]


def test_keyed_rows_go_by_their_hash_and_keep_their_order(broker: LocalCluster) -> None:
    topic = create_topic(broker.bootstrap, 3)
    keys = [b"%d" % (i % 7) for i in range(100)]
    records = written(broker, topic, table(key=keys, value=[b"%d" % i for i in range(100)]))
    assert sum(row.records for row in records) == 100
    for partition in range(3):
        mine = [b"%d" % i for i in range(100) if (murmur2(keys[i]) & 0x7FFFFFFF) % 3 == partition]
        assert values_in(broker, topic, partition) == mine


def test_rows_without_keys_fill_one_batch_after_another(broker: LocalCluster) -> None:
    topic = create_topic(broker.bootstrap, 4)
    rows = [b"%04d" % i for i in range(2000)]
    records = written(broker, topic, table(value=rows[:1000]), table(value=rows[1000:]), batch_size="1000")
    found = [values_in(broker, topic, partition) for partition in range(4)]
    assert sorted(value for part in found for value in part if value) == rows
    assert len(records) > 1
    assert {row.partition: row.last_offset + 1 for row in records} == {i: len(p) for i, p in enumerate(found) if p}


def test_rows_in_the_order_of_many_partitions_take_no_more_memory_than_others(
    broker: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partition that is done with keeps nothing of its batch's memory for ever."""
    monkeypatch.setattr("strandline_spark.sink.writing.OPEN_BYTES_MAX", 100_000)
    topic = create_topic(broker.bootstrap, 30)
    with (
        Cluster(config_of(broker.bootstrap, batch_size="20000")) as cluster,
        Writing(cluster, ["partition", "value"], topic) as writing,
    ):
        for partition in range(30):
            writing.write(table(partition=[partition] * 50, value=[b"x" * 500] * 50))
            assert sum(growing.touched for growing in writing.growing.values()) <= 120_000
        assert [row.records for row in writing.finish()] == [50] * 30


def test_given_partitions_and_several_topics(broker: LocalCluster) -> None:
    one, two = create_topic(broker.bootstrap, 2), create_topic(broker.bootstrap, 3)
    records = written(
        broker,
        None,
        table(topic=[one, two, one, two], partition=[1, 2, 0, 2], value=[b"a", b"b", None, b"d"]),
    )
    assert records == sorted([Reached(one, 0, 1, 0, 0), Reached(one, 1, 1, 0, 0), Reached(two, 2, 2, 0, 1)])
    assert values_in(broker, one, 0) == [None]
    assert values_in(broker, two, 2) == [b"b", b"d"]
    assert [r.records for r in written(broker, one, table(topic=[two], partition=[0], value=[b"o"]))] == [1]
    assert values_in(broker, one, 0) == [None, b"o"]  # the option wins


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"partition": [0, 2], "value": [b"", b""]}, r"2 is not in the range \[0...2\) of topic .* \(row 1 of task 3"),
        ({"partition": [-1], "value": [b""]}, r"-1 is not in the range \[0...2\)"),
        ({"value": [b"a", bytes(2 << 20)]}, "The message is 209....? bytes when serialized .* row 1 of task 3"),
    ],
)
def test_a_row_that_cannot_be_written_is_named(broker: LocalCluster, rows: dict[str, Any], message: str) -> None:
    topic = create_topic(broker.bootstrap, 2)
    with pytest.raises(BadRow, match=message):
        written(broker, topic, table(**rows))


def test_a_row_without_topic_is_named(broker: LocalCluster) -> None:
    with pytest.raises(BadRow, match=r"null topic present in the data.*row 1 of task 3"):
        written(broker, None, table(topic=["t", None], value=[b"", b""]))


def test_what_the_broker_finds_too_large_is_split_and_the_row_that_cannot_be_is_named(broker: LocalCluster) -> None:
    topic = create_topic(broker.bootstrap, max_message_bytes="2000")
    rows = [b"%03d" % i + bytes(500) for i in range(50)]
    written(broker, topic, table(value=rows))
    assert values_in(broker, topic) == rows
    with pytest.raises(ProduceFailed, match=r"MESSAGE_TOO_LARGE.*row 2 of task 3") as caught:
        written(broker, topic, table(value=[b"a", b"b", bytes(3000), b"d"]))
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_rows_that_the_broker_refuses_one_by_one_are_named(broker: LocalCluster) -> None:
    topic = create_topic(broker.bootstrap, cleanup_policy="compact")
    with pytest.raises(ProduceFailed, match=r"INVALID_RECORD.*row 1, 3 of task 3"):
        written(broker, topic, table(key=[b"a", None, b"c", None], value=[b"1", b"2", b"3", b"4"]))


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_rows_are_read_by_librdkafka(broker: LocalCluster, codec: str) -> None:
    topic = create_topic(broker.bootstrap)
    rows = [b"%03d" % i + bytes(100) for i in range(200)]
    written(broker, topic, table(value=rows), compression_type=codec)
    assert values_in(broker, topic) == rows


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acknowledgements(broker: LocalCluster, acks: str) -> None:
    topic = create_topic(broker.bootstrap)
    records = written(broker, topic, table(value=[b"a", b"b"]), acks=acks)
    assert [row.records for row in records] == [2]
    assert values_in(broker, topic) == [b"a", b"b"]


def test_a_topic_that_brokers_do_not_create_is_missed_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strandline_spark.sink.writing.TOPIC_WAIT_MS", 300)
    with (
        LocalCluster(tmp_path, 1, properties={"auto.create.topics.enable": "false"}) as nodes,
        pytest.raises(KafkaError, match="topic missing does not exist, and the brokers do not create it"),
    ):
        written(nodes, "missing", table(value=[b"a"]), retry_backoff_max_ms="100")
    with pytest.raises(Unreachable, match="no broker answers"):
        written(nodes, "missing", table(value=[b"a"]))


def test_a_task_that_begins_while_no_broker_is_there_waits(tmp_path: Path) -> None:
    with LocalCluster(tmp_path, 1) as nodes:
        topic = create_topic(nodes.bootstrap)
        (node,) = nodes.nodes
        node.kill()
        returns = Timer(1, node.start)
        returns.start()
        assert [(row.records, row.first_offset) for row in written(nodes, topic, table(value=[b"a"]))] == [(1, 0)]
        returns.join()


def test_nothing_is_lost_or_doubled_when_leaders_die(tmp_path: Path) -> None:
    rows = [b"%05d" % i for i in range(8000)]
    with LocalCluster(tmp_path, 3) as nodes:
        topic = create_topic(nodes.bootstrap, 2, 3)
        with (
            Cluster(config_of(nodes.bootstrap, batch_size="2000")) as cluster,
            Writing(cluster, ["partition", "value"], topic) as writing,
        ):
            leader = cluster.topics([topic])[topic].partitions[0].leader
            for start in range(0, 8000, 100):
                if start == 3000:
                    nodes.node(leader).kill()
                if start == 6000:
                    nodes.node(leader).start()
                part = rows[start : start + 100]
                writing.write(table(partition=[i % 2 for i in range(100)], value=part))
            writing.finish()
        assert values_in(nodes, topic, 0) == rows[::2]
        assert values_in(nodes, topic, 1) == rows[1::2]


# --- what is refused before anything is written


VALUE = StructField("value", StringType())
EXACTLY_ONCE = {"kafka.bootstrap.servers": "h:1", "topic": "t", "deliveryGuarantee": "exactly-once"}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([StructField("key", StringType())], "Required attribute 'value' not found"),
        ([StructField("value", IntegerType())], "value attribute type must be a STRING or BINARY, not int"),
        ([VALUE, StructField("key", LongType())], "key attribute type must be a STRING or BINARY, not bigint"),
        ([VALUE, StructField("partition", LongType())], "partition attribute type must be an INT, not bigint"),
        ([VALUE, StructField("topic", IntegerType())], "topic type must be a STRING, not int"),
        ([VALUE, StructField("headers", StringType())], "headers attribute type must be an ARRAY<STRUCT<key: STRING"),
    ],
)
def test_columns_that_are_invalid(fields: list[StructField], message: str) -> None:
    with pytest.raises(BadOption, match=message):
        SinkOptions.of({"kafka.bootstrap.servers": "h:1", "topic": "t"}, StructType(fields))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kafka.bootstrap.servers": "h:1"}, "topic option required when no 'topic' attribute is present"),
        ({"topic": "t"}, "Option 'kafka.bootstrap.servers' must be specified"),
        ({"topic": "t", "kafka.bootstrap.servers": "h:1", "deliveryGuarantee": "twice"}, "deliveryGuarantee: 'twice'"),
        (
            {"topic": "t", "kafka.bootstrap.servers": "h:1", "deliveryGuarante": "exactly-once"},
            "there is no option 'deliveryGuarante'\\n  Did you mean deliveryGuarantee",
        ),
        (EXACTLY_ONCE | {"kafka.acks": "1"}, "needs an idempotent producer, and kafka.acks=1"),
        (EXACTLY_ONCE | {"kafka.enable.idempotence": "false"}, "kafka.enable.idempotence=false"),
        (EXACTLY_ONCE | {"transactionName": "a/b"}, "option transactionName: 'a/b' is not a name"),
        (EXACTLY_ONCE | {"transactionVersion": "3"}, "option transactionVersion needs transactionName"),
        (EXACTLY_ONCE | {"transactionName": "n", "transactionVersion": "x"}, "transactionVersion must be a whole"),
        (
            {"topic": "t", "kafka.bootstrap.servers": "h:1", "transactionName": "n"},
            "option transactionName has no effect without deliveryGuarantee=exactly-once",
        ),
    ],
)
def test_options_that_are_invalid(options: dict[str, str], message: str) -> None:
    with pytest.raises(BadOption, match=message):
        SinkOptions.of(options, StructType([VALUE]))


def test_a_stream_has_no_name_but_that_in_its_checkpoint() -> None:
    with pytest.raises(BadOption, match="a streaming query has no transactionName"):
        stream_writer(EXACTLY_ONCE | {"transactionName": "n"}, StructType([VALUE]), False)


def test_a_sink_takes_what_the_topic_source_gives() -> None:
    row = StructType([VALUE, StructField("Topic", StringType()), StructField("headers", TYPES["headers"])])
    chosen = SinkOptions.of({"Kafka.Bootstrap.Servers": "h:1"}, row)
    assert chosen.topic is None
    with pytest.raises(BadOption, match="overwrite not allowed"):
        SinkOptions.of({"kafka.bootstrap.servers": "h:1"}, row, overwrite=True)


def test_a_task_writes_its_batches_and_says_how_many_rows(broker: LocalCluster) -> None:
    topic = create_topic(broker.bootstrap)
    options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic}
    writer = batch_writer(options, StructType([VALUE]), False)

    def rows() -> Iterator[pa.RecordBatch]:
        yield table(value=[])
        yield table(value=[b"a", b"b"])

    assert writer.write(rows()).reached == [Reached(topic, 0, 2, 0, 1)]
    assert writer.write(iter(())).rows == 0
    assert values_in(broker, topic) == [b"a", b"b"]
