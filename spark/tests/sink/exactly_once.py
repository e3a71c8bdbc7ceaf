"""A query that writes exactly once, without Spark: what its tasks and its driver do, and where the driver dies."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import Queue
from threading import Thread, current_thread
from typing import Any
from uuid import uuid4

import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition
from tests.cluster.client_topics import config_of

from strandline.client.cluster import LATEST, Cluster
from strandline.client.config import ClientConfig
from strandline.client.two_phase import Begun
from strandline.testing.local_cluster import LocalCluster
from strandline_spark.sink.exactly_once import deciding, finishing
from strandline_spark.sink.exactly_once.deciding import NotOpen, Write
from strandline_spark.sink.exactly_once.journal import Decision, Journal
from strandline_spark.sink.exactly_once.listing import open_ids
from strandline_spark.sink.exactly_once.starting import check
from strandline_spark.sink.exactly_once.task import Attempt, begun
from strandline_spark.sink.writing import Writing

MOMENTS = ("entered", "taken", "recorded", "decided", "half", "committed", "done")


class Died(BaseException):
    """The driver's process is gone."""


def rows_of(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array([b"%d" % value for value in values], pa.binary())})


class Query:
    """A query with its checkpoint: its name. `restart` begins another run."""

    def __init__(self, nodes: LocalCluster, topic: str, **options: str) -> None:
        self.name = uuid4().hex
        self.topic = topic
        self.nodes = nodes
        self.config: ClientConfig = config_of(nodes.bootstrap, **options)
        self.cluster = Cluster(self.config)
        check(self.cluster)
        self.restart()

    def restart(self) -> None:
        self.run = uuid4().hex

    def task(self, partition: int, *values: int, attempt: int = 0) -> Begun:
        """One attempt, which ends well."""
        of = Attempt(self.name, self.run, partition, attempt)
        one = begun(self.cluster, of, self.config.transaction_timeout_ms)
        with Writing(self.cluster, ["value"], self.topic, "", one) as writing:
            writing.write(rows_of(*values))
            writing.finish()
        return one

    def write(self, version: int, *prepared: Begun) -> Write:
        return Write(self.cluster, self.name, self.run, version, prepared)

    def batch(self, version: int) -> Write:
        """Two tasks have written the batch's rows, which are the same each time."""
        first = 10 * version
        return self.write(version, self.task(0, first, first + 1), self.task(1, first + 2, first + 3))

    def open_ids(self) -> list[str]:
        return open_ids(self.cluster, self.name).ids

    def committed(self, partitions: int = 1) -> list[int]:
        return committed_values(self.nodes, self.topic, partitions)


def committed_values(nodes: LocalCluster, topic: str, partitions: int = 1) -> list[int]:
    """As librdkafka reads them with read_committed, sorted. Nothing may be open."""
    with Cluster(config_of(nodes.bootstrap)) as cluster:
        places = {(topic, partition): LATEST for partition in range(partitions)}
        for _ in range(500):
            ends = cluster.list_offsets(places, 0)
            if ends == cluster.list_offsets(places, 1):
                break
            time.sleep(0.01)
        else:
            raise AssertionError("a transaction is open")
    options = {"bootstrap.servers": nodes.bootstrap, "group.id": uuid4().hex, "enable.partition.eof": True}
    reader = Consumer({**options, "isolation.level": "read_committed"})
    reader.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    values, left = [], set(range(partitions))
    while left:
        message = reader.poll(10)
        assert message is not None
        if message.error() is None:
            values.append(int(message.value() or b""))
        else:
            left.discard(message.partition())
    reader.close()
    return sorted(values)


def of_batches(*versions: int) -> list[int]:
    return [10 * version + n for version in versions for n in range(4)]


@contextmanager
def at(moment: str, act: Callable[[], Any]) -> Iterator[list[str]]:
    """Do that when a driver comes to the moment, once. Yields what it came to."""
    came: list[str] = []

    def reached(name: str) -> None:
        if name == moment and not came:
            came.append(name)
            act()

    with watched(reached):
        yield came


class Stepping:
    """A driver in a thread of its own, which waits at each moment until it is told how far to go."""

    def __init__(self, write: Write) -> None:
        self.until = ""
        self.arrived: Queue[str] = Queue()
        self.goes: Queue[str] = Queue()
        self.thread = Thread(target=self.drive, args=(write,), daemon=True)

    def drive(self, write: Write) -> None:
        self.until = self.goes.get()
        with suppress(NotOpen):
            write.commit()
        self.arrived.put("end")

    def reached(self, name: str) -> None:
        if current_thread() is self.thread and name == self.until:
            self.arrived.put(name)
            self.until = self.goes.get()

    def go(self, until: str) -> str:
        """Where it is now: at that moment, or at its end."""
        if not self.thread.is_alive() and self.thread.ident is None:
            self.thread.start()
        self.goes.put(until)
        return self.arrived.get(timeout=60)


@contextmanager
def watched(reached: Callable[[str], None]) -> Iterator[None]:
    """Be told of each moment to which a driver comes."""
    enter, take_over, committed = Journal.enter, deciding.take_over, Journal.committed
    write, end = Journal.write, finishing.end

    def entered(self: Journal) -> None:
        enter(self)
        reached("entered")

    def taken(*args: Any) -> Any:
        found = take_over(*args)
        reached("taken")
        return found

    def recorded(self: Journal, one: Begun) -> Begun:
        reached("recorded")
        return committed(self, one)

    def written(self: Journal, decision: Decision) -> None:
        if decision.is_done:
            reached("committed")
        write(self, decision)
        reached("done" if decision.is_done else "decided")

    def halves(cluster: Cluster, transactions: Any, *, commit: bool) -> Any:
        rows = list(transactions)
        first = end(cluster, rows[:1], commit=commit)
        reached("half")
        return first | end(cluster, rows[1:], commit=commit)

    Journal.enter, Journal.committed, Journal.write = entered, recorded, written  # type: ignore[method-assign]
    deciding.take_over, finishing.end = taken, halves  # type: ignore[assignment]
    try:
        yield
    finally:
        Journal.enter, Journal.committed, Journal.write = enter, committed, write  # type: ignore[method-assign]
        deciding.take_over, finishing.end = take_over, end


def die() -> None:
    raise Died
