"""What Spark calls to write into topics: a writer for a batch query, and one for each micro-batch of a stream.

At least once: a task that fails is run again by Spark, and what it had written stays. So `commit` has nothing left to
do, and `abort` can take nothing back. Within a task nothing is doubled: its producer is idempotent.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from strandline.client.cluster import Cluster
from strandline_spark.sink.options import SinkOptions
from strandline_spark.sink.writing import Reached, Writing

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType


@dataclass
class Written(WriterCommitMessage):
    """What one task wrote."""

    rows: int
    reached: list[Reached]


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self.options = options

    def write(self, iterator: "Iterator[RecordBatch]") -> Written:
        return write(self.options, iterator)


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self.options = options

    def write(self, iterator: "Iterator[RecordBatch]") -> Written:
        return write(self.options, iterator)


def batch_writer(options: Mapping[str, str], schema: "StructType", overwrite: bool) -> BatchWriter:
    """Raises `BadOption` for what cannot be written, `KafkaError` if no broker answers."""
    chosen = SinkOptions.of(options, schema, overwrite=overwrite)
    with Cluster(chosen.config) as cluster:
        if chosen.topic is None:
            cluster.brokers()
        else:
            cluster.topics([chosen.topic])  # an illegal name, or one that is forbidden, is known before any task runs
    return BatchWriter(chosen)


def stream_writer(options: Mapping[str, str], schema: "StructType", overwrite: bool) -> StreamWriter:
    """Raises `BadOption`. Output modes other than append are Spark's: rows are appended in each."""
    return StreamWriter(SinkOptions.of(options, schema))


def write(options: SinkOptions, batches: "Iterator[RecordBatch]") -> Written:
    """One task."""
    with Cluster(options.config) as cluster:
        writing: Writing | None = None
        try:
            for batch in batches:
                if writing is None:
                    writing = Writing(cluster, batch.schema.names, options.topic, task_name())
                writing.write(batch)
            return Written(0, []) if writing is None else Written(writing.rows, writing.finish())
        finally:
            if writing is not None:
                writing.producer.close()


def task_name() -> str:
    """Which of a job's tasks this is, for messages."""
    from pyspark import TaskContext

    context: Any = TaskContext.get()
    return "" if context is None else f" of task {context.partitionId()}"
