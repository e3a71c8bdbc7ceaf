"""What a task does: the records of one range of a partition, as Arrow batches.

Invariants:
  - every record of the range that the log has is given once, in order, and nothing from outside of the range
  - nothing is given silently where the log is another one than was planned with, or has lost a part of the range:
    either the task fails with DataLoss, or (failOnDataLoss=false) it warns
"""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from strandline.base.value import Value
from strandline.client.cluster import Cluster
from strandline.client.config import ClientConfig
from strandline.client.errors import (
    KafkaError,
    LogTruncated,
    OffsetOutOfRange,
    TimedOut,
    TopicIdChanged,
    UnknownTopic,
)
from strandline_spark.decode import Columns, Corrupt, decode
from strandline_spark.errors import StrandlineError
from strandline_spark.topic.offsets import UNKNOWN, Lost, Position, data_loss, deleted, is_same_topic
from strandline_spark.topic.options import TopicOptions
from strandline_spark.topic.planning import TopicRange

if TYPE_CHECKING:
    import pyarrow

READ_COMMITTED = 1
KEPT_MAX = 4  # clusters that one worker stays connected to

# Workers live on between tasks: with a cluster kept, a small batch costs no connections.
kept: dict[tuple[int, ClientConfig], Cluster] = {}


def warn(what: str) -> None:
    """Spark passes what its Python processes print on to the driver's or executor's log."""
    print(f"strandline: {what} (failOnDataLoss=false: the query goes on)", file=sys.stderr)


class RangePartition(InputPartition):
    """One task of Spark."""

    def __init__(self, value: TopicRange) -> None:
        super().__init__(value)


class Reading(Value, frozen=True):
    """How ranges are read; travels to the workers."""

    config: ClientConfig
    columns: Columns
    patience_ms: int
    fail_on_data_loss: bool

    @staticmethod
    def of(config: ClientConfig, options: TopicOptions, schema: "pyarrow.Schema") -> "Reading":
        return Reading(config, Columns.of(schema), options.poll_timeout_ms, options.fail_on_data_loss)

    def read(self, partition: InputPartition) -> Iterator["pyarrow.RecordBatch"]:
        """Batches of exactly the schema. Raises DataLoss, and StrandlineError for damage and for a silent cluster."""
        if partition.value is None:
            return  # Spark's stand-in where there is nothing to read.
        work: TopicRange = partition.value
        cluster = self.connected()
        try:
            yield from self.records(cluster, work)
        except Corrupt as error:
            raise StrandlineError(
                f"the records are damaged: {error}",
                "`strandline pipeline audit` shows which replicas are whole.",
            ) from None
        except KafkaError:
            self.disconnect(cluster)
            raise

    def records(self, cluster: Cluster, work: TopicRange) -> Iterator["pyarrow.RecordBatch"]:
        here, epoch = work.start, work.start_epoch
        while here < work.end:
            try:
                for fetched in cluster.read(
                    work.topic,
                    work.partition,
                    here,
                    work.end,
                    leader_epoch=epoch,
                    patience_ms=self.patience_ms,
                    topic_id=work.topic_id or None,
                ):
                    batches, here = decode(
                        fetched.records,
                        self.columns,
                        topic=work.topic,
                        partition=work.partition,
                        first=here,
                        end=work.end,
                        aborted=fetched.aborted,
                        read_committed=self.config.isolation_level == READ_COMMITTED,
                    )
                    here = max(here, min(fetched.next_offset, work.end))  # without a batch: it was compacted away
                    epoch = fetched.leader_epoch
                    yield from batches
                break
            except OffsetOutOfRange as error:
                lost = out_of_range(work, here, error)
            except LogTruncated as error:
                lost = Lost(work.topic, work.partition, "truncated", error.problem, None)
            except TopicIdChanged as error:
                lost = Lost(work.topic, work.partition, "recreated", error.problem, None)
            except UnknownTopic:
                lost = deleted(work.topic, work.partition, is_topic=True)
            except TimedOut as error:
                lost = self.timed_out(cluster, work, here, error)
            self.notify(lost)
            if lost.resume is None:
                return
            here, epoch = lost.resume.offset, UNKNOWN
        cut = truncated(cluster, work)
        if cut is not None:
            self.notify(cut)

    def notify(self, lost: Lost) -> None:
        if self.fail_on_data_loss:
            raise data_loss([lost])
        warn(lost.what)

    def timed_out(self, cluster: Cluster, work: TopicRange, here: int, error: TimedOut) -> Lost:
        """A range whose end does not come was perhaps cut off. Raises StrandlineError if it was not."""
        with suppress(KafkaError):  # who is silent does not answer this either
            cut = truncated(cluster, work)
            if cut is not None:
                return cut
        raise StrandlineError(
            f"Cannot fetch records of {work.topic}-{work.partition} from offset {here} on in {self.patience_ms} "
            f"milliseconds: {error.problem}",
            "kafkaConsumer.pollTimeoutMs says how long to wait. `strandline explain` shows the leaders.",
        ) from None

    # --- connections that outlive a task

    def connected(self) -> Cluster:
        key = (os.getpid(), self.config)
        cluster = kept.pop(key, None) or Cluster(self.config)
        while len(kept) >= KEPT_MAX:
            kept.pop(next(iter(kept))).close()
        kept[key] = cluster
        return cluster

    def disconnect(self, cluster: Cluster) -> None:
        kept.pop((os.getpid(), self.config), None)
        cluster.close()


def out_of_range(work: TopicRange, here: int, error: OffsetOutOfRange) -> Lost:
    """The log begins after the offset, or ends before it."""
    name = f"{work.topic}-{work.partition}"
    if error.log_start_offset > here:
        upto = min(error.log_start_offset, work.end)
        what = f"{name} now begins at offset {error.log_start_offset}: records {here} to {upto - 1} were deleted"
        return Lost(work.topic, work.partition, "expired", what, Position(upto))
    what = f"{name} now ends at offset {error.high_watermark}: records {here} to {work.end - 1} are gone"
    return Lost(work.topic, work.partition, "truncated", what, None)


def truncated(cluster: Cluster, work: TopicRange) -> Lost | None:
    """Does the log still have the record before the end that was planned with? Then all before it were the same."""
    if work.end_epoch == UNKNOWN:
        return None
    try:
        epoch, end = cluster.epoch_end(work.topic, work.partition, work.end_epoch)
    except UnknownTopic:
        return None  # Deleted after all was read.
    if epoch == work.end_epoch and end >= work.end:
        return None
    # Metadata only now: of a topic with thousands of partitions it is far more than the question above.
    found = cluster.topics([work.topic]).get(work.topic)
    if found is None or not is_same_topic(found.topic_id, work.topic_id):
        return None
    what = (
        f"{work.topic}-{work.partition} was truncated while it was read: leader epoch {work.end_epoch} reached offset "
        f"{work.end}, and now epoch {epoch} ends at {end}"
    )
    return Lost(work.topic, work.partition, "truncated", what, None)
