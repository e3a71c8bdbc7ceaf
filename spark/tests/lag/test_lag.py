"""Lag, throughput, latency and skew through Spark."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cluster.client_topics import batch_of, config_of, create_topic
from tests.printed import hold

from strandline.client.cluster import Cluster
from strandline.testing.local_cluster import LocalCluster
from strandline_spark.cli import app
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.lag import transforms
from strandline_spark.jobs.lag.frames import frame_of, read_samples
from strandline_spark.jobs.lag.job import lag
from strandline_spark.jobs.lag.listener import LagListener
from strandline_spark.jobs.lag.page import lag_page
from strandline_spark.jobs.lag.samples import Ends, Sample, append, read, sampled
from strandline_spark.jobs.lag.sampling import Sampler
from strandline_spark.schemas import LAG_SAMPLE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def rows(frame: "DataFrame") -> list[dict[str, object]]:
    return [row.asDict() for row in frame.collect()]


def falling_behind() -> list[Sample]:
    """Group g reads half of what is written to partition 0 and all of partition 1; then it catches up a little."""
    made = []
    for second, end, position in [(0, 100, 100), (1, 300, 200), (2, 500, 300), (3, 500, 450)]:
        made.append(sampled(1000 * second, "group", "g", "t", 0, Ends(0, end), position))
        made.append(sampled(1000 * second, "group", "g", "t", 1, Ends(0, 10 * second), 10 * second))
        made.append(sampled(1000 * second, "topic", "", "t", 0, Ends(0, end), None))
        made.append(sampled(1000 * second, "topic", "", "t", 1, Ends(0, 10 * second), None))
    return made


def test_positions_beside_ends_make_lag_and_a_group_without_commits_has_none(spark: "SparkSession") -> None:
    positions = spark.createDataFrame(
        [("g", "t", 0, 40), ("g", "t", 1, None), ("g", "t", 2, 5), ("g", "gone", 0, 1)],
        "reader string, topic string, partition int, position long",
    )
    ends = spark.createDataFrame(
        [("t", 0, 0, 100), ("t", 1, 0, 100), ("t", 2, 10, 30)],
        "topic string, partition int, log_start_offset long, end_offset long",
    )
    found = {
        (r["topic"], r["partition"]): (r["lag"], r["expired"])
        for r in rows(transforms.lag_by_partition(positions, ends))
    }
    assert found == {("t", 0): (60, 0), ("t", 1): (None, None), ("t", 2): (20, 5), ("gone", 0): (None, None)}


def test_a_reader_that_falls_behind_shows_over_time_in_rates_and_in_the_summary(spark: "SparkSession") -> None:
    found = lag(frame_of(spark, falling_behind()))
    over_time = [r["lag"] for r in rows(found["over_time"]) if r["kind"] == "group"]
    assert over_time == [0, 100, 200, 50]
    throughput = [(r["written_per_s"], r["read_per_s"]) for r in rows(found["throughput"]) if r["kind"] == "group"]
    assert throughput == [(None, None), (210.0, 110.0), (210.0, 110.0), (10.0, 160.0)]
    group, topic = rows(found["summary"])
    assert (group["reader"], group["lag"], group["lag_worst"], group["partitions"], group["samples"]) == (
        "g",
        50,
        200,
        2,
        4,
    )
    assert group["catch_up_s"] is None, "over the whole time its lag has grown"
    assert (topic["kind"], topic["lag"]) == ("topic", None)
    skew = {r["kind"]: r for r in rows(found["skew"])}
    assert (skew["topic"]["total"], skew["topic"]["largest_partition"]) == (530, 0)
    assert skew["topic"]["ratio"] == pytest.approx(500 / 265)
    assert skew["group"]["ratio"] == 2.0, "all of the lag lies in one of two partitions"


def test_a_reader_that_catches_up_is_given_the_time_that_it_will_take(spark: "SparkSession") -> None:
    samples = [sampled(1000 * at, "group", "g", "t", 0, Ends(0, 100), 10 * at) for at in range(5)]
    [row] = rows(lag(frame_of(spark, samples))["summary"])
    assert row["catch_up_s"] == pytest.approx(6.0)


def test_samples_from_files_are_those_that_were_appended(spark: "SparkSession", tmp_path: Path) -> None:
    path = tmp_path / "lag.jsonl"
    append(path, falling_behind())
    with path.open("ab") as file:
        file.write(b'{"time_ms":')
    read = read_samples(spark, str(path))
    assert read.schema.fieldNames() == LAG_SAMPLE.fieldNames()
    assert sorted(map(str, rows(read))) == sorted(map(str, rows(frame_of(spark, falling_behind()))))
    with pytest.raises(StrandlineError, match="there is no"):
        read_samples(spark, str(tmp_path / "other.jsonl"))


def test_throughput_latency_and_skew_of_records(spark: "SparkSession") -> None:
    def at(ms: int) -> datetime:
        return datetime.fromtimestamp(ms / 1000, UTC)

    written = [
        ("t", p, at(ms), at(ms + took), b"k", b"v" * 9)
        for p, ms, took in [(0, 100, 5), (0, 200, 10), (0, 900, 15), (1, 2100, 1000)]
    ]
    frame = spark.createDataFrame(
        written, "topic string, partition int, timestamp timestamp, stored timestamp, key binary, value binary"
    )
    speed = rows(transforms.record_throughput(frame))
    assert [(r["records"], r["bytes"], r["records_per_s"]) for r in speed] == [(3, 30, 3.0), (1, 10, 1.0)]
    [took] = rows(transforms.latency(frame, "timestamp", "stored", by=("topic",)))
    assert (took["records"], took["p50_ms"], took["p99_ms"], took["max_ms"]) == (4, 10, 1000, 1000)
    [skew] = rows(transforms.record_skew(frame))
    assert (skew["total"], skew["largest"], skew["ratio"]) == (4, 3, 1.5)


def test_at_the_end_each_reader_has_the_samples_of_its_last_time(spark: "SparkSession") -> None:
    left = [sampled(1000, "group", "left", "t", at, Ends(0, 100), position) for at, position in ((0, 40), (1, None))]
    found = transforms.last_of(frame_of(spark, [*falling_behind(), *left]))
    assert found.columns == LAG_SAMPLE.fieldNames()
    assert {(r["reader"], r["partition"], r["position"]) for r in rows(found) if r["kind"] == "group"} == {
        ("g", 0, 450),
        ("g", 1, 30),
        ("left", 0, 40),
        ("left", 1, None),
    }


def test_long_records_are_thinned_and_keep_their_last_sample(spark: "SparkSession") -> None:
    samples = [sampled(100 * at, "group", "g", "t", 0, Ends(0, 10_000), at) for at in range(500)]
    thin = transforms.thinned(frame_of(spark, samples), times=50)
    positions = sorted(row["position"] for row in rows(thin))
    assert 45 <= len(positions) <= 50
    assert positions[-1] == 499
    assert transforms.thinned(frame_of(spark, samples[:5]), times=50).count() == 5


@pytest.mark.long
def test_the_page_names_readers_that_do_not_catch_up_and_what_was_lost(spark: "SparkSession") -> None:
    html = lag_page(lag(frame_of(spark, falling_behind())))
    assert "1 of 1 readers do not catch up" in html
    assert html.count("<figure") == 5
    lost = [sampled(1000, "group", "late", "t", 0, Ends(50, 90), 20)]
    assert "30 records were deleted before they were read" in lag_page(lag(frame_of(spark, lost)))
    nobody = [sampled(1000, "topic", "", "t<", 0, Ends(0, 90), None)]
    assert "there are no readers" in lag_page(lag(frame_of(spark, nobody)))


def test_a_streaming_query_is_followed_by_a_listener_by_its_checkpoint_and_by_a_group(
    spark: "SparkSession", broker: LocalCluster, tmp_path: Path
) -> None:
    topic, file, checkpoint = create_topic(broker.bootstrap, 2), tmp_path / "lag.jsonl", str(tmp_path / "c")
    with Cluster(config_of(broker.bootstrap)) as client:
        for partition, count in ((0, 30), (1, 10)):
            client.produce(topic, partition, bytes(batch_of([b"v"] * count)))
        listener = LagListener(broker.bootstrap, file=str(file), group="progress-of-{query}")
        spark.streams.addListener(listener)
        try:
            stream = spark.readStream.format("strandline").option("kafka.bootstrap.servers", broker.bootstrap)
            source = stream.option("subscribe", topic).option("startingOffsets", "earliest").load()
            sink = source.writeStream.format("noop").queryName("counted").option("checkpointLocation", checkpoint)
            query = sink.trigger(availableNow=True).start()
            assert query.awaitTermination(100)
            until = time.monotonic() + 30
            while not client.offset_fetch("progress-of-counted") and time.monotonic() < until:
                time.sleep(0.1)
        finally:
            spark.streams.removeListener(listener)
        committed = {at: row.offset for at, row in client.offset_fetch("progress-of-counted").items()}
        assert committed == {(topic, 0): 30, (topic, 1): 10}
        assert listener.failure is None
        assert {(s.reader, s.partition, s.position, s.lag) for s in read(file)} >= {
            ("counted", 0, 30, 0),
            ("counted", 1, 10, 0),
        }
        client.produce(topic, 1, bytes(batch_of([b"v"] * 7)))
        samples = Sampler(client, queries={"counted": checkpoint}).sample()
    assert {s.partition: s.lag for s in samples if s.kind == "query"} == {0: 0, 1: 7}


def test_the_command_reports_on_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], spark: "SparkSession"
) -> None:
    file, page = tmp_path / "lag.jsonl", tmp_path / "lag.html"
    append(file, falling_behind())
    with pytest.raises(SystemExit) as ended:
        app(["lag", "--from", str(file), "--html", str(page), "--json", "--max-lag", "49"])
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert "group g is 50 records behind in topic 't': more than 49" in printed.err
    hold(["pipeline", "lag", "--json"], printed.out)
    report = json.loads(printed.out)
    assert {row["kind"]: row["lag"] for row in report["summary"]} == {"group": 50, "topic": None}
    assert page.read_text().startswith("<!")
