"""The storm as a command: a short one, and one that somebody ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests.cluster.failures.test_hour import ROOT, json_of
from tests.cluster.storm.__main__ import report
from tests.cluster.storm.cluster import StormCluster, is_crash

pytestmark = pytest.mark.cluster


@pytest.mark.long
def test_a_short_storm_has_no_anomaly() -> None:
    found = json_of("tests.cluster.storm", "--seed", "564", "--minutes", "0.1", "--json")
    assert found["anomalies"] == 0
    assert found["acknowledged"] > 100
    assert found["in the log"] >= found["acknowledged"]
    assert found["kills"] + found["stops"] + found["restarts"] + found["restarts of all three"] > 0


def test_a_storm_that_is_interrupted_leaves_no_process(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.cluster.storm", "--minutes", "5", "--folder", str(tmp_path)]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": paths}, stderr=subprocess.PIPE, text=True
    ) as storm:
        assert storm.stderr is not None
        assert "acknowledged" in storm.stderr.readline()  # progress
        nodes = psutil.Process(storm.pid).children()
        storm.send_signal(signal.SIGINT)
        _, said = storm.communicate(timeout=60)
    assert storm.returncode == 2, said
    assert "interrupted" in said
    assert nodes
    assert not any(node.is_running() for node in nodes)


def test_a_node_that_ends_by_itself_is_noticed(tmp_path: Path) -> None:
    cluster = StormCluster(tmp_path, 3)
    one, two, three = cluster.nodes
    for node, command in ((one, "exit 3"), (two, "kill -KILL $$"), (three, "kill -TERM $$")):
        node.folder.mkdir()
        node.log_path.write_text("2026-01-01 00:00:00.000 INFO all is well\n")
        assert cluster.why_ended(node) == "", "it never ran"
        node.process = subprocess.Popen(["sh", "-c", command])
        node.process.wait()
    assert [cluster.why_ended(node) for node in cluster.nodes] == ["node 1 ended with status 3", "", ""]
    line = "2026-01-01 00:00:00.001 ERROR the node crashed on Expired"
    two.log_path.write_text(f"{line}\n")
    assert cluster.errors() == [f"node 2: {line}"]
    assert is_crash(line)
    assert is_crash("ERROR node 2 stops: it cannot go on without this log directory: /d/t-0: Input/output error")
    assert not is_crash("ERROR the log directory /data is offline from now on: /data/t-0: Input/output error")


def test_the_verdict_is_a_line_that_names_the_seed() -> None:
    line = {"seed": 4, "acknowledged": 12, "by kind": {}}
    assert report({**line, "anomalies": 0, "examples": []}).splitlines()[-1].startswith("CLEAN")
    last = report({**line, "anomalies": 1, "examples": ["lost: p0.1 0 4"]}).splitlines()
    assert last[-2:] == ["lost: p0.1 0 4", "ANOMALIES (seed 4, 12 acknowledged)"]
