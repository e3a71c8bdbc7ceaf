"""Recorded histories through Spark: the verdicts are those of the judge, whatever file they come in."""

import gzip
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import msgspec
import pytest
from pyspark.sql import DataFrame, SparkSession
from spark.tests.unit.histories.test_judging import expected, recorded
from tests.printed import hold
from tests.unit.history.making import KEY, OTHER
from tests.unit.history.test_random import Play

from strandline.cli.lab.sim import sim
from strandline.history.policy import Facts
from strandline_spark.cli.histories import histories as histories_command
from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.histories import job as histories
from strandline_spark.schemas import HISTORY_JUDGED, HISTORY_LINE

pytestmark = pytest.mark.long

FACTS = Facts(exceeded=(OTHER,), exceeded_ms={OTHER: 40})


def damaged(seed: int) -> Play:
    play = Play(seed, 60)
    del play.history[1::3]
    return play


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten runs, their lines in any order and in several files."""
    folder = tmp_path_factory.mktemp("histories")
    lines = []
    for seed in range(10):
        play = damaged(seed)
        lines += recorded(play.history, FACTS, play.trimmed, play.finals, f"run {seed}")
    Random(1).shuffle(lines)
    (folder / "a.jsonl").write_text("".join(lines[: len(lines) // 2]))
    (folder / "b.jsonl.gz").write_bytes(gzip.compress("".join(lines[len(lines) // 2 :]).encode()))
    return folder


def wanted() -> list[tuple[object, ...]]:
    plays = [(f"run {seed}", damaged(seed)) for seed in range(10)]
    return sorted((run, *row) for run, p in plays for row in expected(p.history, FACTS, p.trimmed, p.finals))


@pytest.fixture(scope="module")
def judged(spark: SparkSession, written: Path) -> Iterator[DataFrame]:
    with histories.kept(
        spark, histories.judged_histories(histories.history_lines(spark, [str(written)])), None
    ) as rows:
        yield rows


def found(rows: DataFrame) -> list[tuple[object, ...]]:
    assert rows.schema == HISTORY_JUDGED
    reported = [row for row in rows.collect() if row.problem is None]
    return sorted(
        (row.run, row.partition, row.name, row.text, row.tolerated or "", tuple(row.offsets))
        for row in reported
        if row.name
    )


def test_the_verdicts_are_those_of_the_judge(judged: DataFrame) -> None:
    assert found(judged) == wanted()
    assert len(wanted()) > 10


def test_parquet_with_the_same_fields_is_judged_alike(spark: SparkSession, written: Path, tmp_path: Path) -> None:
    table = tmp_path / "table"
    spark.read.schema(HISTORY_LINE).json(str(written)).write.parquet(str(table))
    assert found(histories.judged_histories(histories.history_lines(spark, [str(table)]))) == wanted()


def test_folders_in_a_folder_are_judged_too(spark: SparkSession, written: Path, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    shutil.copytree(written, tmp_path / "runs" / "of monday")
    lines = histories.history_lines(spark, [str(tmp_path / "runs")])
    assert lines.count() == histories.history_lines(spark, [str(written)]).count() > 0


def test_a_summary_counts_everything_and_shows_the_first(judged: DataFrame) -> None:
    summary = histories.summary(judged)
    hold(["pipeline", "histories", "--json"], msgspec.json.encode(summary).decode())
    assert sum(summary.violations.values()) == sum(not row[4] for row in wanted())
    assert sum(n for names in summary.tolerated.values() for n in names.values()) == sum(bool(r[4]) for r in wanted())
    assert (summary.runs, summary.keys, summary.bad_lines, summary.status) == (10, 20, 0, 2)
    assert {row["topic"] for row in summary.first} == {KEY.topic}


def test_files_that_are_not_there_or_of_two_kinds_are_refused(spark: SparkSession, written: Path) -> None:
    with pytest.raises(StrandlineError, match=r"there is no .*nowhere"):
        histories.history_lines(spark, [str(written / "nowhere")])
    with pytest.raises(StrandlineError, match="others Parquet"):
        histories.history_lines(spark, [str(written), "a.parquet"])


@pytest.mark.long
def test_the_simulators_histories_are_what_its_judge_saw(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands, from a run to the verdict; a torn line at the end makes it incomplete."""
    path, out = tmp_path / "h.jsonl", tmp_path / "findings"
    with pytest.raises(SystemExit) as ended:
        sim(seed=18, history=path)
    assert ended.value.code == 0
    with path.open("a") as file:
        file.write('{"record": "operation", "proc')
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        histories_command(str(path), out=out, json_output=True)
    assert ended.value.code == 3
    output = capsys.readouterr().out
    hold(["pipeline", "histories", "--json"], output)
    summary = json.loads(output)
    assert summary["violations"] == {}
    assert summary["bad_lines"] == 1
    assert "h.jsonl: Input data was truncated" in summary["problems"][0]["problem"]
    assert summary["operations"] > 100
    assert list(out.glob("*.parquet"))


def test_people_are_shown_the_evidence(
    spark: SparkSession, written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    html = tmp_path / "report.html"
    with pytest.raises(SystemExit) as ended:
        histories_command(str(written), html=html)
    assert ended.value.code == 2
    assert "The first of them" in html.read_text()
    printed = capsys.readouterr().out
    names = {row[2] for row in wanted() if not row[4]}
    assert any(f"{name} in orders-0 (run " in printed for name in names)
    assert "  read by c" in printed
    assert "20 keys of 10 runs" in printed
    assert "tolerated: " in printed


def test_where_there_is_nothing_nothing_is_proved(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(SystemExit) as ended:
        histories_command(str(tmp_path))
    assert ended.value.code == 3
    assert "0 keys of 0 runs" in capsys.readouterr().out


def test_a_folder_for_findings_must_be_new(spark: SparkSession, written: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        histories_command(str(written), out=tmp_path)
    assert ended.value.code == 1
