"""`strandline pipeline audit` as a script sees it: exit status, JSON, and the page."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.unit.pipeline.replica.logs import batches, change, checkpoint, directory, log_file, write_log

from strandline.cli.commands import app
from strandline.log.clean_shutdown import FILE as CLEAN_SHUTDOWN

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
    return ended.value.code, json.loads(capsys.readouterr().out)


def test_scripts_see_by_the_exit_status_what_was_found(
    spark: "SparkSession", nodes: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    acks = tmp_path / "acknowledged.jsonl"
    acks.write_text("".join(json.dumps({"topic": "t", "partition": 0, "offset": at}) + "\n" for at in range(END)))
    status, told = audited(capsys, *nodes, "--acknowledged", acks)
    assert (status, told["status"], told["findings"]) == (0, "clean", [])
    assert (told["totals"]["replicas"], told["totals"]["records"], told["acknowledged"]) == (2, 2 * END, END)

    change(log_file(nodes[1] / "t-0"), 200, b"!")  # within the first batch, whose offsets are 0 to 3
    html = tmp_path / "audit.html"
    status, told = audited(capsys, *nodes, "--html", html)
    assert (status, told["status"]) == (2, "findings")
    found = next(row for row in told["findings"] if row["rule"] == "crc")
    assert (found["broker"], found["topic"], found["partition"], found["offset"], found["end"]) == (2, "t", 0, 0, 4)
    assert found["what"] in html.read_text()

    status, told = audited(capsys, *nodes, tmp_path / "node3")
    assert (status, told["status"]) == (3, "incomplete")
    assert told["unread"] == [f"{tmp_path}/node3: there is no such directory"]
    assert told["counts"]["crc"] == 1


def test_what_cannot_be_audited_at_all_is_said_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        app(["pipeline", "audit"])
    assert ended.value.code == 2
    assert "name the log directories of all nodes, or --bootstrap-server" in capsys.readouterr().err
