"""What Spark calls to write into topics: a writer for a batch query, and one for each micro-batch of a stream.

At least once: a task that fails is run again by Spark, and what it had written stays. So `commit` has nothing left to
do, and `abort` can take nothing back. Within a task nothing is doubled: its producer is idempotent.

Exactly once: each attempt of a task writes in a transaction of its own, which stays open when it ends. `commit` gets
what the attempts that Spark has accepted wrote, and commits that (`exactly_once.deciding`).

Spark makes a batch writer once, and hands it to its tasks and to `commit`. It makes a stream writer anew for each
micro-batch, and for each `commit`: all that these know of each other is in the messages.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from strandline.client.cluster import Cluster
from strandline.client.two_phase import Begun
from strandline_spark.errors import BadOption
from strandline_spark.sink.exactly_once.deciding import Write
from strandline_spark.sink.exactly_once.journal import Journal
from strandline_spark.sink.exactly_once.settling import settle
from strandline_spark.sink.exactly_once.starting import check
from strandline_spark.sink.exactly_once.task import Attempt, attempt_of, begun, give_up
from strandline_spark.sink.options import SinkOptions
from strandline_spark.sink.writing import Reached, Writing

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType

Batches = Iterator["RecordBatch"]


@dataclass
class Written(WriterCommitMessage):
    """What one task wrote; exactly once: by which attempt, and in which transaction (None: it had no rows)."""

    rows: int
    reached: list[Reached]
    attempt: Attempt | None = None
    prepared: Begun | None = None


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions, run: str = "", *, is_decided: bool = False) -> None:
        """`is_decided`: this write was committed before, under its name; tasks write nothing."""
        self.options = options
        self.run = run
        self.is_decided = is_decided

    @property
    def name(self) -> str:
        return self.options.name or self.run

    def write(self, iterator: Batches) -> Written:
        if self.is_decided:
            return Written(sum(0 for _ in iterator), [])
        return write(self.options, iterator, self.name, self.run)

    def commit(self, messages: "Sequence[WriterCommitMessage | None]") -> None:
        if self.options.exactly_once and not self.is_decided:
            decide(self.options, Attempt(self.name, self.run, 0, 0), self.options.version, messages)

    def abort(self, messages: "Sequence[WriterCommitMessage | None]") -> None:
        if self.options.exactly_once and not self.is_decided:
            abort(self.options, Attempt(self.name, self.run, 0, 0), self.options.version, messages)


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions, run: str = "") -> None:
        """`run`: if Spark does not tell its tasks in which run of the query they are."""
        self.options = options
        self.run = run

    def write(self, iterator: Batches) -> Written:
        return write(self.options, iterator, None, self.run)

    def commit(self, messages: "Sequence[WriterCommitMessage | None]", batchId: int) -> None:  # noqa: N803  # PySpark's
        at = any_attempt(messages)
        if at is not None:
            decide(self.options, at, batchId, messages)

    def abort(self, messages: "Sequence[WriterCommitMessage | None]", batchId: int) -> None:  # noqa: N803  # PySpark's
        at = any_attempt(messages)
        if at is not None:
            abort(self.options, at, batchId, messages)


def batch_writer(options: Mapping[str, str], schema: "StructType", overwrite: bool) -> BatchWriter:
    """Raises `BadOption` for what cannot be written, `KafkaError` if no broker answers."""
    chosen = SinkOptions.of(options, schema, overwrite=overwrite)
    with Cluster(chosen.config) as cluster:
        if chosen.topic is None:
            cluster.brokers()
        else:
            cluster.topics([chosen.topic])  # an illegal name, or one that is forbidden, is known before any task runs
        if not chosen.exactly_once:
            return BatchWriter(chosen)
        check(cluster)
        return BatchWriter(chosen, uuid4().hex, is_decided=chosen.name is not None and was_decided(cluster, chosen))


def was_decided(cluster: Cluster, options: SinkOptions) -> bool:
    """Is this write a repetition? Then what was decided is committed, if that was still to be done."""
    assert options.name is not None
    last = Journal(cluster, options.name).read()
    if last is None or last.version < options.version:
        return False
    if not last.is_done:
        settle(cluster, options.name, ())
    return True


def stream_writer(options: Mapping[str, str], schema: "StructType", overwrite: bool) -> StreamWriter:
    """Raises `BadOption`. Output modes other than append are Spark's: rows are appended in each."""
    chosen = SinkOptions.of(options, schema)
    if chosen.name is not None:
        raise BadOption(
            "a streaming query has no transactionName: the id in its checkpoint is its name",
            "leave the options transactionName and transactionVersion out",
        )
    if chosen.exactly_once:
        with Cluster(chosen.config) as cluster:
            check(cluster)
    return StreamWriter(chosen, uuid4().hex)


# --- tasks


def write(options: SinkOptions, batches: Batches, name: str | None, run: str) -> Written:
    """One task."""
    attempt = attempt_of(name, run) if options.exactly_once else None
    prepared: Begun | None = None
    with Cluster(options.config) as cluster:
        writing: Writing | None = None
        try:
            for batch in batches:
                if writing is None and batch.num_rows:
                    if attempt is not None:
                        prepared = begun(cluster, attempt, options.config.transaction_timeout_ms)
                    writing = Writing(cluster, batch.schema.names, options.topic, task_name(), prepared)
                if writing is not None:
                    writing.write(batch)
            reached = [] if writing is None else writing.finish()
        except BaseException:
            if prepared is not None:
                give_up(options.config, prepared)
            raise
        finally:
            if writing is not None:
                writing.producer.close()
    return Written(0 if writing is None else writing.rows, reached, attempt, prepared)


def task_name() -> str:
    """Which of a job's tasks this is, for messages."""
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    return "" if context is None else f" of task {context.partitionId()}"


# --- the driver


def any_attempt(messages: "Sequence[WriterCommitMessage | None]") -> Attempt | None:
    """All have the same name and run. None: no task has ended, or it is not exactly once."""
    return next((one.attempt for one in messages if isinstance(one, Written) and one.attempt is not None), None)


def decide(options: SinkOptions, at: Attempt, version: int, messages: "Sequence[WriterCommitMessage | None]") -> None:
    with Cluster(options.config) as cluster:
        Write(cluster, at.name, at.run, version, prepared_of(messages)).commit()


def abort(options: SinkOptions, at: Attempt, version: int, messages: "Sequence[WriterCommitMessage | None]") -> None:
    with Cluster(options.config) as cluster:
        Write(cluster, at.name, at.run, version, prepared_of(messages)).abort()


def prepared_of(messages: "Sequence[WriterCommitMessage | None]") -> list[Begun]:
    return [one.prepared for one in messages if isinstance(one, Written) and one.prepared is not None]
