"""`strandline up` as somebody's shell starts it, and ends it."""

import json
import re
import signal
import ssl
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit
from urllib.request import HTTPCookieProcessor, build_opener

import psutil
import pytest
from confluent_kafka import Producer
from tests.cluster.commanding import strandline

from strandline.testing.local_cluster import LocalCluster, free_ports, is_port_free

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from kafka import KafkaConsumer

pytestmark = [pytest.mark.cluster, pytest.mark.filterwarnings("ignore")]
PATIENCE_S = 120.0
NODES = 2


class Up:
    """The command, with its output in files; what it started ends with the test."""

    def __init__(self, folder: Path, port: int, *flags: str) -> None:
        self.out, self.err = folder.with_suffix(".out"), folder.with_suffix(".err")
        command = [sys.executable, "-m", "strandline", "up", "--dir", str(folder), "--port", str(port), *flags]
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(command, stdout=out, stderr=err, start_new_session=True)
        self.nodes: list[psutil.Process] = []

    def see_nodes(self, count: int = NODES) -> None:
        def are_there() -> bool:
            assert self.process.poll() is None, self.err.read_text()
            self.nodes = psutil.Process(self.process.pid).children()
            return len(self.nodes) == count

        until(are_there)

    def wait_ready(self) -> None:
        until(lambda: self.process.poll() is not None or "ready after" in self.out.read_text())
        assert self.process.poll() is None, self.err.read_text()
        self.see_nodes()

    def end(self) -> None:
        for process in self.nodes:
            if process.is_running():
                process.kill()
        self.process.kill()
        self.process.wait()


def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


def port_of_many(count: int = 3 * NODES) -> int:
    """The first of so many free ports in a row."""
    while True:
        (first,) = free_ports(1)
        if all(is_port_free(first + i) for i in range(count)):
            return first


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Callable[..., Up]]:
    with ExitStack() as running:

        def start(port: int, *flags: str) -> Up:
            one = Up(tmp_path / "cluster", port, *flags)
            running.callback(one.end)
            return one

        yield start


def test_an_interrupted_start_leaves_no_node_behind_and_prints_one_line(up: Callable[..., Up]) -> None:
    started = up(port_of_many(), "--nodes", str(NODES))
    started.see_nodes()
    started.process.send_signal(signal.SIGTERM)
    assert started.process.wait(PATIENCE_S) == 130
    assert not [node for node in started.nodes if node.is_running()]
    assert started.err.read_text() == "interrupted while the cluster started; all its nodes are stopped\n"


def test_a_second_interruption_kills_the_nodes_that_still_run(up: Callable[..., Up]) -> None:
    started = up(port_of_many(), "--nodes", str(NODES))
    started.wait_ready()
    for node in started.nodes:
        node.suspend()  # it cannot stop in order

    def is_interrupted() -> bool:
        started.process.send_signal(signal.SIGINT)
        return started.process.poll() is not None

    until(is_interrupted)
    assert started.process.returncode == 130
    assert not [node for node in started.nodes if node.is_running()]
    assert started.err.read_text() == "interrupted again: the nodes that still ran were killed\n"


def test_nodes_shut_down_when_up_is_killed_and_the_next_one_goes_on(up: Callable[..., Up], tmp_path: Path) -> None:
    port = port_of_many()
    first = up(port, "--nodes", str(NODES))
    first.wait_ready()
    first.process.kill()
    first.process.wait()
    second = up(port)  # while they still stop
    assert not psutil.wait_procs(first.nodes, PATIENCE_S)[1]
    second.wait_ready()
    assert not {node.pid for node in first.nodes} & {node.pid for node in second.nodes}
    configured = (tmp_path / "cluster" / "node-1" / "server.properties").read_text()
    assert "transaction.two.phase.commit.enable=true" in configured.splitlines(), "for Spark's exactly-once sink"
    second.process.send_signal(signal.SIGINT)
    assert second.process.wait(PATIENCE_S) == 0
    assert not [node for node in second.nodes if node.is_running()]


def test_a_node_that_was_started_by_hand_is_shown_and_left_alone(up: Callable[..., Up], tmp_path: Path) -> None:
    port = port_of_many(4)  # with the console's
    cluster = LocalCluster(tmp_path / "cluster", 1, ports=[port, port + 1], metrics_ports=[port + 2])
    cluster.lay_out()
    node = cluster.node(1)
    before = node.config_path.read_text()
    command = [sys.executable, "-m", "strandline", "node", "--config", str(node.config_path)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as by_hand:
        try:
            until(node.listens)
            started = up(port)
            until(lambda: f"node 1 running, started by hand (process {by_hand.pid})" in started.out.read_text())
            started.process.send_signal(signal.SIGTERM)
            assert started.process.wait(PATIENCE_S) == 0
            assert f"node 1 goes on: it was started by hand (process {by_hand.pid})" in started.out.read_text()
            assert by_hand.poll() is None
            refused = up(port + 1)
            assert refused.process.wait(PATIENCE_S) == 1
            assert f"(process {by_hand.pid}) and listens elsewhere, at 127.0.0.1:{port}" in refused.err.read_text()
            assert node.config_path.read_text() == before
        finally:
            by_hand.kill()


def shown_in_the_console(url: str) -> dict[str, Any]:
    """The health of the cluster, as a browser gets it that opens this address."""
    assert url.startswith(f"http://127.0.0.1:{urlsplit(url).port}/?token=")
    opener = build_opener(HTTPCookieProcessor())
    opener.open(url, timeout=PATIENCE_S).close()
    with opener.open(urljoin(url, "/api/live?channels=summary"), timeout=PATIENCE_S) as events:
        for line in events:
            event = json.loads(line.removeprefix(b"data: ")) if line.startswith(b"data: ") else {}
            if event.get("channel") == "summary" and event["rows"].get("health", {}).get("level") == "good":
                health: dict[str, Any] = event["rows"]["health"]
                return health
    raise AssertionError("the console ended")


def settings_in(printed: str, name: str) -> dict[str, Any]:
    """The Python that is printed for a client, as a user would paste it."""
    text = printed.partition(f"{name}:\n")[2]
    end = text.index("\nkcat:") if name.startswith("kafka-python") else text.index("\nkafka-python")
    found: dict[str, Any] = eval(text[:end].strip(), {"ssl": ssl})
    return found


def test_a_secured_cluster_prints_what_clients_need_and_no_password(up: Callable[..., Up], tmp_path: Path) -> None:
    port = port_of_many(4)  # with the console's
    first = up(port, "--nodes", "1", "--secure")
    until(lambda: first.process.poll() is not None or "strandline consume alice-" in first.out.read_text())
    printed, folder = first.out.read_text(), tmp_path / "cluster"
    passwords = [(folder / f"{user}.password").read_text().strip() for user in ("admin", "alice")]
    logged = printed + first.err.read_text() + (folder / "node-1" / "node.log").read_text()
    assert not [password for password in passwords if password in logged]
    producer = Producer(settings_in(printed, "confluent-kafka"))
    producer.produce("alice-greetings", b"hello")
    assert producer.flush(60) == 0
    with warnings.catch_warnings(action="ignore"):
        consumer = KafkaConsumer(
            "alice-greetings",
            auto_offset_reset="earliest",
            consumer_timeout_ms=60_000,
            **settings_in(printed, "kafka-python, aiokafka"),
        )
        assert next(consumer).value == b"hello"
        consumer.close()
    for user, names in (("admin", ["alice-greetings"]), ("alice", ["alice-greetings"])):
        done = strandline(
            *("topics", "list", "--bootstrap-server", f"127.0.0.1:{port}", "--command-config"),
            str(folder / f"{user}.properties"),
        )
        assert done.stdout.split() == names, done
    first.process.send_signal(signal.SIGINT)
    assert first.process.wait(PATIENCE_S) == 0

    again = up(port, "--console")  # it stays secure, and its users stay
    until(lambda: again.process.poll() is not None or "\nconsole: http" in again.out.read_text())
    health = shown_in_the_console(re.findall(r"\nconsole: (\S+)", again.out.read_text())[0])
    assert health["sentence"].startswith("Healthy: the broker runs")
    listed = strandline(
        *("acls", "list", "--bootstrap-server", f"127.0.0.1:{port}", "--command-config"),
        str(folder / "admin.properties"),
    )
    assert listed.stdout.count("User:alice") == 3
