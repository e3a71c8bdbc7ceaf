"""What commands do with bad input, and how they show records, without a cluster."""

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.printed import hold

from strandline.bench.load import Latency
from strandline.bench.usage import Usage, usage, used_between
from strandline.broker.metrics.table import METRICS
from strandline.cli.admin import metrics
from strandline.cli.records.consume import json_line, line
from strandline.cli.records.produce import split
from strandline.testing.local_cluster import LocalCluster

pytestmark = pytest.mark.slow  # a process for each command


def strandline(*arguments: str, **environment: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "strandline", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_reader_that_has_seen_enough_is_not_an_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "strandline", "sim", "--seed", "1", "--json"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


class FakeMessage:
    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 2

    def offset(self) -> int:
        return 7

    def key(self) -> bytes | None:
        return None

    def value(self) -> bytes:
        return b"v\xff"

    def timestamp(self) -> tuple[int, int]:
        return (1, 1000)


def test_a_record_is_shown_as_the_format_says() -> None:
    message: Any = FakeMessage()
    assert line(message, "%v") == b"v\xff\n"
    assert line(message, "%t-%p@%o %k=%v %T 100%") == b"t-2@7 =v\xff 1000 100%\n"


def test_a_record_as_json_is_always_text() -> None:
    message: Any = FakeMessage()
    assert b'"key": null, "value": "v\\\\xff"' in json_line(message)
    hold(["consume", "t", "--json"], json_line(message).decode())


def test_a_line_without_the_separator_ends_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert split(b"k:v:w", ":") == (b"k", b"v:w")
    assert split(b"k:v", None) == (None, b"k:v")
    with pytest.raises(SystemExit) as ended:
        split(b"kv", ":")
    assert ended.value.code == 2
    assert "no key separator" in capsys.readouterr().err


def test_percentiles_are_of_the_ordered_values() -> None:
    latency = Latency.of([0.004, 0.001, 0.002, 0.003])
    assert latency is not None
    assert latency.percentiles == (3.0, 4.0, 4.0, 4.0)
    assert Latency.of([]) is None


def test_a_local_cluster_is_laid_out_with_kafkas_property_names(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path, 3, properties={"log.segment.bytes": "1048576"})
    cluster.lay_out()
    text = cluster.node(2).config_path.read_text()
    assert "node.id=2\n" in text
    assert "log.segment.bytes=1048576\n" in text
    assert "min.insync.replicas=2\n" in text
    metas = {(tmp_path / f"node-{i}/data/meta.properties").read_text() for i in (1, 2, 3)}
    assert len(metas) == 3
    cluster.lay_out()  # again: nothing is formatted anew
    assert {(tmp_path / f"node-{i}/data/meta.properties").read_text() for i in (1, 2, 3)} == metas


def test_the_nodes_of_a_local_cluster_serve_metrics_only_where_they_are_asked_to(tmp_path: Path) -> None:
    for ports, lines in (((), 0), ((9404, 9405), 1)):
        cluster = LocalCluster(tmp_path, 2, metrics_ports=ports)
        cluster.lay_out()
        text = cluster.node(2).config_path.read_text()
        assert text.count("strandline.metrics.listener=127.0.0.1:9405\n") == lines == text.count("metrics")


def test_a_nodes_gauges_fit_on_a_line_and_in_a_table() -> None:
    rows = [{"node": 1, "partitions": 3, "under min ISR": 1}, {"node": 2}]
    assert metrics.line_of(rows[0]) == "node=1 partitions=3 under-min-ISR=1"
    assert metrics.line_of(rows[1]) == "node=2 no-metrics"
    console = Console(width=100, file=StringIO())
    console.print(metrics.table_of(rows))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert [line.split() for line in text.splitlines() if "under min ISR" in line] == [
        ["under", "min", "ISR", "1", "–"]
    ]


def test_every_column_of_the_metrics_command_is_a_metric() -> None:
    assert {name for _, name, _ in metrics.COLUMNS} <= {metric.name for metric in METRICS}


def test_format_and_node_say_what_is_wrong(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text("node.id=one\nprocess.roles=broker,controller\n")
    status, _, errors = strandline("node", "--config", str(config))
    assert status == 2
    assert "Invalid value one for configuration node.id" in errors
    status, _, errors = strandline("node", "--config", str(tmp_path / "nowhere"))
    assert (status, "cannot read" in errors) == (2, True)
    status, _, errors = strandline("format", "--config", str(config), "--cluster-id", "short")
    assert (status, "is not a cluster id" in errors) == (2, True)


def test_a_node_with_an_unformatted_directory_names_the_way_out(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@127.0.0.1:1\n"
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0\ncontroller.listener.names=CONTROLLER\n"
        f"advertised.listeners=PLAINTEXT://127.0.0.1:9092\nlog.dirs={tmp_path}/data\n"
    )
    status, _, errors = strandline("node", "--config", str(config))
    assert status == 1
    assert "format it first" in errors


def test_without_a_cluster_a_command_says_so_and_fails() -> None:
    status, output, errors = strandline("topics", "list", STRANDLINE_BOOTSTRAP="127.0.0.1:1")
    assert (status, output) == (1, "")
    assert "no cluster answers at 127.0.0.1:1" in errors


def test_what_a_process_used_is_read_behind_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "7"
    folder.mkdir()
    (folder / "stat").write_text("7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0")
    (folder / "statm").write_text("900 500 1 1 0 1 0")
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    assert usage(7, tmp_path) == Usage(7, 300 / ticks, 500 * page / 1e6)
    assert used_between(Usage(7, 1.0, 10.0), Usage(7, 3.5, 12.0)) == Usage(7, 2.5, 12.0)


@pytest.mark.parametrize(
    "arguments",
    [("up", "--nodes", "0"), ("up", "--port", "65534"), ("demo", "--rate", "0"), ("demo", "--seconds", "1")],
)
def test_numbers_that_are_invalid_are_refused_before_anything_starts(arguments: tuple[str, ...]) -> None:
    status, _, errors = strandline(*arguments)
    assert (status, errors.startswith("error: --")) == (2, True)


def test_the_demonstration_does_not_write_into_a_folder_in_use(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    status, _, errors = strandline("demo", "--dir", str(tmp_path))
    assert (status, "is not an empty folder" in errors) == (1, True)
