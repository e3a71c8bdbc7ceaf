"""Topic → table, exactly once.

    from strandline_spark import ingest, session
    outcome = ingest("orders.toml", spark=session())

`ingest` runs a declared pipeline to its end; `good_and_bad` is what it does with records, as DataFrames; `ingesting`
gives the running query to a notebook.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from strandline_spark.jobs.ingest import declaration
from strandline_spark.jobs.ingest.batch import Taken
from strandline_spark.jobs.ingest.declaration import Pipeline
from strandline_spark.jobs.ingest.parsing import parse
from strandline_spark.jobs.ingest.reading import read_topic, with_columns
from strandline_spark.jobs.ingest.running import IngestResult, Running
from strandline_spark.jobs.ingest.shaping import dropped_bits, shape
from strandline_spark.spark import session
from strandline_spark.tables.writing import FAILED, HIDDEN, OFFSETS, QUARANTINE

Declared = Pipeline | str | Mapping[str, Any]


def ingest(declared: Declared, *, spark: SparkSession | None = None, records: DataFrame | None = None) -> IngestResult:
    """Run until everything is in the table (trigger available-now), or until somebody stops the query.

    `declared`: the path of a TOML file, its tables as a dict, or a Pipeline. `records`: a stream of topic rows to take
    in place of the declared source. Raises StrandlineError; what was committed before stays, and the next run goes on.
    """
    return ingesting(declared, spark=spark, records=records).wait()


def ingesting(
    declared: Declared,
    *,
    spark: SparkSession | None = None,
    records: DataFrame | None = None,
    on_batch: Callable[[Taken], None] | None = None,
) -> Running:
    """Start a pipeline and return at once: `.query` is Spark's, `.stop()` ends it after a batch, `.wait()` waits."""
    pipeline = read(declared)
    if records is None:
        spark = spark or session()
        pipeline = with_columns(pipeline, spark)
        records = read_topic(spark, pipeline)
    return Running(records, pipeline, on_batch)


def read(declared: Declared) -> Pipeline:
    match declared:
        case Pipeline():
            return declared
        case str():
            return declaration.read_file(declared)
    return declaration.pipeline(declared)


def good_and_bad(records: DataFrame, declared: Declared) -> tuple[DataFrame, DataFrame]:
    """Topic rows in; the table's rows and the quarantine table's rows out. Nothing is written, nothing is counted."""
    pipeline = read(declared)
    parsed = parse(records, pipeline.declared.value, pipeline.declared.key, pipeline.columns)
    rows = shape(parsed, pipeline)
    taken = F.col(QUARANTINE).isNull() & (F.col(FAILED).bitwiseAND(dropped_bits(pipeline.expectations)) == 0)
    bad = rows.where(F.col(QUARANTINE).isNotNull()).select(*OFFSETS, f"{QUARANTINE}.*")
    if pipeline.sql is not None:
        also = parsed.where(F.col(QUARANTINE).isNotNull()).select(*OFFSETS, f"{QUARANTINE}.*")
        bad = bad.unionByName(also)
    return rows.where(taken).drop(*HIDDEN), bad
