"""Forks of a process that has imported everything: they are processes as any other, and their ends are heard."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from strandline.testing.nursery import ForkedNode, Nursery


@pytest.fixture
def own() -> Iterator[Nursery]:
    with closing(Nursery()) as found:
        yield found


def ended(node: ForkedNode) -> int:
    assert node.wait(60) == node.poll() == node.returncode
    assert node.returncode is not None
    return node.returncode


def test_a_node_that_cannot_start_says_why_in_its_log_and_its_status_is_heard(own: Nursery, tmp_path: Path) -> None:
    node = own.start(tmp_path / "none.properties", tmp_path / "node.log", {})
    assert ended(node) == 2
    assert (tmp_path / "node.log").read_text() == f"cannot read {tmp_path}/none.properties: No such file or directory\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "kill", lambda *_: pytest.fail("another process may have the pid by now"))
        node.kill()


def test_a_node_that_is_killed_has_the_signals_number_as_popen_has_it(own: Nursery, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config")  # it waits for somebody to write
    node = own.start(tmp_path / "config", tmp_path / "node.log", {})
    with pytest.raises(subprocess.TimeoutExpired):
        node.wait(0.05)
    assert node.poll() is None
    node.send_signal(signal.SIGTERM)
    assert ended(node) == -signal.SIGTERM


def test_a_nursery_that_has_ended_starts_nothing(own: Nursery, tmp_path: Path) -> None:
    own.process.kill()
    own.process.wait()
    with pytest.raises(OSError):
        own.start(tmp_path / "c", tmp_path / "l", {})


def test_nodes_of_a_nursery_that_was_killed_end_with_it_and_are_not_waited_for(own: Nursery, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config")  # it waits for somebody to write
    node = own.start(tmp_path / "config", tmp_path / "node.log", {})
    own.process.kill()
    assert ended(node) == -signal.SIGKILL


def test_a_paused_node_goes_on_when_nobody_is_left_who_could_end_its_pause(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config")  # it waits for somebody to write
    with closing(Nursery()) as own:
        pid = own.start(tmp_path / "config", tmp_path / "node.log", {}).pid
        os.kill(pid, signal.SIGSTOP)
        while state_of(pid) != "T":
            time.sleep(0.001)
    try:
        assert state_of(pid) != "T"
    finally:
        os.kill(pid, signal.SIGKILL)


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_nursery_that_was_killed_has_a_successor() -> None:
    script = """
from strandline.testing.nursery import nursery
first = nursery()
first.process.kill()
first.process.wait()
print(nursery() is nursery() is not first, nursery().process.poll())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "None"]


def test_a_nursery_ends_with_the_process_that_wanted_it() -> None:
    script = "from strandline.testing.nursery import nursery; print(nursery().process.pid)"
    pid = int(subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_fork_has_the_environment_and_the_session_that_it_was_asked_for(tmp_path: Path) -> None:
    """In a process of its own, since a fork of this one would have pytest's threads."""
    script = f"""
import os, json, socket, strandline.server.node, strandline.testing.nursery as nursery
def run_node(arguments, disk_of):
    print(json.dumps([arguments, os.environ["MARK"], os.getsid(0) == os.getpid()]), flush=True)
    raise ValueError("broken")
strandline.server.node.run_node = run_node
ours, theirs = socket.socketpair()
pid = nursery.fork({{"config": "c", "log": {str(tmp_path / "log")!r}, "environment": {{"MARK": "x"}}}}, theirs)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), os.environ.get("MARK"))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "None"]
    first, *rest = (tmp_path / "log").read_text().splitlines()
    assert json.loads(first) == [["--config", "c"], "x", True]
    assert rest[-1] == "ValueError: broken"
