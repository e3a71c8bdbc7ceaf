"""The same through Spark: lines are parted, parts meet at their keys, and each key is judged where it is."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from strandline.base.value import Value
from strandline.history.recorded import Line
from strandline_spark.jobs.histories.judging import judge_parts
from strandline_spark.jobs.histories.parts import (
    ASSIGNED,
    Part,
    lines_of_rows,
    lines_of_text,
    marks_in,
    parts_in,
)
from strandline_spark.schemas import HISTORY_JUDGED, HISTORY_LINE, HISTORY_MARK, HISTORY_PART

KEY = ("topic", "topic_id", "partition")
BATCH_ROWS = 2000
Batches = Iterable[pa.RecordBatch]
T = TypeVar("T", bound=Value)


def judged_histories(lines: DataFrame) -> DataFrame:
    """`lines`: a column `value` with a line of JSON each (and `file`, for complaints), or the columns of HISTORY_LINE.
    Rows of HISTORY_JUDGED."""
    read = lines_of_text_batches if "value" in lines.columns else lines_of_row_batches
    if "value" not in lines.columns:
        lines = lines.select(*[name for name in HISTORY_LINE.names if name in lines.columns])
    parts = lines.mapInArrow(through(read, parts_in, HISTORY_PART), HISTORY_PART)
    marks = lines.mapInArrow(through(read, marks_in, HISTORY_MARK), HISTORY_MARK)
    return judged_parts(parts.unionByName(assigned(marks)))


def assigned(marks: DataFrame) -> DataFrame:
    """Each new start of a process, at each key that the process reads in its run. Rows of HISTORY_PART."""
    is_start = F.col("content").isNotNull()
    met = marks.groupBy("run", "process").agg(
        F.collect_set(F.when(~is_start, F.struct(*KEY))).alias("keys"),
        F.collect_list(F.when(is_start, F.struct("index", "content"))).alias("starts"),
    )
    each = met.select("run", F.explode("starts").alias("start"), "keys").select("run", "start", F.explode("keys"))
    return each.select(
        "run",
        *[F.col(f"col.{name}").alias(name) for name in KEY],
        F.col("start.index").alias("index"),
        F.lit(ASSIGNED).alias("role"),
        F.col("start.content").alias("content"),
    )


def judged_parts(parts: DataFrame) -> DataFrame:
    """Parts of one key must be together, and in order; how they are spread over machines does not matter."""
    place: list[Column] = [F.col(name) for name in ("run", *KEY)]
    together = parts.repartition(*place).sortWithinPartitions(*place, "index", "role")

    def judge(batches: Batches) -> Iterator[pa.RecordBatch]:
        rows = chain.from_iterable(
            zip(*(column.to_pylist() for column in batch.columns), strict=True) for batch in batches
        )
        return batched(judge_parts(Part(*row) for row in rows), HISTORY_JUDGED)

    return together.select(*HISTORY_PART.names).mapInArrow(judge, HISTORY_JUDGED)


# --- between rows and Spark's batches


def through(
    read: Callable[[Batches], Iterator[Line | str]],
    work: Callable[[Iterable[Line | str]], Iterable[T]],
    schema: StructType,
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        return batched(work(read(batches)), schema)

    return run


def batched(values: Iterable[Value], schema: StructType) -> Iterator[pa.RecordBatch]:
    arrow = to_arrow_schema(schema)
    rows: list[Value] = []
    for value in values:
        rows.append(value)
        if len(rows) == BATCH_ROWS:
            yield batch_of(rows, arrow)
            rows.clear()
    if rows:
        yield batch_of(rows, arrow)


def batch_of(rows: list[Value], schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.array([getattr(row, field.name) for row in rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def lines_of_text_batches(batches: Batches) -> Iterator[Line | str]:
    for batch in batches:
        texts = batch.column("value").to_pylist()
        if "file" not in batch.schema.names:
            yield from lines_of_text(texts)
            continue
        files = batch.column("file").dictionary_encode()
        for file, text in zip(files.to_pylist(), texts, strict=True):
            yield from lines_of_text((text,), f"{file}: ")


def lines_of_row_batches(batches: Batches) -> Iterator[Line | str]:
    for batch in batches:
        yield from lines_of_rows(batch.to_pylist())


# --- what people ask


def violations(rows: DataFrame) -> DataFrame:
    """The anomalies that nothing excuses."""
    return rows.where(F.col("name").isNotNull() & F.col("tolerated").isNull())


def tolerated(rows: DataFrame) -> DataFrame:
    """The anomalies that something excuses: `tolerated` says what."""
    return rows.where(F.col("name").isNotNull() & F.col("tolerated").isNotNull())


def keys(rows: DataFrame) -> DataFrame:
    """run, topic, topic_id, partition, operations, writes, reads: what was judged."""
    about = rows.where(F.col("operations").isNotNull())
    return about.select("run", "topic", "topic_id", "partition", "operations", "writes", "reads")


def problems(rows: DataFrame) -> DataFrame:
    """What could not be judged: `problem` says why, `lines` how many lines that is about."""
    return rows.where(F.col("problem").isNotNull())


def counts(rows: DataFrame) -> DataFrame:
    """name, tolerated, anomalies: how many of each name there are, for each reason that excuses them."""
    found = rows.where(F.col("name").isNotNull()).groupBy("name", "tolerated")
    return found.agg(F.count(F.lit(1)).alias("anomalies")).orderBy("name", "tolerated")
