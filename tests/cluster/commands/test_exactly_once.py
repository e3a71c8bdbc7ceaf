"""The bank of `strandline demo exactly-once`, as somebody's shell starts it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.printed import hold

pytestmark = [pytest.mark.cluster, pytest.mark.long]
COMMAND = [sys.executable, "-m", "strandline", "demo", "exactly-once"]
PATIENCE_S = 60.0
MARK = "STRANDLINE_TEST"


def run(folder: Path, *options: str, timeout_s: float) -> dict[str, Any]:
    page = folder / "page.html"
    command = [*COMMAND, "--json", "--html", str(page), "--dir", str(folder / "nodes"), *options]
    environment = {**os.environ, MARK: str(folder)}
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=timeout_s, env=environment)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "Exactly once" in page.read_text("utf-8")
    assert started_from(folder) == []
    hold(command[3:], done.stdout)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def started_from(folder: Path) -> list[psutil.Process]:
    """Nodes and workers that still run: they inherit the environment."""
    return [one for one in psutil.process_iter() if marked(one) == str(folder)]


def marked(process: psutil.Process) -> str:
    try:
        return process.environ().get(MARK, "")
    except psutil.Error:  # it has ended, or is somebody else's
        return ""


def kinds(report: dict[str, Any]) -> list[str]:
    return [event["kind"] for event in report["events"]]


def test_each_transfer_is_booked_once_though_a_worker_and_nodes_are_killed(tmp_path: Path) -> None:
    report = run(tmp_path, "--kills", "2", "--transfers", "600", "--workers", "2", timeout_s=110)
    assert report["holds"]
    count = report["with_transactions"]
    assert (count["once"], count["transfers"], count["bookings"]) == (600, 600, 1200)
    assert count["before"] == count["after"] == 100_000
    assert (
        report["without"]["missing"] == 0
    )  # the loop is the same: what it does not know to be written it writes again
    assert kinds(report).count("kill") == 2


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_forty_kills_of_workers_leaders_and_coordinators(tmp_path: Path) -> None:
    report = run(tmp_path, "--kills", "40", timeout_s=1150)
    assert report["holds"]
    assert kinds(report).count("kill") == 40
    assert report["without"]["once"] < report["without"]["transfers"]
    print(json.dumps(report))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_whatever_ends_the_demonstration_ends_its_nodes_and_workers(tmp_path: Path, number: int) -> None:
    command = [*COMMAND, "--dir", str(tmp_path / "nodes"), "--html", str(tmp_path / "page.html"), "--workers", "1"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    started: list[psutil.Process] = []
    try:
        until = time.monotonic() + PATIENCE_S
        while len(started) < 5 and time.monotonic() < until:
            started = psutil.Process(running.pid).children()
            time.sleep(0.05)
        assert len(started) == 5
        os.kill(running.pid, number)
        assert running.wait(PATIENCE_S) != 0
        assert psutil.wait_procs(started, PATIENCE_S)[1] == []
    finally:
        for process in started:
            if process.is_running():
                process.kill()
        running.kill()
        running.communicate()
