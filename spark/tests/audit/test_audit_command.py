"""`strandline pipeline audit` as a script sees it: exit status, JSON, and the page."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from spark.tests.unit.replica.logs import batches, change, checkpoint, directory, log_file, write_log
from tests.printed import hold

from strandline.cli.app import app
from strandline.log.evidence.clean_shutdown import FILE as CLEAN_SHUTDOWN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(180)
END = 40


@pytest.fixture
def nodes(tmp_path: Path) -> list[Path]:
    """The log directories of two brokers that were stopped; one partition, of which both have the same."""
    made = []
    for node in (1, 2):
        path = directory(tmp_path, node)
        write_log(path, "t-0", batches(0, END // 4))
        for file in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
            checkpoint(path, file, {"t-0": END})
        (path / CLEAN_SHUTDOWN).write_text("")
        made.append(path)
    return made


def audited(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[object, dict[str, Any]]:
    """The process's exit status, and what it printed."""
    with pytest.raises(SystemExit) as ended:
        app(["pipeline", "audit", *map(str, arguments), "--json"])
    output = capsys.readouterr().out
    hold(["pipeline", "audit", "--json"], output)
    return ended.value.code, json.loads(output)


@pytest.mark.long  # an audit for each exit status
def test_scripts_see_by_the_exit_status_what_was_found(
    spark: "SparkSession", nodes: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    acks = tmp_path / "acknowledged.jsonl"
    acks.write_text("".join(json.dumps({"topic": "t", "partition": 0, "offset": at}) + "\n" for at in range(END)))
    status, report = audited(capsys, *nodes, "--acknowledged", acks)
    assert (status, report["status"], report["findings"]) == (0, "clean", [])
    assert (report["totals"]["replicas"], report["totals"]["records"], report["acknowledged"]) == (2, 2 * END, END)

    change(log_file(nodes[1] / "t-0"), 200, b"!")  # within the first batch, whose offsets are 0 to 3
    html = tmp_path / "audit.html"
    status, report = audited(capsys, *nodes, "--html", html)
    assert (status, report["status"], report["counts"]["crc"]) == (2, "findings", 1)
    found = next(row for row in report["findings"] if row["rule"] == "crc")
    assert (found["broker"], found["topic"], found["partition"], found["offset"], found["end"]) == (2, "t", 0, 0, 4)
    assert found["what"] in html.read_text()


@pytest.mark.long
def test_a_file_that_the_disk_does_not_give_is_named_and_all_else_is_judged(
    spark: "SparkSession", nodes: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for node in nodes:
        write_log(node, "u-0", batches(0, END // 4))
    lost = log_file(nodes[1] / "u-0")
    lost.unlink()
    (lost / "in its place").mkdir(parents=True)  # can be opened, and not read
    index = nodes[0] / "u-0" / f"{0:020d}.index"
    index.unlink()
    index.symlink_to(index.name)
    change(log_file(nodes[0] / "t-0"), 200, b"!")
    status, report = audited(capsys, *nodes, tmp_path / "node3", "--topic", "t", "u", "tt")
    assert (status, report["status"]) == (3, "incomplete")
    assert report["verdict"].endswith("; incomplete: 4 could not be read")
    assert (report["counts"]["crc"], report["totals"]["replicas"]) == (1, 2)
    assert sorted(report["unread"]) == [
        f"{tmp_path}/node3: there is no such directory",
        "topic tt: no log directory has a replica of it",
        f"u-0 in {nodes[0]} of broker 1: {index}: Too many levels of symbolic links",
        f"u-0 in {nodes[1]} of broker 2: {lost}: Is a directory",
    ]


def test_no_findings_to_show_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit status would say that there are none."""
    with pytest.raises(SystemExit) as ended:
        app(["pipeline", "audit", str(tmp_path), "--limit", "0"])
    assert ended.value.code == 2
    assert "--limit must be at least 1, not 0" in capsys.readouterr().err


def test_what_cannot_be_audited_at_all_is_said_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        app(["pipeline", "audit"])
    assert ended.value.code == 2
    assert "name the log directories of all nodes, or --bootstrap-server" in capsys.readouterr().err
