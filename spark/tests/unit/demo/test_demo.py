"""What `strandline demo pipeline` concludes from what its jobs left behind, without cluster and Spark."""

import json
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("pyarrow")

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec.structs import replace
from rich.console import Console

from strandline.cli.records.produce import acknowledgements
from strandline.testing.local_cluster import LocalCluster, StartFailed
from strandline_spark.demo import running
from strandline_spark.demo.events import KINDS, Shop, ShopWriter
from strandline_spark.demo.page import page
from strandline_spark.demo.result import Batch, Counts, DemoResult, Moment, count_events
from strandline_spark.demo.running import TOPIC, PipelineDemo
from strandline_spark.tables import manifest
from strandline_spark.tables.account import Account

CLEAN = {"status": "clean", "verdict": "no findings", "findings": [], "counts": {}}
FOUND = {
    "status": "findings",
    "verdict": "1 finding",
    "findings": [
        {"rule": "gap", "severity": "error", "topic": TOPIC, "partition": 2, "offset": 7, "end": 9, "what": "<none>"}
    ],
    "counts": {"gap": 1},
}
HEALTHY = DemoResult(
    counts=Counts(acknowledged=4, rows=3, quarantined=1, duplicates=0, missing=0, by_kind={"view": 3}),
    interruption_s=0.2,
    moments=(Moment(1.0, "node 1, a leader, is killed"),),
    written={1: 2, 2: 2},
    batches=(Batch(2.5, 3),),
    audit=CLEAN,
    audit_status=0,
)


def put(folder: Path, *places: tuple[int, int]) -> None:
    folder.mkdir(parents=True)
    columns = {"partition": [at[0] for at in places], "offset": [at[1] for at in places]}
    pq.write_table(pa.table(columns), folder / "part.parquet")


def counted(folder: Path, acknowledged: Iterable[tuple[int, int]], **places: list[tuple[int, int]]) -> Counts:
    """`places`: what lies in the table, by kind, and in quarantine: partition and offset."""
    for name, held in places.items():
        put(folder / ("shop_quarantine" if name == "quarantine" else f"shop/kind={name}"), *held)
    notes = folder / "acknowledged.jsonl"
    notes.write_text("".join(json.dumps({"partition": one, "offset": at}) + "\n" for one, at in acknowledged))
    return count_events(notes, folder / "shop", folder / "shop_quarantine")


def test_each_acknowledged_event_is_sought_in_table_and_quarantine(tmp_path: Path) -> None:
    every = [(0, 0), (0, 1), (1, 0), (1, 1)]
    found = counted(tmp_path, every, view=[(0, 0), (1, 0)], order=[(1, 1)], quarantine=[(0, 1)])
    assert (found.acknowledged, found.rows, found.quarantined) == (4, 3, 1)
    assert (found.duplicates, found.missing, found.by_kind) == (0, 0, {"order": 1, "view": 2})
    assert found.is_exactly_once
    assert replace(HEALTHY, counts=found).sentence().endswith("duplicates = 0, missing = 0")


def test_an_event_that_is_nowhere_is_missing_and_one_in_two_places_a_duplicate(tmp_path: Path) -> None:
    found = counted(tmp_path, [(0, 0), (0, 1), (0, 2)], view=[(0, 0), (0, 1)], quarantine=[(0, 1)])
    assert (found.duplicates, found.missing) == (1, 1)
    assert not found.is_exactly_once
    assert replace(HEALTHY, counts=found).sentence().endswith("duplicates = 1, missing = 1")


def test_a_batch_whose_line_is_being_written_does_not_count(tmp_path: Path) -> None:
    demo = PipelineDemo(LocalCluster(tmp_path / "none", 1), tmp_path, Console(quiet=True), 5, 1, 1)
    assert demo.batches() == []
    path = tmp_path / "shop" / manifest.FOLDER / manifest.NAME
    path.parent.mkdir(parents=True)
    lines = [manifest.Begun("shop", 0, []), manifest.Committed("shop", 0, 1500, [], Account(rows=7))]
    whole = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    path.write_bytes(whole + whole[:9])
    assert demo.batches() == [Batch(1.5, 7)]


@pytest.mark.parametrize(
    ("changes", "expected", "holds"),
    [
        ({}, "Every acknowledged event is in the table or in quarantine, once.", True),
        ({"missing": 2}, "2 events are missing, 0 are there twice.", False),
        ({"duplicates": 3}, "0 events are missing, 3 are there twice.", False),
        ({"acknowledged": 0}, "No event was acknowledged", False),
        ({"audit": FOUND, "audit_status": 2}, "The table is whole, but the audit is not clean.", False),
    ],
)
def test_the_page_says_what_holds_and_what_the_audit_found(changes: dict[str, Any], expected: str, holds: bool) -> None:
    counts = {name: value for name, value in changes.items() if not name.startswith("audit")}
    others = {name: value for name, value in changes.items() if name.startswith("audit")}
    result = replace(HEALTHY, counts=replace(HEALTHY.counts, **counts), **others)
    assert result.holds == holds
    html = page(result, 4000)
    assert expected in html
    assert f"The audit of all replicas: {result.audit['verdict']}." in html
    assert ("&lt;none&gt;" in html) == (result.audit is FOUND)
    assert "node 1, a leader, is killed" in html


def test_events_are_those_of_a_shop_and_a_few_are_spoilt() -> None:
    spoilt = 0
    for key, value in islice(Shop(1).events(), 10_000):
        try:
            event = json.loads(value)
        except ValueError:
            spoilt += 1
            continue
        assert event["kind"] in KINDS
        assert int(key) == event["user_id"]
        spoilt += not isinstance(event["quantity"], int)
    assert 0 < spoilt < 20


class Slow(PipelineDemo):
    """Ingest takes its time until the first batch is there."""

    looks = 0

    def batches(self) -> list[Batch]:
        self.looks += 1
        return [Batch(1.0, 5)] if self.looks > 50 else []


def test_the_writer_makes_no_more_events_while_ingest_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "LOOK_S", 0.0)
    demo = Slow(LocalCluster(tmp_path / "none", 1), tmp_path, Console(quiet=True), 5, 1000, 1)
    with acknowledgements(str(tmp_path / "noted.jsonl")) as noted, sleeping() as ingest:
        writer = ShopWriter("127.0.0.1:1", TOPIC, 1000, noted)
        writer.last_s = 1.0
        demo.wait_for_ingest(writer, ingest)
        assert (demo.looks, len(writer.producer), writer.last_s) == (51, 0, 0.0)


def test_an_ingest_that_ends_by_itself_ends_the_demonstration(tmp_path: Path) -> None:
    (tmp_path / "ingest.log").write_text("no Java here")
    demo = PipelineDemo(LocalCluster(tmp_path / "none", 1), tmp_path, Console(quiet=True), 5, 1000, 1)
    with sleeping() as ingest, acknowledgements(str(tmp_path / "noted.jsonl")) as noted:
        ingest.kill()
        ingest.wait()
        with pytest.raises(StartFailed, match="ended by itself; its output:\nno Java here"):
            demo.wait_for_ingest(ShopWriter("127.0.0.1:1", TOPIC, 1000, noted), ingest)


def test_a_job_is_waited_for_as_long_as_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "REPORT_S", 0.001)
    demo = PipelineDemo(LocalCluster(tmp_path / "none", 1), tmp_path, Console(quiet=True), 5, 1000, 1)
    looks: list[int] = []
    with sleeping() as job:

        def progress() -> str:
            looks.append(1)
            if len(looks) == 20:
                job.kill()
            return "it goes on"

        assert demo.wait_for(job, progress) == -signal.SIGKILL
    assert len(looks) >= 20


@contextmanager
def sleeping() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()
