"""What the code of commands prints with --json, made of values without Spark and nodes, is what its schema says."""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("pyspark")

from spark.tests.unit.campaign.test_report import BAD, GOOD, OTHER, summary
from spark.tests.unit.demo.test_demo import HEALTHY
from spark.tests.unit.histories.test_judging import recorded, spread
from tests.printed import command_of, hold
from tests.unit.history.test_random import Play

from strandline.history.policy import Facts
from strandline_spark.cli.emit import show as show_emitted
from strandline_spark.cli.ingest import show as show_ingested
from strandline_spark.cli.lag import show as show_samples
from strandline_spark.cli.settle import show as show_settled
from strandline_spark.cli.simulate import simulate
from strandline_spark.jobs.audit.report import AuditReport
from strandline_spark.jobs.audit.rows import plain
from strandline_spark.jobs.emit.plan import Finished, Written
from strandline_spark.jobs.histories.job import Summary
from strandline_spark.jobs.ingest.declaration import pipeline
from strandline_spark.jobs.ingest.running import IngestResult
from strandline_spark.jobs.lag.samples import Ends, sampled
from strandline_spark.sink.exactly_once.leftovers import Found, Leftover
from strandline_spark.tables.account import Account, Span

Capture = pytest.CaptureFixture[str]


def held(command: str, printed: str) -> list[Any]:
    arguments = [*command.split(), "--json"]
    assert printed
    assert command_of(arguments) == command, "nothing is held: pip install -e spark"
    hold(arguments, printed)
    return [json.loads(line) for line in printed.splitlines()]


def held_lines(command: str, printed: str) -> list[Any]:
    """Of several runs of a command that prints one document."""
    return [held(command, line)[0] for line in printed.splitlines()]


def test_ingest(capsys: Capture) -> None:
    declared = pipeline({"source": {"topic": "t", "bootstrap": "x:1"}, "sink": {"table": "/t"}})
    for filtered in (0, 1):
        spans = {"t": {0: Span(0, 9, 9), 1: Span(5, 8, 2 + filtered)}}
        done = Account(rows_in=11, rows=10, filtered=filtered, failed={"paid": 1}, spans=spans)
        show_ingested(IngestResult("id", 1, done, done, 0.5, False), declared, True)
    first, second = held_lines("pipeline ingest", capsys.readouterr().out)
    assert [each["missing"] for each in first["table"]["partitions"]] == [0, 1]
    assert [each["missing"] for each in second["table"]["partitions"]] == [None, None]


def test_emit(capsys: Capture) -> None:
    show_emitted("t", Finished(5, 1, (Written(0, 0, 2, 9, 1), Written(1, 0, 1, 9, 1), Written(1, 3, 2, 9, 1))), True)
    [printed] = held("pipeline emit", capsys.readouterr().out)
    assert printed["partitions"] == {"0": 3, "3": 2}


@pytest.mark.parametrize("is_dry", [True, False])
def test_settle(is_dry: bool, capsys: Capture) -> None:
    open_ones = [Leftover("q", f"q/{fate}", 1, 2, ("t-0",), fate) for fate in ("commit", "abort", "wait")]
    show_settled(Found(open_ones, [], []), 60_001, is_dry, True)
    show_settled(Found([], ["q"], []), 60_001, is_dry, True)
    rows, none = held_lines("pipeline settle", capsys.readouterr().out)
    assert ([row["age_min"] for row in rows], none) == ([1, 1, 1], [])


def test_lag_while_it_watches(capsys: Capture) -> None:
    read = sampled(1, "query", "q", "t", 0, Ends(2, 10), 1)
    others = [sampled(1, kind, "", "t", 0, Ends(0, 10), None) for kind in ("group", "topic")]
    for samples in ([msgspec.structs.replace(read, delay_ms=0, batch=3), *others], []):
        show_samples((), samples, None, True, is_whole=True)
    [first, second] = held("pipeline lag", capsys.readouterr().out)
    assert (first[0]["lag"], first[0]["expired"], second) == (8, 1, [])
    assert "lag" not in first[1]


def test_simulate(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[simulate.__module__], "run", lambda *_: summary(OTHER, GOOD, BAD))
    with pytest.raises(SystemExit):
        simulate(seeds="1..9", engine="local", out=tmp_path, json_output=True)
    [printed] = held("pipeline simulate", capsys.readouterr().out)
    assert (printed["failed"], len(printed["failures"]), len(printed["differences"])) == (1, 1, 1)


def test_histories() -> None:
    play = Play(3, 60)
    del play.history[1::3]
    rows = spread([*recorded(play.history, Facts(), play.trimmed, play.finals), '{"record": "operation", "proc'])
    first, problems = (
        tuple(msgspec.structs.asdict(row) for row in rows if getattr(row, name)) for name in ("name", "problem")
    )
    assert first
    assert problems
    found = Summary(1, 2, 9, 5, 4, {"lost": 1}, {"why": {"gap": 2}}, first, problems, bad_lines=1)
    held("pipeline histories", msgspec.json.encode(found).decode())


def test_audit_and_the_demonstration_that_ends_with_it() -> None:
    place = (1, "/1", "t", "id", 0)
    findings = (plain("gap", "what", place, 7, 9), plain("gap", "what", place, 7, 9, is_several=True))
    totals = dict.fromkeys(("replicas", "partitions", "brokers", "bytes", "batches", "records"), 1)
    for acknowledged in (None, 4):
        report = AuditReport(findings, {"gap": 2}, (), totals, ("disk",), (), acknowledged)
        held("pipeline audit", json.dumps(report.as_json()))
        shown = msgspec.structs.replace(HEALTHY, audit=report.as_json())
        held("demo pipeline", json.dumps(shown.as_json()))
