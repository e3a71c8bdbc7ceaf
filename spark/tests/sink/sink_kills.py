"""Spark's exactly-once sink under SIGKILL: `python -m spark.tests.sink.sink_kills [--kills N] [--dir DIR]`.

A streaming query, and then batch writes, put rows into a topic of three nodes. At each moment of a task and of a
commit (`sink_kills_source` has them) workers, executors, the driver and nodes are killed, one after the other; who is
dead is started again. In the end a read_committed consumer of librdkafka must have each row exactly once, no
transaction may be open, and the last stable offset must be the high watermark. Prints a line for each kill, and the
figures; the exit status is 1 if a row is missing or there twice.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition
from spark.tests.sink.sink_kills_source import CONTROL, DRIVER, START
from spark.tests.sources import environment
from tests.cluster.client_topics import config_of, create_topic

from strandline.client.cluster import LATEST, Cluster
from strandline.testing.local_cluster import LocalCluster
from strandline_spark.sink.batches import CHOICE
from strandline_spark.sink.exactly_once.leftovers import end_all, look
from strandline_spark.sink.exactly_once.listing import open_ids

CLUSTER, LOCAL = "local-cluster[2,1,512]", "local[3,8]"  # executors are processes of their own, or the driver's
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
PROPERTIES = {"transaction.two.phase.commit.enable": "true"}
PARTITIONS = 4
FILE_ROWS = 300
PATIENCE_S = 900.0  # on a machine that has other things to do
AWAY_S = 1.5  # that a killed node is away

TASK, COMMIT = ("began", "writing", "prepared"), ("committing", "taken", "recorded", "decided", "half", "done")


class Kill(NamedTuple):
    moment: str
    victim: str


ON_CLUSTER = tuple(Kill(moment, victim) for moment in TASK for victim in ("worker", "executor", "node"))
ON_DRIVER = (
    *(Kill(moment, "driver") for moment in (*TASK, *COMMIT)),
    *(Kill(moment, "worker") for moment in ("taken", "decided", "half")),  # it runs the commit: the query fails
    *(Kill(moment, "node") for moment in ("taken", "recorded", "decided", "half")),
)
BATCH = tuple(Kill(moment, "driver") for moment in ("prepared", "decided", "half"))


class Drivers:
    """The driver's process, started again whenever it is gone."""

    def __init__(self, folder: Path, arguments: Sequence[str]) -> None:
        self.folder = folder
        self.arguments = arguments
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        self.starts += 1
        command = [sys.executable, "-m", "spark.tests.sink.sink_kills_driver", *self.arguments]
        with (self.folder / "driver.log").open("ab") as log:
            # Without numba, which each worker of Python would load for a few rows.
            quick = {"JDK_JAVA_OPTIONS": QUICK_JAVA, CHOICE: "python"}
            given = {**environment(), **quick, CONTROL: str(self.folder / "control"), START: str(self.starts)}
            self.process = subprocess.Popen(command, env=given, stdout=log, stderr=log)

    def keep_running(self) -> None:
        if not self.is_running:
            self.start()

    def kill(self) -> None:
        if self.process is not None:
            for pid in (self.folder / "control" / DRIVER).read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), 9)
            self.process.kill()
            self.process.wait()


class Ground:
    """The nodes, the folders and what has been written into them."""

    def __init__(self, nodes: LocalCluster, folder: Path) -> None:
        self.nodes = nodes
        self.folder = folder
        self.control = folder / "control"
        self.rows = folder / "rows"
        self.checkpoint = folder / "checkpoint"
        for path in (self.control, self.rows):
            path.mkdir()
        self.topic = create_topic(nodes.bootstrap, PARTITIONS, 3, min_insync_replicas="2")
        self.written = 0
        self.files = 0
        self.kills: Counter[str] = Counter()
        self.began = time.monotonic()

    def arguments(self, mode: str, master: str, rows: Path) -> list[str]:
        return [mode, master, self.nodes.bootstrap, self.topic, str(rows), str(self.checkpoint)]

    def add_file(self, folder: Path) -> None:
        """A file of rows that no other has."""
        text = "".join(f"row {number} {'x' * 60}\n" for number in range(self.written, self.written + FILE_ROWS))
        self.written += FILE_ROWS
        self.files += 1
        hidden = folder / f".{self.files:05}.txt"
        hidden.write_text(text)
        hidden.rename(folder / f"{self.files:05}.txt")

    def ask_for(self, kill: Kill, number: int, start: int) -> None:
        node = self.nodes.nodes[number % len(self.nodes.nodes)]
        text = f"node:{node.pid}" if kill.victim == "node" else kill.victim
        hidden = self.control / ".request"
        hidden.write_text(text)
        (self.control / f"{kill.moment}.hit").unlink(missing_ok=True)
        hidden.rename(self.control / f"{kill.moment}.{start}")

    def was_hit(self, kill: Kill) -> bool:
        return (self.control / f"{kill.moment}.hit").exists()

    def hit(self, kill: Kill, what: str) -> None:
        self.kills[kill.victim] += 1
        count = sum(self.kills.values())
        print(
            f"{time.monotonic() - self.began:6.1f} s  kill {count}: {kill.victim} at '{kill.moment}' ({what})",
            flush=True,
        )

    def mend(self) -> None:
        """Start nodes that are dead."""
        for node in self.nodes.nodes:
            if not node.running:
                time.sleep(AWAY_S)
                node.start()
                node.wait_listening()

    def committed_batches(self) -> int:
        """How many micro-batches Spark knows as committed."""
        folder = self.checkpoint / "commits"
        return sum(path.name.isdecimal() for path in folder.iterdir()) if folder.is_dir() else 0


def until(ground: Ground, drivers: Drivers, what: str, is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        drivers.keep_running()
        ground.mend()
        if time.monotonic() > end:
            raise SystemExit(f"not within {PATIENCE_S:.0f} s: {what}; see {ground.folder}")
        time.sleep(0.05)


def play_stream(ground: Ground, master: str, kills: Sequence[Kill]) -> int:
    """Returns how often the driver was started."""
    drivers = Drivers(ground.folder, ground.arguments("stream", master, ground.rows))
    try:
        ground.add_file(ground.rows)
        before = ground.committed_batches()
        until(ground, drivers, "the first batch", lambda: ground.committed_batches() > before)
        for number, kill in enumerate(kills):
            drivers.keep_running()
            ground.ask_for(kill, number, drivers.starts)
            ground.add_file(ground.rows)
            until(ground, drivers, f"{kill}", lambda kill=kill: ground.was_hit(kill))
            ground.hit(kill, f"batch {ground.committed_batches()}")
            if kill.victim == "driver":
                assert drivers.process is not None
                drivers.process.wait(60)
        ground.add_file(ground.rows)
        until(ground, drivers, "the last batch", lambda: ground.committed_batches() >= ground.files)
    finally:
        drivers.kill()
    return drivers.starts


def play_batches(ground: Ground, kills: Sequence[Kill]) -> int:
    starts = 0
    for number, kill in enumerate(kills):
        rows = ground.folder / f"batch-{number}"
        rows.mkdir()
        ground.add_file(rows)
        ground.ask_for(kill, number, 1)
        drivers = Drivers(ground.folder, ground.arguments("batch", LOCAL, rows))
        drivers.start()
        assert drivers.process is not None
        if drivers.process.wait(PATIENCE_S) == 0 or not ground.was_hit(kill):
            raise SystemExit(f"{kill} did not happen; see {ground.folder}")
        ground.hit(kill, rows.name)
        drivers.start()
        if drivers.process.wait(PATIENCE_S) != 0:
            raise SystemExit(f"the write failed when it was repeated; see {ground.folder}")
        starts += drivers.starts
    return starts


def end_open(bootstrap: str) -> int:
    """End what speculative attempts of the last batch may have left, as an operator does. How many there were."""
    with Cluster(config_of(bootstrap)) as cluster:
        found = look(cluster, (), time.time_ns() // 1_000_000)
        end_all(cluster, found)
        assert open_ids(cluster).ids == []
        return len(found.leftovers)


def read_committed(bootstrap: str, topic: str) -> Counter[str]:
    """All rows, as librdkafka reads them up to the last stable offset, which must be the end."""
    with Cluster(config_of(bootstrap)) as cluster:
        places = {(topic, partition): LATEST for partition in range(PARTITIONS)}
        until_s = time.monotonic() + 60
        while cluster.list_offsets(places, 0) != cluster.list_offsets(places, 1):
            assert time.monotonic() < until_s, "a transaction is open"
            time.sleep(0.1)
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    found: Counter[str] = Counter()
    reader.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    left = set(range(PARTITIONS))
    while left:
        for message in reader.consume(10_000, 5):
            if message.error() is not None:
                left.discard(message.partition())
            else:
                found[(message.value() or b"").decode().strip()] += 1
    reader.close()
    return found


def judge(ground: Ground, starts: int) -> bool:
    left = end_open(ground.nodes.bootstrap)
    found = read_committed(ground.nodes.bootstrap, ground.topic)
    rows = {f"row {number} {'x' * 60}" for number in range(ground.written)}
    missing, twice = len(rows - set(found)), sum(count > 1 for count in found.values())
    strange = len(set(found) - rows)
    named = ", ".join(f"{count} {victim}" for victim, count in sorted(ground.kills.items()))
    print(f"{sum(ground.kills.values())} kills ({named}); the driver was started {starts} times")
    print(f"{left} transactions were open when the query was given up; `settle` has ended them")
    print(
        f"{ground.written} rows in {ground.files} micro-batches and writes; read_committed: {sum(found.values())} rows,"
        f" {missing} missing, {twice} more than once, {strange} that nobody wrote;"
        f" {time.monotonic() - ground.began:.0f} s"
    )
    return not (missing or twice or strange)


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=len(ON_CLUSTER + ON_DRIVER + BATCH), help="at most")
    parser.add_argument("--dir", type=Path)
    wish = parser.parse_args(given)
    folder = Path(tempfile.mkdtemp(prefix="sink-kills-", dir=wish.dir))
    on_cluster, on_driver = ON_CLUSTER[: wish.kills], ON_DRIVER[: max(0, wish.kills - len(ON_CLUSTER))]
    batches = BATCH[: max(0, wish.kills - len(ON_CLUSTER + ON_DRIVER))]
    with LocalCluster(folder / "nodes", 3, properties=PROPERTIES) as nodes:
        ground = Ground(nodes, folder)
        starts = play_stream(ground, CLUSTER, on_cluster)
        starts += play_stream(ground, LOCAL, on_driver) if on_driver else 0
        starts += play_batches(ground, batches)
        ground.mend()
        for node in nodes.nodes:
            node.wait_sees(3)
        holds = judge(ground, starts)
    print(f"files kept for inspection in {folder}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
