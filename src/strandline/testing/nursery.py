"""Nodes as forks of one process that has imported everything: `python -m strandline.testing.nursery`.

A node spends most of its start on imports. The nursery does them once, while a cluster is laid out, and each node is a
fork of it: a process of its own as any other, that starts in a fraction of the time and shares the code's memory.

The process that wants nodes holds one end of a socket, on which lines of JSON go both ways: what to start, the pid of
each node, and the status with which it ended. When it closes, the nursery ends; nodes end by their lifeline.
"""

import atexit
import contextlib
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from strandline.server import lifeline

READ_BYTES = 1 << 16
LOOKS_S = 0.1  # how often whether the nursery still runs


# --- for the process that wants nodes


class ForkedNode:
    """What `subprocess.Popen` is for other processes, as far as it is used for nodes."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.changed = threading.Condition()

    def ended(self, status: int) -> None:
        with self.changed:
            self.returncode = status
            self.changed.notify_all()

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Raises subprocess.TimeoutExpired."""
        with self.changed:
            if not self.changed.wait_for(lambda: self.returncode is not None, timeout):
                raise subprocess.TimeoutExpired(f"node {self.pid}", timeout or 0.0)
            assert self.returncode is not None
            return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Nursery:
    """One for this process; it ends with it."""

    def __init__(self) -> None:
        self.line, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "strandline.testing.nursery", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                env={**os.environ, **lifeline.environment()},
                pass_fds=(theirs.fileno(), lifeline.reading_end()),
                start_new_session=True,
            )
        self.nodes: dict[int, ForkedNode] = {}
        self.starting = threading.Lock()
        self.started: Queue[ForkedNode] = Queue()
        self.is_closed = False
        threading.Thread(target=self.listen, name="nursery", daemon=True).start()
        atexit.register(self.close)

    def start(self, config: Path, log: Path, environment: Mapping[str, str]) -> ForkedNode:
        """Raises OSError if the nursery has ended."""
        asked = {"config": str(config), "log": str(log), "environment": dict(environment)}
        with self.starting:
            self.line.sendall(json.dumps(asked).encode() + b"\n")
            while True:
                try:
                    return self.started.get(timeout=LOOKS_S)
                except Empty:
                    if self.process.poll() is not None:
                        raise OSError("the process that forks nodes has ended") from None

    def listen(self) -> None:
        with contextlib.suppress(OSError), self.line.makefile("r") as lines:
            for line in lines:
                self.hear(json.loads(line))
        if not self.is_closed:
            self.abandon()

    def abandon(self) -> None:
        """Somebody has killed the nursery. Nobody would hear of the end of its nodes, so they end now."""
        for node in list(self.nodes.values()):
            node.kill()
            node.ended(-signal.SIGKILL)

    def hear(self, told: dict[str, int]) -> None:
        """A node is forked, and later has ended; its end is never heard before its start."""
        if "status" in told:
            self.nodes.pop(told["pid"]).ended(told["status"])
            return
        node = self.nodes[told["pid"]] = ForkedNode(told["pid"])
        self.started.put(node)

    def close(self) -> None:
        """Nodes that still run end by themselves, in order."""
        self.is_closed = True
        with contextlib.suppress(OSError):
            self.line.shutdown(socket.SHUT_RDWR)
        self.line.close()
        self.process.wait()


def nursery() -> Nursery:
    """That of this process; it is there once this returns, and imports for a while yet. One that was killed gets a
    successor."""
    if nursery_of(os.getpid()).process.poll() is not None:
        nursery_of.cache_clear()
    return nursery_of(os.getpid())


@cache
def nursery_of(pid: int) -> Nursery:
    """A fork of this process has its own."""
    assert pid == os.getpid()
    return Nursery()


# --- in the nursery


def raise_node(asked: dict[str, Any], line: socket.socket) -> int:
    """The status of a node that has ended. In a fork, that is all that is left to do."""
    from strandline.server.main import real_disk
    from strandline.server.node import run_node
    from strandline.testing.disk_faults import disk_of
    from strandline.testing.power_loss import DURABLE

    line.close()
    os.setsid()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.update(asked["environment"])
    output = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    return run_node(["--config", asked["config"]], disk_of if DURABLE in os.environ else real_disk)


def fork(asked: dict[str, Any], line: socket.socket) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        status = raise_node(asked, line)
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(Exception):
            sys.stderr.flush()
        os._exit(status)


def reaped() -> list[dict[str, int]]:
    """The nodes that have ended, with what `Popen.returncode` would be."""
    found = []
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            found.append({"pid": pid, "status": os.waitstatus_to_exitcode(status)})
    return found


def tell(line: socket.socket, told: dict[str, int]) -> None:
    line.sendall(json.dumps(told).encode() + b"\n")


def run(line: socket.socket) -> None:
    """Until the other end is closed."""
    alive: set[int] = set()
    try:
        raise_all(line, alive)
    finally:
        for pid in alive:  # one that a test has paused must go on, to notice that its lifeline is closed
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def raise_all(line: socket.socket, alive: set[int]) -> None:
    """`alive`: the nodes that have not ended."""
    wake, woken = socket.socketpair()
    woken.setblocking(False)
    wake.setblocking(False)
    signal.set_wakeup_fd(woken.fileno())
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    rest = b""
    while True:
        ready, _, _ = select.select([line, wake], [], [])
        if wake in ready:
            wake.recv(READ_BYTES)
            for told in reaped():
                alive.discard(told["pid"])
                tell(line, told)
        if line in ready:
            piece = line.recv(READ_BYTES)
            if not piece:
                return
            *lines, rest = (rest + piece).split(b"\n")
            for one in lines:
                pid = fork(json.loads(one), line)
                alive.add(pid)
                tell(line, {"pid": pid})


def preload() -> None:
    """What nodes import, so that they share it."""
    import strandline.server.node
    import strandline.testing.disk_faults

    assert strandline.server.node
    assert strandline.testing.disk_faults
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    preload()
    with contextlib.suppress(OSError):  # whoever wanted nodes has ended
        run(socket.socket(fileno=int(sys.argv[1])))
