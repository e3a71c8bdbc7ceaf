"""`lag`: what samples of readers' positions say: who is behind, by how much, since when, and how evenly it lies."""

from pyspark.sql import DataFrame

from strandline_spark.jobs.lag import transforms
from strandline_spark.schemas import LAG_SAMPLE


def lag(samples: DataFrame) -> dict[str, DataFrame]:
    """`samples`: schemas.LAG_SAMPLE, as `lag.frames.read_samples` gives them. The tables of a report, by name:
    summary, over_time, throughput and skew (see `lag.transforms`), a row for each kind of reader, reader and topic."""
    names = samples.columns
    assert names == LAG_SAMPLE.fieldNames(), names
    return {
        "summary": transforms.summary(samples),
        "over_time": transforms.over_time(samples),
        "throughput": transforms.throughput(samples),
        "skew": transforms.partition_skew(samples),
    }
