"""A node as a process: start, signals, exit status."""

import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from strandline.server.lifeline import LIFELINE
from strandline.server.main import CANNOT_START, INTERRUPTED
from strandline.server.pump import CRASHED
from strandline.server.storage.lock import Holder, holder_of

pytestmark = pytest.mark.slow  # node processes

# A node that halts only on the order that it is given: at shutdown ("polite"), never ("stubborn"), or it crashes.
PROGRAM = """
import sys
from strandline.base.effects import Halt, Report
from strandline.base.time import NEVER
from strandline.broker.config import NodeConfig
from strandline.server.lifeline import LIFELINE
from strandline.server.storage.lock import Holder, holder_of
from strandline.server.main import serve

class Lonely:
    def start(self, now):
        return [Report("info", "started")]
    def step(self, event, now):
        return []
    def deadline(self):
        return NEVER
    def expire(self, now):
        return []
    def shutdown(self, now):
        if sys.argv[1] == "crash":
            raise RuntimeError("cannot even stop")
        return [Halt("asked to", 0)] if sys.argv[1] == "polite" else [Report("info", "never")]

sys.exit(serve(NodeConfig.from_properties({
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://:0,CONTROLLER://127.0.0.1:0",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@127.0.0.1:1",
    "log.dirs": sys.argv[2],
    "cluster.secret.required": "false",  # the nodes here are none
    **({"strandline.metrics.listener": sys.argv[3]} if len(sys.argv) > 3 else {}),
}), lambda config, disk, rng, where, secret: Lonely()))
"""


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts processes that share a log directory; none outlives its test."""
    with ExitStack() as running:

        def start_one(order: str, *more: str) -> "subprocess.Popen[str]":
            command = [sys.executable, "-c", PROGRAM, order, str(tmp_path), *more]
            process = running.enter_context(subprocess.Popen(command, stderr=subprocess.PIPE, text=True, bufsize=1))
            running.callback(process.kill)
            return process

        yield start_one


def read_until(process: "subprocess.Popen[str]", text: str) -> str:
    assert process.stderr is not None
    seen = ""
    for line in process.stderr:
        seen += line
        if text in line:
            return seen
    raise AssertionError(f"{text!r} was not said, but:\n{seen}")


def finish(process: "subprocess.Popen[str]") -> tuple[int, str]:
    _, rest = process.communicate(timeout=20)
    return process.returncode, rest


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_shuts_down_in_order(start: Start, number: signal.Signals) -> None:
    process = start("polite")
    said = read_until(process, "listens on PLAINTEXT://127.0.0.1:")
    assert said.index("started") < said.index("listens on"), "nobody is let in before the node has started"
    read_until(process, "CONTROLLER")
    process.send_signal(number)
    status, rest = finish(process)
    assert status == 0
    assert "stops: asked to" in rest


def test_the_second_signal_stops_at_once(start: Start) -> None:
    process = start("stubborn")
    read_until(process, "CONTROLLER")
    process.send_signal(signal.SIGTERM)
    read_until(process, "never")
    process.send_signal(signal.SIGTERM)
    assert finish(process)[0] == INTERRUPTED


def test_a_crash_is_an_exit_status_and_a_report(start: Start) -> None:
    process = start("crash")
    read_until(process, "CONTROLLER")
    process.send_signal(signal.SIGTERM)
    status, rest = finish(process)
    assert status == CRASHED
    assert "RuntimeError: cannot even stop" in rest


def test_a_second_process_on_the_same_log_directory_does_not_start(start: Start) -> None:
    first = start("polite")
    read_until(first, "CONTROLLER")
    status, rest = finish(start("polite"))
    assert status == CANNOT_START
    assert "another process uses this log directory" in rest
    first.send_signal(signal.SIGTERM)
    assert finish(first)[0] == 0


def test_a_node_whose_metrics_port_is_taken_says_so_and_does_not_start(start: Start) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        status, rest = finish(start("polite", f":{port}"))
    assert status == CANNOT_START
    assert f"cannot serve metrics on 127.0.0.1:{port}: Address already in use" in rest


def test_a_node_may_open_as_many_files_as_the_system_lets_it(start: Start) -> None:
    """Every log has one open; a shell's soft limit is for shells."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 256), hard))
    try:
        process = start("polite")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    read_until(process, "started")
    assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == (hard, hard)


@pytest.mark.parametrize(("order", "status"), [("polite", 0), ("stubborn", INTERRUPTED)])
def test_a_node_shuts_down_when_the_process_that_started_it_is_gone(tmp_path: Path, order: str, status: int) -> None:
    reading, writing = os.pipe()
    command = [sys.executable, "-c", PROGRAM, order, str(tmp_path)]
    environment = {**os.environ, LIFELINE: f"{reading} 77"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stderr=pipe, text=True, bufsize=1, env=environment, pass_fds=[reading]) as process:
        os.close(reading)
        read_until(process, "listens on")
        assert holder_of(str(tmp_path)) == Holder(process.pid, 77)
        os.close(writing)
        assert "the process that started this node is gone" in read_until(process, "shuts down")
        if order == "stubborn":
            process.send_signal(signal.SIGTERM)  # counts as the second one
        assert finish(process)[0] == status
