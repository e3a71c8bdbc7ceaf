"""The sink as Spark runs it: a batch query and a stream."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from spark.tests.sink.exactly_once import committed_values
from tests.cluster.client_topics import config_of, consumed, create_topic
from tests.cluster.driving import until

from strandline.client.cluster import Cluster
from strandline.testing.local_cluster import LocalCluster
from strandline_spark.errors import sentence_of
from strandline_spark.sink.exactly_once.journal import all_decisions
from strandline_spark.sink.exactly_once.listing import open_ids

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(180)


ROWS = (
    "CAST(id AS STRING) key",
    "to_json(struct(id)) value",
    "array(named_struct('key', 'h', 'value', X'01')) headers",
)


def test_a_batch_query_and_a_stream_write_all_rows(spark: "SparkSession", broker: LocalCluster, tmp_path: Path) -> None:
    topic = create_topic(broker.bootstrap, 2)
    options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic}
    rows = spark.range(1000).selectExpr(*ROWS)
    rows.write.format("strandline").options(**options).mode("append").save()
    found = [message for partition in range(2) for message in consumed(broker.bootstrap, topic, partition)]
    assert sorted(int(message.key()) for message in found) == list(range(1000))
    assert {tuple(message.headers()) for message in found} == {(("h", b"\x01"),)}

    rows.write.parquet(str(tmp_path / "rows"))
    stream = spark.readStream.schema(rows.schema).parquet(str(tmp_path / "rows"))
    query = (
        stream.writeStream.format("strandline")
        .options(**options, checkpointLocation=str(tmp_path / "checkpoint"))
        .queryName("copy")  # Spark hands its own options to the sink too
        .trigger(availableNow=True)
        .start(str(tmp_path / "path"))
    )
    query.awaitTermination(120)
    assert query.exception() is None
    found = [message for partition in range(2) for message in consumed(broker.bootstrap, topic, partition)]
    assert len(found) == 2000


def test_errors_are_one_sentence(spark: "SparkSession", broker: LocalCluster) -> None:
    topic = create_topic(broker.bootstrap, max_message_bytes="1000")
    options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic}
    rows = spark.range(10).selectExpr("repeat('x', IF(id = 7, 5000, 10)) value").coalesce(1)
    with pytest.raises(Exception) as caught:  # Spark's own classes differ by version
        rows.write.format("strandline").options(**options).mode("append").save()
    assert f"cannot write to {topic}-0: MESSAGE_TOO_LARGE" in sentence_of(caught.value).problem
    assert "row 7 of task 0" in sentence_of(caught.value).problem
    options["topic"] = create_topic(broker.bootstrap, max_message_bytes="1000")
    with pytest.raises(Exception) as caught:
        rows.write.format("strandline").options(**options, deliveryGuarantee="exactly-once").mode("append").save()
    assert "row 7 of task 0" in sentence_of(caught.value).problem
    assert committed_values(broker, options["topic"]) == [], "the rows before it are aborted"


def test_a_batch_query_and_a_stream_write_exactly_once_also_when_the_stream_repeats_its_last_batch(
    spark: "SparkSession", broker: LocalCluster, tmp_path: Path
) -> None:
    topic = create_topic(broker.bootstrap, 2)
    options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic, "deliveryGuarantee": "exactly-once"}
    rows = spark.range(100).repartition(3).selectExpr("CAST(id AS STRING) value")
    for _ in range(2):
        write = rows.write.format("strandline").options(**options, transactionName=topic)
        write.mode("append").save()
    assert committed_values(broker, topic, 2) == list(range(100))

    folder, checkpoint = tmp_path / "rows", tmp_path / "checkpoint"

    def run() -> None:
        stream = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder)).repartition(2)
        sink = stream.writeStream.format("strandline").options(**options, checkpointLocation=str(checkpoint))
        query = sink.trigger(availableNow=True).start()
        query.awaitTermination(120)
        assert query.exception() is None

    folder.mkdir()
    for number in range(2):
        (folder / f"{number}.txt").write_text("".join(f"{1000 + 10 * number + n}\n" for n in range(5)))
    run()
    [*_, last] = sorted((checkpoint / "commits").glob("[0-9]*"))
    last.unlink()  # as a driver that dies between the sink's commit and Spark's note of it
    last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
    (folder / "2.txt").write_text("2000\n")
    run()
    assert committed_values(broker, topic, 2) == [*range(100), *range(1000, 1005), *range(1010, 1015), 2000]
    with Cluster(config_of(broker.bootstrap)) as cluster:
        query_id = json.loads((checkpoint / "metadata").read_text())["id"]
        for name in (topic, query_id):  # other tests leave transactions open at this broker
            until(lambda name=name: open_ids(cluster, name).ids == [])  # markers are written after the answer
        assert all_decisions(cluster)[query_id].version == 2, "the query's own id is its name"
