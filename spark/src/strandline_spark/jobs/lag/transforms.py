"""Lag, throughput, latency and skew, as DataFrames from DataFrames.

Samples (schemas.LAG_SAMPLE) say how far readers were; rows of topics (schemas.TOPIC_ROW, or a table made of them) say
what was written, and when.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

READER = ("kind", "reader", "topic")
QUANTILES = (0.5, 0.95, 0.99)
ACCURACY = 10_000


def lag_by_partition(positions: DataFrame, ends: DataFrame) -> DataFrame:
    """Records that were not read yet, a row for each of `positions`, with all its columns and
    (end_offset long, lag long, expired long).

    `positions`: topic, partition, position (the next offset to be read; null: unknown), and whose it is.
    `ends`: topic, partition, log_start_offset, end_offset (high watermark, or last stable offset). What was deleted
    before it was read is `expired`, and no lag. Partitions without an end have null.
    """
    start, end, position = F.col("log_start_offset"), F.col("end_offset"), F.col("position")
    return (
        positions.join(ends.select("topic", "partition", start, end), on=["topic", "partition"], how="left")
        .withColumn("lag", F.when(position.isNotNull(), at_least_0(end - F.greatest(position, start))))
        .withColumn("expired", at_least_0(start - position))
        .drop("log_start_offset")
    )


def at_least_0(value: Column) -> Column:
    """Null stays null."""
    return F.when(value.isNotNull(), F.greatest(value, F.lit(0)))


def thinned(samples: DataFrame, times: int = 2000) -> DataFrame:
    """The samples, or, where there are more than about `times` different times, the last of each stretch of time."""
    bounds = samples.agg(F.min("time").cast("double").alias("first"), F.max("time").cast("double").alias("last"))
    whole = samples.crossJoin(F.broadcast(bounds))
    stretch = F.floor((F.col("time").cast("double") - F.col("first")) * times / (F.col("last") - F.col("first") + 1e-3))
    last = F.row_number().over(Window.partitionBy(*READER, "partition", stretch).orderBy(F.desc("time")))
    return whole.withColumn("nth", last).where("nth = 1").select(*samples.columns)


def last_of(samples: DataFrame) -> DataFrame:
    """The latest samples of each reader and topic, a row for each partition."""
    newest = F.rank().over(Window.partitionBy(*READER).orderBy(F.desc("time")))
    return samples.withColumn("newest", newest).where("newest = 1").drop("newest")


def over_time(samples: DataFrame) -> DataFrame:
    """A row for each time, kind, reader and topic: partitions, lag and lag_max (records), delay_ms (the worst)."""
    return (
        samples.groupBy("time", *READER)
        .agg(
            F.count("*").alias("partitions"),
            F.sum("lag").alias("lag"),
            F.max("lag").alias("lag_max"),
            F.max("delay_ms").alias("delay_ms"),
            F.sum("expired").alias("expired"),
        )
        .orderBy("time", *READER)
    )


def rates(samples: DataFrame) -> DataFrame:
    """The samples, each with written_per_s and read_per_s: records a second since the sample before of the same reader
    and partition. Null for the first one, and where an end or a position fell (truncation, reset)."""
    before = Window.partitionBy(*READER, "partition").orderBy("time")
    seconds = F.col("time").cast("double") - F.lag("time").over(before).cast("double")

    def per_second(name: str) -> Column:
        moved = F.col(name) - F.lag(name).over(before)
        return F.when((moved >= 0) & (seconds > 0), moved / seconds)

    return samples.withColumns({"written_per_s": per_second("end_offset"), "read_per_s": per_second("position")})


def throughput(samples: DataFrame) -> DataFrame:
    """A row for each time, kind, reader and topic: written_per_s and read_per_s over all partitions (null: the first
    time)."""
    sums = [F.sum(name).alias(name) for name in ("written_per_s", "read_per_s")]
    return rates(samples).groupBy("time", *READER).agg(*sums).orderBy("time", *READER)


def summary(samples: DataFrame) -> DataFrame:
    """A row for each kind, reader and topic over all samples: lag and delay at the end and at worst, mean rates, and
    catch_up_s: how long until the lag is 0 if it goes on like this (null: it does not shrink, or there is none)."""
    totals = over_time(samples).join(throughput(samples), on=["time", *READER])
    last = F.max_by("lag", "time")
    seconds = F.max("time").cast("double") - F.min("time").cast("double")
    shrinks = (F.min_by("lag", "time") - last) / seconds
    return (
        totals.groupBy(*READER)
        .agg(
            F.max("partitions").alias("partitions"),
            F.count("*").alias("samples"),
            last.alias("lag"),
            F.max("lag").alias("lag_worst"),
            F.max_by("delay_ms", "time").alias("delay_ms"),
            F.max("delay_ms").alias("delay_ms_worst"),
            F.max("expired").alias("expired"),
            F.avg("written_per_s").alias("written_per_s"),
            F.avg("read_per_s").alias("read_per_s"),
            F.when((seconds > 0) & (shrinks > 0) & (last > 0), last / shrinks).alias("catch_up_s"),
        )
        .orderBy(*READER)
    )


def partition_skew(samples: DataFrame) -> DataFrame:
    """How evenly a topic's records, and a reader's lag, lie over partitions, by the last samples: see `skew`."""
    newest = F.row_number().over(Window.partitionBy(*READER, "partition").orderBy(F.desc("time")))
    last = samples.withColumn("newest", newest).where("newest = 1")
    counted = F.when(F.col("kind") == "topic", F.col("end_offset") - F.col("log_start_offset")).otherwise(F.col("lag"))
    return skew(last.withColumn("count", counted), READER)


def record_skew(rows: DataFrame) -> DataFrame:
    """How evenly records lie over the partitions of each topic: see `skew`. Partitions without a record do not show."""
    return skew(rows.groupBy("topic", "partition").count(), ("topic",))


def skew(counts: DataFrame, by: Sequence[str]) -> DataFrame:
    """`counts`: `by`, partition, count. A row for each `by`: partitions, total, largest, its partition, mean, and
    ratio: the largest by the mean (1: even; the number of partitions: all in one; null: nothing there)."""
    return (
        counts.groupBy(*by)
        .agg(
            F.count("count").alias("partitions"),
            F.sum("count").alias("total"),
            F.max("count").alias("largest"),
            F.max_by("partition", "count").alias("largest_partition"),
            F.avg("count").alias("mean"),
        )
        .withColumn("ratio", F.when(F.col("mean") > 0, F.col("largest") / F.col("mean")))
        .orderBy(*by)
    )


def record_throughput(rows: DataFrame, window: str = "1 second", by: Sequence[str] = ("topic",)) -> DataFrame:
    """Records and bytes (of keys and values) a second in windows of the records' timestamps: `by`, start, end,
    records, bytes, records_per_s, bytes_per_s. Windows without a record have no row."""
    size = F.coalesce(F.octet_length("key"), F.lit(0)) + F.coalesce(F.octet_length("value"), F.lit(0))
    grouped = rows.groupBy(*by, F.window("timestamp", window).alias("window"))
    counted = grouped.agg(F.count("*").alias("records"), F.sum(size).cast("long").alias("bytes"))
    seconds = F.col("window.end").cast("double") - F.col("window.start").cast("double")
    return counted.select(
        *by,
        F.col("window.start").alias("start"),
        F.col("window.end").alias("end"),
        "records",
        "bytes",
        (F.col("records") / seconds).alias("records_per_s"),
        (F.col("bytes") / seconds).alias("bytes_per_s"),
    ).orderBy(*by, "start")


def latency(rows: DataFrame, since: str, until: str, by: Sequence[str] = ()) -> DataFrame:
    """How long it took from the timestamp column `since` to `until`, in milliseconds: `by`, records, p50_ms, p95_ms,
    p99_ms, max_ms. Rows that lack one of them do not count."""
    took = F.unix_millis(F.col(until)) - F.unix_millis(F.col(since))
    quantiles = [F.percentile_approx("took", at, ACCURACY).alias(f"p{round(at * 100)}_ms") for at in QUANTILES]
    known = rows.withColumn("took", took).where("took IS NOT NULL")
    return known.groupBy(*by).agg(F.count("*").alias("records"), *quantiles, F.max("took").alias("max_ms"))
