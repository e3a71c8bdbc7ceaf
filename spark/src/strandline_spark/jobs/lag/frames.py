"""Files of samples, and samples at hand, as DataFrames of LAG_SAMPLE."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.lag.samples import Sample
from strandline_spark.schemas import LAG_SAMPLE, rows

LINE = StructType([*rows("time_ms long").fields, *LAG_SAMPLE.fields[1:]])


def read_samples(spark: SparkSession, *paths: str) -> DataFrame:
    """Samples that `lag --file` or a LagListener wrote: JSON lines, or Parquet where a path ends so.

    Raises StrandlineError if a path is not there.
    """
    missing = [path for path in paths if "://" not in path and not Path(path).exists()]
    if missing:
        raise StrandlineError(f"there is no {missing[0]}", "name files that `strandline pipeline lag --file` wrote")
    lines = [path for path in paths if not path.rstrip("/").endswith(".parquet")]
    tables = [path for path in paths if path not in lines]
    made = [spark.read.schema(LINE).json(lines)] if lines else []
    made += [spark.read.schema(LINE).parquet(*tables)] if tables else []
    whole = made[0] if len(made) == 1 else made[0].unionByName(made[1])
    return samples_frame(whole.where("time_ms IS NOT NULL"))


def samples_frame(lines: DataFrame) -> DataFrame:
    """Lines of samples (time in milliseconds) as LAG_SAMPLE."""
    time = F.timestamp_millis(F.col("time_ms")).alias("time")
    return lines.select(time, *(F.col(field.name).cast(field.dataType) for field in LAG_SAMPLE.fields[1:]))


def frame_of(spark: SparkSession, samples: Iterable[Sample]) -> DataFrame:
    """Samples at hand as LAG_SAMPLE."""
    names = LAG_SAMPLE.fieldNames()[1:]
    made = [(time_of(sample), *(getattr(sample, name) for name in names)) for sample in samples]
    return spark.createDataFrame(made, LAG_SAMPLE)


def time_of(sample: Sample) -> datetime:
    return datetime.fromtimestamp(sample.time_ms / 1000, UTC)
