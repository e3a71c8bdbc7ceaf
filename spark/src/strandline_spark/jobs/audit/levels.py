"""What an audit reads of every replica, each once, in the order that the rules count on.

Batches and index entries grow with the bytes, and stay in Spark. A log's other files are small: they are read here, by
whoever plans the reads of the others too, and are plain rows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from strandline.base.ids import TopicPartition
from strandline.log.directory import directory_name
from strandline.log.segment import file_name
from strandline_spark import schemas
from strandline_spark.jobs.audit.replicas import NO_SEGMENT, Measured, measured
from strandline_spark.jobs.audit.rows import KEYS, PARTITION, REPLICA, Key, Row, frame, key_of, normal
from strandline_spark.jobs.audit.subjects.presence import by_directory
from strandline_spark.persisted import persisted
from strandline_spark.replica.beside import beside_rows
from strandline_spark.replica.errors import LogChanged, UnreadableLog
from strandline_spark.replica.files import ROWS_OF
from strandline_spark.replica.located import Replica
from strandline_spark.replica.options import parse
from strandline_spark.replica.places import replicas
from strandline_spark.replica.rows import CHANGED, UNREACHABLE, UNREADABLE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "strandline-replica"
BATCH = tuple(name for name in schemas.REPLICA_BATCH.names if name != "base_timestamp")

WHY = {
    CHANGED: "it changed each time that it was read",
    UNREACHABLE: "its broker does not answer, or does not return it",
    UNREADABLE: "a file cannot be read",
}


class Unread(NamedTuple):
    """Why a replica could not be read."""

    fault: str  # CHANGED, UNREACHABLE or UNREADABLE
    why: str


class Levels(NamedTuple):
    """`schemas.REPLICA_*`; DataFrames with `normal` keys. Over the wire there are batches and records alone."""

    batches: "DataFrame"
    indexes: "DataFrame | None"
    measured: Measured  # what the batches come to
    checkpoints: Sequence[Row]
    epochs: Sequence[Row]
    segments: Sequence[Row]
    records: Callable[[Sequence[str]], "DataFrame"]  # of these topics; REPLICA_RECORD
    compacted: Sequence[str] | None = None  # over the wire: the compacted topics; None: files show it
    unread: Mapping[Key, Unread] = {}  # replicas that are left out
    beside: Sequence[Row] = ()  # of other files (`replica.beside`)
    of_directories: Sequence[Row] = ()  # findings (`presence`)


@contextmanager
def read_levels(
    spark: "SparkSession", options: dict[str, str], compacted: Sequence[str] | None = None
) -> Iterator[Levels]:
    """`options`: those of the replica source, without `level`. Everything but records is read now, and kept as long as
    the block lasts."""

    def records(topics: Sequence[str]) -> "DataFrame":
        if not topics:
            return frame(spark, [], schemas.REPLICA_RECORD)
        chosen = {key: text for key, text in options.items() if not key.startswith("subscribe")}
        chosen |= {} if "assign" in options else {"subscribe": ",".join(topics)}
        rows = (
            spark.read.format(FORMAT).options(**chosen, level="record", mode="DROPMALFORMED", whenChanged="skip").load()
        )
        return normal(rows).where(F.col("topic").isin(list(topics)))

    with ExitStack() as kept:

        def all_batches() -> "tuple[DataFrame, Measured]":
            rows = kept.enter_context(persisted(batches_of(spark, options)))
            return rows, measured(rows)

        def all_indexes() -> "DataFrame":
            rows = kept.enter_context(persisted(indexes_of(spark, options)))
            rows.count()
            return rows

        if compacted is not None:
            batches, counted = all_batches()
            yield without_unread(Levels(batches, None, counted, (), (), (), records, compacted))
            return
        unread: dict[Key, Unread] = {}
        checkpoints = small(options, "checkpoint", unread)
        # What is below the high watermarks that were just read is in both, whichever is read first.
        with ThreadPoolExecutor(1) as thread:
            indexing = thread.submit(all_indexes)
            batches, counted = all_batches()
            indexes = indexing.result()
        epochs, segments = small(options, "epoch", unread), small(options, "segment", unread)
        beside = small(options, "segment", unread, beside_rows)
        levels = Levels(batches, indexes, counted, checkpoints, epochs, segments, records, None, unread, beside)
        directories = by_directory(parse(options))
        yield without_unread(levels._replace(of_directories=directories))


def indexes_of(spark: "SparkSession", options: dict[str, str]) -> "DataFrame":
    return normal(spark.read.format(FORMAT).options(**options, level="index", whenChanged="skip").load())


def batches_of(spark: "SparkSession", options: dict[str, str]) -> "DataFrame":
    schema = schemas.REPLICA_BATCH
    chosen = type(schema)([field for field in schema if field.name in BATCH])
    rows = spark.read.format(FORMAT).schema(chosen).options(**options, level="batch", whenChanged="report").load()
    return by_log(normal(rows))


def by_log(batches: "DataFrame") -> "DataFrame":
    """The replicas of a partition together, and each in the order of its files: then no rule has to move or sort them
    again."""
    return batches.repartition(*PARTITION).sortWithinPartitions(*REPLICA, "segment", "position", "base_offset")


def small(
    options: dict[str, str],
    level: str,
    unread: dict[Key, Unread],
    rows_of: Callable[[Replica], Iterator[Row]] | None = None,
) -> list[Row]:
    """The rows of all logs but those that cannot be read, which are noted in `unread`. `rows_of`: others than the
    level's."""
    rows: list[Row] = []
    rows_of = ROWS_OF[level] if rows_of is None else rows_of
    for replica in replicas(parse({**options, "level": level})):
        try:
            rows += [{**replica._asdict(), **row} for row in rows_of(replica)]
        except LogChanged:
            unread[key_of(replica._asdict())] = Unread(CHANGED, WHY[CHANGED])
        except UnreadableLog as error:
            unread[key_of(replica._asdict())] = Unread(UNREADABLE, error.problem)
    return rows


def unread_segment(key: Key, segment: int, fault: str) -> Unread:
    if fault != UNREADABLE or segment == NO_SEGMENT:
        return Unread(fault, WHY[fault])
    _, directory, topic, _, partition = key
    name = directory_name(TopicPartition(topic, partition))
    return Unread(fault, f"{directory}/{name}/{file_name(segment, '.log')} cannot be read")


def without_unread(levels: Levels) -> Levels:
    """Without the replicas that could not be read. What retention took meanwhile from a log's front is not missed."""
    first: dict[Key, int] = {}
    for row in levels.segments:
        first[key_of(row)] = min(row["segment"], first.get(key_of(row), row["segment"]))
    gone = {
        key: unread_segment(key, counted["unread"], counted["why_unread"])
        for key, counted in levels.measured.items()
        if counted["unread"] is not None and counted["unread"] >= first.get(key, 0)
    }
    gone |= levels.unread  # with the system's own words
    if not gone:
        return levels

    def rest(rows: Sequence[Row]) -> list[Row]:
        return [row for row in rows if key_of(row) not in gone]

    keys = [dict(zip(REPLICA, key, strict=True)) for key in gone]
    others = F.broadcast(frame(levels.batches.sparkSession, keys, schemas.rows(*KEYS)))
    return levels._replace(
        batches=levels.batches.join(others, list(REPLICA), "left_anti"),
        indexes=None if levels.indexes is None else levels.indexes.join(others, list(REPLICA), "left_anti"),
        measured={key: counted for key, counted in levels.measured.items() if key not in gone},
        checkpoints=rest(levels.checkpoints),
        epochs=rest(levels.epochs),
        segments=rest(levels.segments),
        beside=rest(levels.beside),
        unread=gone,
    )
