"""What notebooks ask the rows of a campaign. Each takes rows of `schemas.SEED`, as `jobs.simulate` gives them."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline_spark.jobs.simulate.definition import AGAIN, FIRST
from strandline_spark.jobs.simulate.seed_row import DIED, OK, TIMED_OUT

COMPARED = ("verdict", "check", "digest", "virtual_ms", "events", "operations", "exceeded")


def failures(rows: DataFrame) -> DataFrame:
    """seed, verdict, check, error, replay: of every seed that is not ok, with the command that shows it."""
    failed = rows.where((F.col("run") == FIRST) & (F.col("verdict") != OK))
    return failed.select("seed", "verdict", "check", "error", "replay").orderBy("seed")


def coverage(rows: DataFrame) -> DataFrame:
    """kind, seeds (that this kind of fault struck in), strikes."""
    struck = rows.where(F.col("run") == FIRST).select("seed", F.explode("faults").alias("kind", "strikes"))
    counted = struck.groupBy("kind").agg(F.count("seed").alias("seeds"), F.sum("strikes").alias("strikes"))
    return counted.orderBy("kind")


def differences(rows: DataFrame) -> DataFrame:
    """seed, digest, other: of seeds that did not do the same when they were run again."""
    own = [F.col(name).alias(f"other_{name}") for name in COMPARED]
    second = rows.where(F.col("run") == AGAIN).select("seed", *own)
    ended = ~F.col("verdict").isin(TIMED_OUT, DIED) & ~F.col("other_verdict").isin(TIMED_OUT, DIED)
    is_other = F.lit(False)
    for name in COMPARED:
        is_other = is_other | ~F.col(name).eqNullSafe(F.col(f"other_{name}"))
    both = rows.where(F.col("run") == FIRST).join(second, "seed")
    return both.where(ended & is_other).select("seed", "digest", F.col("other_digest").alias("other")).orderBy("seed")
