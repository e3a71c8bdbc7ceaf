"""docs/pipeline.md runs from top to bottom: its commands, its code, and what it says that they print."""

import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from strandline.cli.app import app
from strandline.testing.local_cluster import LocalCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "pipeline.md"
FENCE = re.compile(r"^```(?P<kind>\w*) ?(?P<more>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
BOOTSTRAP = "127.0.0.1:9092"


class Piece(NamedTuple):
    line: int
    kind: str
    more: str
    text: str


def pieces(text: str) -> Iterator[Piece]:
    for found in FENCE.finditer(text):
        yield Piece(text.count("\n", 0, found.start()) + 1, found["kind"], found["more"], found["text"])


@pytest.mark.long
def test_the_tutorial_does_what_it_says(
    spark: "SparkSession", broker: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STRANDLINE_BOOTSTRAP", broker.bootstrap)
    names: dict[str, Any] = {}
    printed, ran = "", {"sh": 0, "python": 0, "text": 0, "toml": 0}
    page = PAGE.read_text().replace(BOOTSTRAP, broker.bootstrap)
    for folder in (
        "checkpoints/",
        "tables/",
        "history.jsonl",
    ):  # relative to where the JVM was started
        page = page.replace(folder, f"{tmp_path}/{folder}")
    for piece in pieces(page):
        where = f"line {piece.line}"
        output = StringIO()
        match piece.kind:
            case "python":
                with redirect_stdout(output):
                    exec(compile(piece.text, f"{PAGE.name}, {where}", "exec"), names)
                printed = output.getvalue()
            case "sh":
                for command in piece.text.splitlines():
                    with redirect_stdout(output):
                        run(command, where)
                printed = output.getvalue()
            case "text":
                assert printed == piece.text, where
            case "toml":
                (tmp_path / piece.more.removeprefix("file=")).write_text(piece.text)
            case _:
                continue
        ran[piece.kind] += 1
    assert min(ran.values()) > 0, ran
    assert (tmp_path / "audit.html").exists()
    assert spark.sparkContext._jsc is not None, "the commands have ended the session that they found"


def run(command: str, where: str) -> None:
    program, *arguments = shlex.split(command)
    assert program == "strandline", where
    try:
        status = app(arguments, result_action="return_value", exit_on_error=False)
    except SystemExit as ended:
        status = ended.code
    assert status in (None, 0), f"{where}: {command} ended with {status}"
