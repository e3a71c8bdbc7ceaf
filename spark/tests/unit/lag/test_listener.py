"""A listener, told of progress as Spark tells it; no JVM."""

import warnings
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql.streaming.listener import QueryProgressEvent, StreamingQueryProgress
from spark.tests.unit.lag.scripted_cluster import OURS, ScriptedCluster

from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.lag.listener import LagListener
from strandline_spark.jobs.lag.samples import read


def event(batch: int, *sources: dict[str, Any], name: str | None = "etl") -> QueryProgressEvent:
    source = {
        "description": "strandline", "startOffset": "null", "numInputRows": 0, "inputRowsPerSecond": 0.0,
        "processedRowsPerSecond": 0.0, "metrics": {},
    }  # fmt: skip
    run = str(UUID(int=7))
    fields = {
        "id": run, "runId": run, "name": name, "timestamp": "2026-11-21T10:00:00.500Z", "batchId": batch,
        "batchDuration": 1, "durationMs": {}, "eventTime": {}, "stateOperators": [], "numInputRows": 0,
        "inputRowsPerSecond": 0.0, "processedRowsPerSecond": 0.0, "observedMetrics": {},
        "sources": [{**source, **each} for each in sources],
        "sink": {"description": "noop", "numOutputRows": 0, "metrics": {}},
    }  # fmt: skip
    return QueryProgressEvent(StreamingQueryProgress.fromJson(fields))


KAFKA = {"endOffset": '{"t":{"0":5,"1":7}}', "latestOffset": '{"t":{"0":15,"1":7}}'}


def test_each_progress_becomes_samples_with_the_lag_that_the_source_saw(tmp_path: Path) -> None:
    listener = LagListener(file=str(tmp_path / "lag.jsonl"))
    listener.onQueryProgress(event(3, KAFKA, {"endOffset": "17", "latestOffset": "18"}))
    assert [(s.reader, s.partition, s.position, s.lag, s.batch) for s in listener.samples] == [
        ("etl", 0, 5, 10, 3),
        ("etl", 1, 7, 0, 3),
    ]
    assert listener.samples[0].time_ms % 1000 == 500
    assert list(read(tmp_path / "lag.jsonl")) == list(listener.samples)


def test_a_query_without_a_name_is_called_by_its_id_and_one_without_topics_has_no_samples() -> None:
    listener = LagListener()
    listener.onQueryProgress(event(0, KAFKA, name=None))
    assert listener.samples[0].reader == str(UUID(int=7))
    listener.samples.clear()
    listener.onQueryProgress(event(1, {"endOffset": "17", "latestOffset": "18"}))
    assert not listener.samples


def test_a_failure_is_reported_once_and_stops_nothing(tmp_path: Path) -> None:
    listener = LagListener(file=str(tmp_path / "missing" / "lag.jsonl"))
    with pytest.warns(RuntimeWarning, match="lag of query etl is unknown"):
        listener.onQueryProgress(event(0, KAFKA))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        listener.onQueryProgress(event(1, KAFKA))
    (tmp_path / "missing").mkdir()
    listener.onQueryProgress(event(2, KAFKA))
    assert listener.failure is None
    assert len(listener.samples) == 6


def test_a_file_that_cannot_be_written_is_no_reason_not_to_commit(tmp_path: Path) -> None:
    with ScriptedCluster(t=OURS) as scripted:
        servers, file = f"127.0.0.1:{scripted.port}", tmp_path / "missing" / "lag.jsonl"
        listener = LagListener(servers, group="of-{query}", file=str(file))
        with pytest.warns(RuntimeWarning, match="No such file"):
            listener.onQueryProgress(event(0, {"endOffset": '{"t":{"0":5}}', "latestOffset": '{"t":{"0":5}}'}))
        assert scripted.positions == {"of-etl": {"t": 5}}


def test_only_the_last_samples_are_kept() -> None:
    listener = LagListener(kept=3)
    for batch in range(5):
        listener.onQueryProgress(event(batch, KAFKA))
    assert [s.batch for s in listener.samples] == [3, 4, 4]


def test_committing_needs_a_cluster() -> None:
    with pytest.raises(StrandlineError, match="cannot be committed without a cluster"):
        LagListener(group="g")
