"""Campaigns of the simulator through Spark, and what a killed one leaves behind."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from pyspark.sql import SparkSession
from tests.printed import hold

from strandline_spark.cli.simulate import simulate as command
from strandline_spark.errors import StrandlineError, sentence_of
from strandline_spark.jobs.simulate import job as simulate
from strandline_spark.jobs.simulate import store
from strandline_spark.jobs.simulate.code import code_version
from strandline_spark.jobs.simulate.definition import FIRST, Block, Campaign
from strandline_spark.jobs.simulate.engine import on_this_machine, run_campaign
from strandline_spark.jobs.simulate.frames import coverage, differences, failures
from strandline_spark.schemas import SEED

SEEDS = range(18, 20)
CAMPAIGN = Campaign(code_version())
COMMAND = [sys.executable, "-m", "strandline", "pipeline", "simulate"]


@pytest.mark.long
def test_spark_and_this_machine_come_to_the_same(spark: SparkSession, tmp_path: Path) -> None:
    once = structs.replace(CAMPAIGN, again_per_10000=0)
    here = run_campaign(once, SEEDS, tmp_path / "here", on_this_machine(2), 1)
    there = run_campaign(CAMPAIGN, SEEDS, tmp_path / "there", simulate.on_spark(spark), 1)
    assert there.status == 0
    assert (there.seeds, there.again) == (2, 1)
    assert (there.seen, there.coverage, there.events) == (here.seen, here.coverage, here.events)
    names = ["seed", "run", "verdict", "digest", "virtual_ms", "events"]
    rows = [
        sorted(row for row in simulate.rows(spark, folder).select(*names).collect() if row.run == FIRST)
        for folder in (tmp_path / "here", tmp_path / "there")
    ]
    assert rows[0] == rows[1]
    struck = {row.kind: (row.seeds, row.strikes) for row in there.coverage if row.strikes}
    asked = coverage(simulate.rows(spark, tmp_path / "there")).collect()
    assert {row.kind: (row.seeds, row.strikes) for row in asked} == struck


def test_rows_of_seeds_need_no_folder_and_failures_bring_their_commands(spark: SparkSession) -> None:
    planted = Campaign(code_version(), prepare="tests.planted:votes-twice")
    rows = simulate.seed_rows(simulate.seed_blocks(spark, range(5, 6), again_per_10000=0), planted)
    assert rows.schema == SEED
    [failed] = failures(rows).collect()
    assert (failed.seed, failed.verdict, failed.check) == (5, "failed", "AssertionError")
    assert failed.replay == "python -m tests.planted votes-twice --seed 5"


def test_seeds_that_differ_are_found_among_rows(spark: SparkSession) -> None:
    def row(seed: int, run: str, digest: str, verdict: str = "ok") -> tuple[object, ...]:
        return (seed, run, verdict, "", "", "", digest, 1, 2, 3, 4, 0, "code", "here:1", {}, {})

    rows = [row(1, "first", "a"), row(1, "again", "a"), row(2, "first", "b"), row(2, "again", "c")]
    rows += [row(3, "first", "d"), row(3, "again", "", "timed out"), row(4, "first", "e")]
    found = differences(spark.createDataFrame(rows, SEED)).collect()
    assert [tuple(row) for row in found] == [(2, "b", "c")]


def test_a_worker_with_other_code_stops_the_job_and_says_so(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="other") as raised:
        run_campaign(Campaign("other"), range(1, 2), tmp_path, simulate.on_spark(spark), 1)
    sentence = sentence_of(raised.value)
    assert isinstance(sentence, StrandlineError)
    assert sentence.problem.endswith(f"has the code {code_version()}, and this campaign has other")
    assert "same version on all machines" in sentence.advice


# --- the command


def ended(status: int, **options: Any) -> None:
    with pytest.raises(SystemExit) as left:
        command(**options)
    assert left.value.code == status


@pytest.mark.long
def test_a_killed_campaign_goes_on_with_the_blocks_that_are_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "campaign"
    arguments = ["--seeds", "17..19", "--engine", "local", "--jobs", "1", "--block", "1", "--again", "0"]
    first = subprocess.Popen([*COMMAND, *arguments, "--out", str(folder)])
    while not store.done(folder):
        assert first.poll() is None
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)
    first.wait()
    done = store.done(folder)
    assert 1 <= len(done) < 3
    written = {block: store.path_of(folder, block).stat().st_mtime_ns for block in done}
    ended(0, seeds="17..19", engine="local", jobs=1, block=1, again=0, out=folder, json_output=True)
    output = capsys.readouterr().out
    hold(["pipeline", "simulate", "--json"], output)
    printed = json.loads(output)
    assert (printed["seeds"], printed["ok"], printed["is_complete"]) == (3, 3, True)
    assert {block: store.path_of(folder, block).stat().st_mtime_ns for block in done} == written
    assert store.done(folder) == [Block(FIRST, seed, seed) for seed in range(17, 20)]


def test_a_failing_seed_is_exit_status_2_and_other_options_in_its_folder_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, html = tmp_path / "campaign", tmp_path / "report.html"
    ended(2, seeds="5", engine="local", out=out, again=0, prepare="tests.planted:votes-twice", html=html)
    printed = capsys.readouterr().out
    assert "seed 5: failed: AssertionError\n    python -m tests.planted votes-twice --seed 5\n" in printed
    assert "seeds 5..5: 0 ok, 1 failed" in printed
    assert "python -m tests.planted votes-twice --seed 5" in html.read_text()
    ended(1, seeds="5", engine="local", out=out, again=0)
    refused = capsys.readouterr().err
    assert "a campaign of another kind (prepare: tests.planted:votes-twice, and now none)" in refused
    assert "name another folder with --out" in refused


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"seeds": "9..1"}, "--seeds must be FIRST..LAST"),
        ({"seeds": "1..2", "prepare": "nonsense"}, "--prepare must be MODULE:NAME"),
        ({"seeds": "1..2", "again": 101}, "--again must be a percentage"),
        ({"seeds": "1..2", "limit": 0}, "--limit must be more than 0 seconds"),
        ({"seeds": "1..2", "block": 0}, "--block must be at least 1"),
    ],
)
def test_invalid_input_is_reported_before_anything_runs(
    options: dict[str, Any], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ended(2, out=Path("/nowhere/at/all"), **options)
    assert problem in capsys.readouterr().err
