"""A pipeline as a streaming query: it starts, reports its batches, and ends after a batch on request.

A query that is stopped in mid-batch loses nothing, but its work. So a wish to stop waits for the batch: the next one is
refused at its very beginning, before anything is written, and the query ends with that.
"""

import contextlib
import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from strandline.base.value import Value
from strandline_spark.errors import StrandlineError, sentence_of
from strandline_spark.jobs.ingest.batch import Ingestion, Taken, table_schema
from strandline_spark.jobs.ingest.declaration import Pipeline
from strandline_spark.tables.account import Account
from strandline_spark.tables.parquet import refuse_strangers
from strandline_spark.tables.table import require_local

POLL_S = 1
LOGGER = "org.apache.spark.sql.execution.streaming"


class IngestResult(Value, frozen=True):
    """What a run has done, and where the table is now."""

    application: str  # the query's id, which its checkpoint keeps
    batches: int
    run: Account  # of this run
    table: Account  # of all runs with this checkpoint
    seconds: float
    was_stopped: bool  # by a signal or a notebook, before everything was read

    def as_json(self) -> dict[str, Any]:
        total = self.table
        partitions = [
            {
                "topic": topic,
                "partition": number,
                "first_offset": span.first,
                "end_offset": span.end,
                "records": span.records,
                "missing": None if total.is_dense is None else max(0, span.missing),
                "duplicates": max(0, -span.missing),
            }
            for topic, of in sorted(total.spans.items())
            for number, span in sorted(of.items())
        ]
        return {
            "batches": self.batches,
            "rows_in": self.run.rows_in,
            "rows_written": self.run.rows,
            "quarantined": self.run.quarantined,
            "dropped": self.run.dropped,
            "filtered": self.run.filtered,
            "expectations_not_met": self.run.failed,
            "seconds": round(self.seconds, 3),
            "stopped": self.was_stopped,
            "application": self.application,
            "table": {
                "rows_in": total.rows_in,
                "rows": total.rows,
                "quarantined": total.quarantined,
                "dropped": total.dropped,
                "filtered": total.filtered,
                "dense": total.is_dense,
                "partitions": partitions,
            },
        }


class Stopped(Exception):
    """Somebody asked to stop; the batch that began has not been touched."""


class Running:
    """A query of a pipeline. `wait` until it ends, `stop` to end it after its batch."""

    def __init__(self, records: DataFrame, pipeline: Pipeline, on_batch: Callable[[Taken], None] | None = None) -> None:
        """`records`: a stream of topic rows. `on_batch` is called after each batch. An invalid declaration is
        rejected at once."""
        table_schema(records, pipeline)
        for path in own_folders(pipeline):
            refuse_strangers(path)  # before Spark makes its checkpoint there
        self.records = records
        self.spark = records.sparkSession
        self.pipeline = pipeline
        self.on_batch = on_batch
        self.ingestion: Ingestion | None = None
        self.done = Account()
        self.batches = 0
        self.error: BaseException | None = None
        self.wants_stop = threading.Event()
        self.was_stopped = False  # by the wish, and not by its own end before the wish was seen
        self.at_work = threading.Lock()  # held while a batch is under way: what it writes to must not be closed
        self.began = time.monotonic()
        log_level(self.spark, "OFF")  # `wait` reports a failure, once
        writer = records.writeStream.queryName(pipeline.declared.name).foreachBatch(self.take)
        writer = writer.option("checkpointLocation", pipeline.checkpoint)
        if pipeline.trigger_ms is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{pipeline.trigger_ms} milliseconds")
        self.query: StreamingQuery = writer.start()

    def take(self, records: DataFrame, batch: int) -> None:
        """One batch, on the query's own thread."""
        with self.at_work:
            self.take_alone(records, batch)

    def take_alone(self, records: DataFrame, batch: int) -> None:
        try:
            if self.wants_stop.is_set():
                raise Stopped
            if self.ingestion is None:
                self.ingestion = Ingestion(self.pipeline, application_of(records), records)
            taken = self.ingestion.take(records, batch)
            self.done = self.done.plus(taken.account)
            self.batches += not taken.was_there
            if self.on_batch is not None:
                self.on_batch(taken)
            if not taken.was_there:
                self.ingestion.compact(records.sparkSession, batch)
        except BaseException as error:
            self.error = error  # what Spark makes of it has no words of ours
            raise

    def stop(self) -> None:
        """End after the batch that is under way. Returns at once."""
        self.wants_stop.set()

    def wait(self) -> IngestResult:
        """Until everything is read, an error, or `stop`. Raises StrandlineError if the query failed."""
        try:
            while not self.ended():
                # Between batches Spark looks for new records, on a slow machine all the time. What it has only planned
                # comes again; a batch that begins just now is refused by `take`.
                if self.wants_stop.is_set() and not self.at_work.locked():
                    self.end()
            if (
                self.ingestion is None
            ):  # there was nothing to read; the table is there nevertheless, and has its numbers
                self.ingestion = Ingestion(self.pipeline, str(self.query.id), self.records)
        except StreamingQueryException as error:
            if not isinstance(self.error, Stopped):
                raise sentence_of(self.error or error) from self.error
            self.was_stopped = True
        finally:
            account = self.close()
            log_level(self.spark, "WARN")
        seconds = time.monotonic() - self.began
        return IngestResult(str(self.query.id), self.batches, self.done, account, seconds, self.was_stopped)

    def ended(self) -> bool:
        return bool(self.query.awaitTermination(POLL_S))

    def end(self) -> None:
        self.was_stopped = self.was_stopped or self.query.isActive
        self.query.stop()

    def close(self) -> Account:
        """Whoever was interrupted while it waited (in a notebook, say) has a query that goes on. So it ends here first:
        no batch may write to tables that are closed, and whose locks others may have."""
        self.wants_stop.set()
        with contextlib.suppress(Py4JError, PySparkException):
            self.end()
        with self.at_work:
            if self.ingestion is None:
                return Account()
            account = self.ingestion.table.account()
            self.ingestion.close()
            return account


def own_folders(pipeline: Pipeline) -> Iterator[str]:
    """The folders that must be empty, or Parquet tables of ours."""
    if pipeline.declared.sink.format == "parquet":
        yield require_local(pipeline.declared.sink.table, "parquet")
    if pipeline.may_quarantine:
        yield require_local(pipeline.quarantine, "quarantine")


def log_level(spark: SparkSession, level: str) -> None:
    """How loud Spark and py4j are about streaming queries: they print pages for each that ends with an error."""
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL if level == "OFF" else logging.NOTSET)
    jvm: Any = spark.sparkContext._jvm
    with contextlib.suppress(Py4JError):
        levels = jvm.org.apache.logging.log4j.Level
        jvm.org.apache.logging.log4j.core.config.Configurator.setLevel(LOGGER, levels.toLevel(level))


def application_of(records: DataFrame) -> str:
    """The id of the query whose batch this is: the checkpoint has it, so it is the same after every restart."""
    found = records.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    if found is None:
        raise StrandlineError("Spark does not report which query a batch belongs to", "PySpark 4.2 or later is needed")
    return str(found)


@contextlib.contextmanager
def stopping_on_signals(running: Running) -> Iterator[None]:
    """SIGTERM and the first Ctrl-C end the run after its batch; the second Ctrl-C ends it at once."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        running.stop()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
