"""The sink as Spark runs it: a batch query and a stream."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cluster.client_topics import consumed, create_topic

from strandline.testing.local_cluster import LocalCluster
from strandline_spark.errors import sentence_of

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
    with pytest.raises(Exception) as caught:
        rows.write.format("strandline").options(**options, deliveryGuarantee="exactly-once").mode("append").save()
    assert sentence_of(caught.value).problem.startswith("deliveryGuarantee=exactly-once: this sink does not write")
