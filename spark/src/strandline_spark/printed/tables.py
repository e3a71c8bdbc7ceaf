"""Topics and tables."""

from typing import Annotated, Literal, TypedDict

from strandline.cli.printed.words import Milliseconds, Partition, Topic, says
from strandline_spark.sink.exactly_once.leftovers import Fate


class IngestedPartition(TypedDict):
    """The offsets of one partition that a table has accounted for, in all runs."""

    topic: Topic
    partition: Partition
    first_offset: int
    end_offset: Annotated[int, says("the offset after the last")]
    records: Annotated[int, says("records that were counted")]
    missing: Annotated[int | None, says("offsets that were not counted; null if SQL left records out")]
    duplicates: Annotated[int, says("records that were counted twice")]


class IngestedTable(TypedDict):
    """What all runs with this checkpoint have written."""

    rows_in: Annotated[int, says("records that were read")]
    rows: int
    quarantined: int
    dropped: Annotated[int, says("by expectations")]
    filtered: Annotated[int, says("records that SQL left out; below 0: it made several rows of one")]
    dense: Annotated[bool | None, says("every offset is accounted for once; null if SQL left records out")]
    partitions: list[IngestedPartition]


class Ingested(TypedDict):
    """A run of `ingest`, and where its table is now."""

    batches: int
    rows_in: Annotated[int, says("records that this run read")]
    rows_written: int
    quarantined: int
    dropped: Annotated[int, says("by expectations")]
    filtered: Annotated[int, says("records that SQL left out; below 0: it made several rows of one")]
    expectations_not_met: Annotated[dict[str, int], says("rows, by the expectation's name")]
    seconds: float
    stopped: Annotated[bool, says("by a signal, before everything was read")]
    application: Annotated[str, says("the query's id, which its checkpoint keeps")]
    table: IngestedTable
    path: Annotated[str, says("the table's")]
    format: Literal["parquet", "iceberg", "delta"]


class Emitted(TypedDict):
    """The rows that are in a topic, each once."""

    topic: Topic
    rows: int
    lanes: Annotated[int, says("files that had rows")]
    partitions: Annotated[dict[str, int], says("rows, by partition")]


class OpenTransaction(TypedDict):
    """A transaction that an exactly-once sink has left open."""

    name: Annotated[str, says("the query's id, or the write's transactionName")]
    transactional_id: str
    opened_ms: Milliseconds
    times_out_ms: Annotated[int, says("when its coordinator aborts it: milliseconds since 1970, UTC")]
    age_min: Annotated[int, says("minutes")]
    partitions: Annotated[list[str], says("topic-partition")]
    fate: Annotated[Fate, says("wait: it is not old enough")]
    result: Annotated[str, says("what was done, or with --dry-run would be done")]
