"""Lag, throughput, latency and skew through Spark."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from strandline.pipeline.errors import PipelineError
from strandline.pipeline.jobs.lag import lag
from strandline.pipeline.lag import transforms
from strandline.pipeline.lag.frames import frame_of, read_samples
from strandline.pipeline.lag.samples import Ends, Sample, append, sampled
from strandline.pipeline.schemas import LAG_SAMPLE

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


def test_positions_beside_ends_make_lag_and_who_committed_nothing_has_none(spark: "SparkSession") -> None:
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
    with pytest.raises(PipelineError, match="there is no"):
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
