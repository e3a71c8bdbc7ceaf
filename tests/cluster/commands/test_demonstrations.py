"""Demonstrations as somebody's shell starts them."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

PATIENCE_S = 30.0


def test_ending_a_demonstration_ends_its_nodes_too(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "strandline", "demo", "--dir", str(tmp_path / "demo")]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    nodes: list[psutil.Process] = []
    try:
        until = time.monotonic() + PATIENCE_S
        while len(nodes) < 3 and time.monotonic() < until:
            nodes = psutil.Process(running.pid).children()
            time.sleep(0.05)
        assert len(nodes) == 3
        running.send_signal(signal.SIGTERM)
        assert running.wait(PATIENCE_S) != 0
        assert psutil.wait_procs(nodes, PATIENCE_S)[1] == []
    finally:
        for process in nodes:
            if process.is_running():
                process.kill()
        running.kill()
        running.communicate()
