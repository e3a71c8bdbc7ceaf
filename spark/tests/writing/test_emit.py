"""Tables and queries into topics through Spark: what arrives, what is refused, and a command that is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from spark.tests.sources import environment
from spark.tests.writing.emit_process import run as run_lanes
from spark.tests.writing.emit_process import staged
from spark.tests.writing.emit_topics import ends, table, wait_rows
from tests.cluster.client_topics import config_of, create_topic, records_in
from tests.printed import hold

from strandline.cli.app import app
from strandline.client.cluster import Cluster
from strandline.testing.local_cluster import LocalCluster
from strandline.wire.record import Record
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.emit.job import emit
from strandline_spark.sink.twin import murmur2

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def options(cluster: LocalCluster) -> dict[str, str]:
    return {"kafka.bootstrap.servers": cluster.bootstrap}


def records(cluster: LocalCluster, topic: str) -> dict[int, list[Record]]:
    with Cluster(config_of(cluster.bootstrap)) as client:
        view = client.topics([topic])[topic]
        return {partition: records_in(client, topic, partition) for partition in sorted(view.partitions)}


def test_each_row_arrives_with_all_that_it_has(spark: "SparkSession", broker: LocalCluster, tmp_path: Path) -> None:
    topic = create_topic(broker.bootstrap, 3)
    rows = spark.sql(
        """SELECT CAST(id AS STRING) AS key, CONCAT('v', id) AS value,
                  IF(id % 2 = 0, ARRAY(STRUCT('h' AS key, CAST('x' AS BINARY) AS value)), NULL) AS headers,
                  IF(id = 7, 2, CAST(NULL AS INT)) AS partition, TIMESTAMP_MILLIS(id * 1000) AS timestamp
             FROM RANGE(0, 100, 1, 3)"""
    )
    written = emit(rows, topic=topic, checkpoint=str(tmp_path / "c"), options=options(broker))
    assert sum(row["rows"] for row in written.collect()) == 100
    found = records(broker, topic)
    assert sorted(int((r.value or b"")[1:]) for part in found.values() for r in part) == list(range(100))
    for partition, part in found.items():
        for record in part:
            assert record.key is not None
            number = int(record.key)
            by_key = (murmur2(bytes(record.key)) & 0x7FFF_FFFF) % 3
            assert partition == (2 if number == 7 else by_key)
            assert record.timestamp == number * 1000
            assert [(name, bytes(content or b"")) for name, content in record.headers] == [("h", b"x")] * (
                number % 2 == 0
            )


def test_a_run_that_has_finished_does_nothing_and_its_checkpoint_is_for_nothing_else(
    spark: "SparkSession", broker: LocalCluster, tmp_path: Path
) -> None:
    topic = create_topic(broker.bootstrap, 2)
    reported: list[str] = []

    def once(rows: Any) -> int:
        how: dict[str, Any] = {"topic": topic, "checkpoint": str(tmp_path / "c"), "options": options(broker)}
        return emit(rows, **how, notify=reported.append).count()

    first = once(spark.range(50).selectExpr("CAST(id AS STRING) AS value"))
    before = ends(broker.bootstrap, topic)
    assert once(spark.range(50).selectExpr("CAST(id AS STRING) AS value")) == first
    assert reported == ["this run has finished before, with 50 rows: there is nothing to do"]
    with pytest.raises(StrandlineError, match="belongs to a run with another source"):
        once(spark.range(51).selectExpr("CAST(id AS STRING) AS value"))
    assert ends(broker.bootstrap, topic) == before
    assert sum(before.values()) == 50


def test_rows_without_a_value_become_json_and_expressions_make_key_and_value(
    spark: "SparkSession", broker: LocalCluster, tmp_path: Path
) -> None:
    topic = create_topic(broker.bootstrap, 1)
    people = spark.createDataFrame([(1, "ann"), (2, "bob")], "id long, name string")
    emit(
        people,
        topic=topic,
        checkpoint=str(tmp_path / "a"),
        options=options(broker),
        key="CAST(id AS STRING)",
        lanes=1,
    )
    emit(people, topic=topic, checkpoint=str(tmp_path / "b"), options=options(broker), value="upper(name)", lanes=1)
    pairs = [(r.key and bytes(r.key), bytes(r.value or b"")) for r in records(broker, topic)[0]]
    assert sorted(pairs[:2]) == [(b"1", b'{"id":1,"name":"ann"}'), (b"2", b'{"id":2,"name":"bob"}')]
    assert sorted(pairs[2:]) == [(None, b"ANN"), (None, b"BOB")]


def test_what_no_topic_can_have_is_refused_before_anything_is_written(
    spark: "SparkSession", broker: LocalCluster, tmp_path: Path
) -> None:
    topic = create_topic(broker.bootstrap, 1)
    how: dict[str, Any] = {"topic": topic, "checkpoint": str(tmp_path / "c"), "options": options(broker)}
    with pytest.raises(StrandlineError, match="value attribute type must be a string or binary, and value is bigint"):
        emit(spark.range(3).selectExpr("id AS value"), **how)
    with pytest.raises(StrandlineError, match="partition attribute type must be int, and is string"):
        emit(spark.range(3).selectExpr("'a' AS value", "'b' AS partition"), **how)
    with pytest.raises(StrandlineError, match="needs acks=all"):
        emit(spark.range(3), **{**how, "options": {**options(broker), "kafka.acks": "1"}})
    with pytest.raises(StrandlineError, match="topic 'nowhere' does not exist"):
        emit(spark.range(3), **{**how, "topic": "nowhere"})
    with pytest.raises(StrandlineError, match="rows name partition 5, and the topic has the partitions 0 to 0"):
        emit(spark.range(1).selectExpr("'a' AS value", "5 AS partition"), **how)
    with pytest.raises(StrandlineError, match="a header has no key"):
        emit(spark.sql("SELECT 'a' AS value, ARRAY(STRUCT(NULL AS key, X'00' AS value)) AS headers"), **how)
    with pytest.raises(StrandlineError, match=r"the timestamp 1969-12-31 \S+ is before 1970"):
        emit(spark.sql("SELECT 'a' AS value, TIMESTAMP_MICROS(-1) AS timestamp"), **how)
    assert ends(broker.bootstrap, topic) == {0: 0}


def test_one_lane_keeps_the_order_of_a_sorted_query(
    spark: "SparkSession", broker: LocalCluster, tmp_path: Path
) -> None:
    topic = create_topic(broker.bootstrap, 1)
    rows = spark.range(0, 1000, 1, 4).selectExpr("CAST(id AS STRING) AS value").orderBy("value")
    emit(rows, topic=topic, checkpoint=str(tmp_path / "c"), options=options(broker), lanes=1)
    values = [bytes(record.value or b"") for record in records(broker, topic)[0]]
    assert values == sorted(b"%d" % number for number in range(1000))


def test_one_lane_keeps_the_order_also_where_spark_knows_where_only_later_rows_are(
    spark: "SparkSession", broker: LocalCluster, tmp_path: Path
) -> None:
    """Shuffled rows are somewhere, and those of a range nowhere: coalesce begins with those that are somewhere."""
    topic = create_topic(broker.bootstrap, 1)
    rows = spark.range(0, 100, 1, 2).union(spark.range(100, 200).repartition(2).orderBy("id"))
    values = rows.selectExpr("CAST(id AS STRING) AS value")
    emit(values, topic=topic, checkpoint=str(tmp_path / "c"), options=options(broker), lanes=1)
    assert [int(record.value or b"") for record in records(broker, topic)[0]] == list(range(200))


def test_a_checkpoint_may_have_any_name(spark: "SparkSession", broker: LocalCluster, tmp_path: Path) -> None:
    topic = create_topic(broker.bootstrap, 1)
    rows = spark.range(3).selectExpr("'v' AS value")
    emit(rows, topic=topic, checkpoint=str(tmp_path / "a b%20c [ü]"), options=options(broker))
    assert ends(broker.bootstrap, topic) == {0: 3}


def test_nothing_is_a_run_too(spark: "SparkSession", broker: LocalCluster, tmp_path: Path) -> None:
    topic = create_topic(broker.bootstrap, 1)
    assert emit(spark.range(0), topic=topic, checkpoint=str(tmp_path / "c"), options=options(broker)).count() == 0


def test_a_row_that_is_too_large_is_named_and_the_run_goes_on_when_it_may_be_larger(
    broker: LocalCluster, tmp_path: Path
) -> None:
    topic = create_topic(broker.bootstrap, 1, max_message_bytes="2000")
    lanes = [table(0, 30), table(30, 1, size=5000)]
    checkpoint = staged(tmp_path / "c", broker.bootstrap, topic, lanes)
    with pytest.raises(StrandlineError, match=f"lane 1, {topic}-0: row 0 was refused with MESSAGE_TOO_LARGE"):
        run_lanes(checkpoint, broker.bootstrap)
    assert ends(broker.bootstrap, topic) == {0: 30}
    changed = ["--entity-type", "topics", "--entity-name", topic, "--add-config", "max.message.bytes=20000"]
    app(["configs", "alter", "--bootstrap", broker.bootstrap, *changed], result_action="return_value")
    assert run_lanes(checkpoint, broker.bootstrap).rows == 31
    assert ends(broker.bootstrap, topic) == {0: 31}


def test_a_compacted_topic_takes_rows_with_keys_and_names_what_has_none(broker: LocalCluster, tmp_path: Path) -> None:
    topic = create_topic(broker.bootstrap, 1, cleanup_policy="compact")
    keyed = table(0, 40).filter(table(0, 40)["key"].is_valid())
    checkpoint = staged(tmp_path / "c", broker.bootstrap, topic, [keyed])
    plan = checkpoint.plan()
    assert plan is not None
    assert plan.compacted
    assert run_lanes(checkpoint, broker.bootstrap).rows == 30
    other = staged(tmp_path / "d", broker.bootstrap, topic, [table(0, 4)])
    with pytest.raises(StrandlineError, match="Compacted topic cannot accept message without key"):
        run_lanes(other, broker.bootstrap)


@pytest.mark.long  # the same without commands: test_emit_kills.py
@pytest.mark.timeout(400)
def test_the_command_is_killed_with_all_its_processes_and_without_them(broker: LocalCluster, tmp_path: Path) -> None:
    """First the driver alone, whose JVM and workers go on a moment; then everything at once; then it may end."""
    rows, topic = 120_000, create_topic(broker.bootstrap, 4)
    (tmp_path / "table").mkdir()
    for part in range(4):
        pq.write_table(table(part * rows // 4, rows // 4, size=600), tmp_path / "table" / f"part-{part}.parquet")
    arguments = ["--topic", topic, "--table", str(tmp_path / "table"), "--checkpoint", str(tmp_path / "c")]
    arguments += ["--bootstrap", broker.bootstrap, "--master", "local[2]", "--option", "batch.size=10000", "--json"]
    command = [sys.executable, "-m", "strandline", "pipeline", "emit", *arguments]
    written = 0
    for kill in (os.kill, os.killpg):
        with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, start_new_session=True) as process:
            try:
                written = wait_rows(broker.bootstrap, topic, written + 1000, timeout_s=150)
                kill(process.pid, signal.SIGKILL)
            finally:
                process.kill()
        assert not (tmp_path / "c" / "finished.json").exists()
    done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, check=True)
    hold(command[3:], done.stdout.decode())
    assert json.loads(done.stdout)["rows"] == rows
    time.sleep(0.5)  # what a worker that outlived its driver may still have sent
    found = records(broker, topic)
    assert sorted(int(r.value or b"") for part in found.values() for r in part) == list(range(rows))
