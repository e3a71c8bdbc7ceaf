"""The rows that an audit needs of every replica, each read once, in the order that the rules count on."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F  # noqa: N812

from strandline.pipeline import schemas
from strandline.pipeline.jobs.audit.rows import PARTITION, REPLICA, local, normal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

FORMAT = "strandline-replica"


class Levels(NamedTuple):
    """`schemas.REPLICA_*`, with `normal` keys. Over the wire there are batches and records alone."""

    batches: "DataFrame"
    checkpoints: "DataFrame"
    indexes: "DataFrame"
    epochs: "DataFrame"
    segments: "DataFrame"
    records: Callable[[Sequence[str]], "DataFrame"]  # of these topics; REPLICA_RECORD
    compacted: Sequence[str] | None = None  # over the wire: the topics that are; None: files tell

    def forget(self) -> None:
        self.batches.unpersist()
        self.indexes.unpersist()


def read_levels(spark: "SparkSession", options: "dict[str, str]", compacted: Sequence[str] | None = None) -> Levels:
    """`options`: those of the replica source, without `level`. Everything but records is read now, and kept."""

    def level(name: str) -> "DataFrame":
        changed = {"whenChanged": "report"} if name == "batch" else {}
        return normal(spark.read.format(FORMAT).options(**options, **changed, level=name).load())

    def absent(schema: "StructType") -> "DataFrame":
        return spark.createDataFrame([], schema)

    def records(topics: Sequence[str]) -> "DataFrame":
        chosen = {key: text for key, text in options.items() if not key.startswith("subscribe")}
        chosen |= {} if "assign" in options else {"subscribe": ",".join(topics)}
        rows = spark.read.format(FORMAT).options(**chosen, level="record", mode="DROPMALFORMED").load()
        return normal(rows).where(F.col("topic").isin(list(topics)))

    def read(*names: str) -> "list[DataFrame]":
        with ThreadPoolExecutor(len(names)) as threads:
            return list(threads.map(lambda name: local(level(name)), names))

    if compacted is not None:
        kinds = (schemas.REPLICA_CHECKPOINT, schemas.REPLICA_INDEX, schemas.REPLICA_EPOCH, schemas.REPLICA_SEGMENT)
        checkpoints, indexes, epochs, segments = map(absent, kinds)
        batches = kept(by_log(level("batch")))
        return Levels(batches, checkpoints, indexes, epochs, segments, records, compacted)
    indexes = kept(level("index"))
    (checkpoints,) = read("checkpoint")
    batches = kept(by_log(level("batch")))
    epochs, segments = read("epoch", "segment")
    return Levels(batches, checkpoints, indexes, epochs, segments, records)


def by_log(batches: "DataFrame") -> "DataFrame":
    """The replicas of a partition together, and each in the order of its files: then no rule has to move or sort them
    again."""
    return batches.repartition(*PARTITION).sortWithinPartitions(*REPLICA, "segment", "position")


def kept(rows: "DataFrame") -> "DataFrame":
    """Read now, and not again."""
    rows.persist().count()
    return rows


def without_changed(levels: Levels) -> tuple[Levels, tuple[str, ...]]:
    """Without the replicas that changed while they were read, or whose brokers do not answer; and which these are."""
    changed = local(levels.batches.where("fault in ('changed', 'unreachable')").select(*REPLICA).distinct())
    names = tuple(
        f"{row['topic']}-{row['partition']} in {row['directory'] or 'the log'} of broker {row['broker']}"
        for row in changed.collect()
    )
    if not names:
        return levels, ()

    def rest(rows: "DataFrame") -> "DataFrame":
        return rows.join(F.broadcast(changed), list(REPLICA), "left_anti")

    return levels._replace(
        batches=rest(levels.batches),
        checkpoints=rest(levels.checkpoints),
        indexes=rest(levels.indexes),
        epochs=rest(levels.epochs),
        segments=rest(levels.segments),
    ), names
