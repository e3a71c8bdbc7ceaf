"""The declared topic as a stream; and where columns are to be inferred, the sample that they are inferred from."""

from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession

from strandline_spark.jobs.ingest.declaration import Pipeline
from strandline_spark.jobs.ingest.inferring import infer, keep, kept
from strandline_spark.tables.table import require_local

FORMAT = "strandline"
SAMPLE = 1000  # records


def read_topic(spark: SparkSession, pipeline: Pipeline) -> DataFrame:
    """Topic rows, as they come."""
    return spark.readStream.format(FORMAT).options(**pipeline.declared.source.reader_options()).load()


def with_columns(pipeline: Pipeline, spark: SparkSession) -> Pipeline:
    """Where they are to be inferred: by the topic's first records, or as a run before this one has inferred them."""
    if not pipeline.infers:
        return pipeline
    path = f"{require_local(pipeline.checkpoint, 'schema inferred for a')}.columns.json"
    columns = kept(path)
    if columns is None:
        options = pipeline.declared.source.reader_options() | {"startingOffsets": "earliest"}
        sample = spark.read.format(FORMAT).options(**options).load().select("value").limit(SAMPLE)
        columns = infer(bytes(row.value) if row.value is not None else None for row in sample.collect())
        keep(columns, path)
    return replace(pipeline, columns=columns)
