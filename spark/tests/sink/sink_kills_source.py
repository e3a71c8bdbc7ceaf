"""The sink with moments in it at which a test kills: `format("killed")`.

At each moment a file of that name, with the number of the driver's start, is looked for in the folder CONTROL. (So what
an earlier driver has left, and lives on for a while, kills nobody.) The file says who is to be killed, and whoever
takes it does that, with SIGKILL: a worker of Python, the executor above it, the driver with its JVM, or a node. The
moments of tasks are `began`, `writing` and `prepared`, those of the driver `committing`, `taken`, `recorded` (the
decision is written, and not committed), `decided`, `half` (of the transactions are committed) and `done`.
"""

import os
import random
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from strandline_spark.sink.exactly_once import deciding, finishing
from strandline_spark.sink.exactly_once.journal import Decision, Journal
from strandline_spark.sink.writer import BatchWriter, StreamWriter, Written, batch_writer, stream_writer
from strandline_spark.topic.source import DefaultSource

CONTROL, START = "KILLS_CONTROL", "KILLS_START"  # in the environment
DRIVER = "driver.pids"
LINGER_S = 0.4  # stragglers, so that Spark starts speculative attempts


def control() -> Path:
    return Path(os.environ[CONTROL])


def moment(name: str) -> None:
    """Kill whoever is to be killed now, if anybody is."""
    path = control() / f"{name}.{os.environ[START]}"
    taken = path.with_name(f"{name}.taken.{os.getpid()}.{time.time_ns()}")
    try:
        path.rename(taken)
    except FileNotFoundError:
        return
    victim, _, pid = taken.read_text().partition(":")
    (control() / f"{name}.hit").write_text(victim)
    match victim:
        case "worker":
            os.kill(os.getpid(), signal.SIGKILL)
        case "executor":
            os.kill(parent_of(os.getppid()), signal.SIGKILL)
        case "driver":
            for one in (control() / DRIVER).read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(one), signal.SIGKILL)
        case "node":
            os.kill(int(pid), signal.SIGKILL)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def watched(batches: Iterator[Any]) -> Iterator[Any]:
    moment("began")
    for batch in batches:
        middle = batch.num_rows // 2
        yield batch.slice(0, middle)
        moment("writing")
        time.sleep(LINGER_S if random.random() < 0.2 else 0)
        yield batch.slice(middle)


def prepared(written: Written) -> Written:
    moment("prepared")
    return written


@contextmanager
def moments_of_a_commit() -> Iterator[None]:
    take_over, end, write, committed = deciding.take_over, finishing.end, Journal.write, Journal.committed

    def taken(*args: Any) -> Any:
        found = take_over(*args)
        moment("taken")
        return found

    def halves(cluster: Any, transactions: Any, *, commit: bool) -> Any:
        rows = list(transactions)
        first = end(cluster, rows[: len(rows) // 2], commit=commit)
        moment("half")
        return first | end(cluster, rows[len(rows) // 2 :], commit=commit)

    def written(self: Journal, decision: Decision) -> None:
        write(self, decision)
        moment("done" if decision.is_done else "decided")

    def recorded(self: Journal, entered: Any) -> Any:
        moment("recorded")
        return committed(self, entered)

    deciding.take_over, finishing.end = taken, halves  # type: ignore[assignment]
    Journal.write, Journal.committed = written, recorded  # type: ignore[method-assign]
    try:
        moment("committing")
        yield
    finally:
        deciding.take_over, finishing.end = take_over, end
        Journal.write, Journal.committed = write, committed  # type: ignore[method-assign]


class KilledStream(StreamWriter):
    def write(self, iterator: Iterator[Any]) -> Written:
        return prepared(super().write(watched(iterator)))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        with moments_of_a_commit():
            super().commit(messages, batchId)


class KilledBatch(BatchWriter):
    def write(self, iterator: Iterator[Any]) -> Written:
        return prepared(super().write(watched(iterator)))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        with moments_of_a_commit():
            super().commit(messages)


class KilledSink(DefaultSource):
    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        return "killed"

    def writer(self, schema: StructType, overwrite: bool) -> KilledBatch:
        made = batch_writer(self.options, schema, overwrite)
        return KilledBatch(made.options, made.run, is_decided=made.is_decided)

    def streamWriter(self, schema: StructType, overwrite: bool) -> KilledStream:  # noqa: N802
        made = stream_writer(self.options, schema, overwrite)
        return KilledStream(made.options, made.run)
