"""From good rows to the table's: SQL, the columns that it is partitioned by, and what is expected of each row.

The rows come out with two hidden columns: which expectations a row does not meet, as bits, and what the quarantine
table says of it if it is to go there. Whoever writes the rows routes and counts them by these.
"""

from collections.abc import Sequence

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline_spark.errors import StrandlineError
from strandline_spark.jobs.ingest.declaration import Expectation, Partition, Pipeline
from strandline_spark.jobs.ingest.parsing import QUARANTINE_FIELDS, RAW, first_line
from strandline_spark.tables.schema import quoted
from strandline_spark.tables.writing import FAILED, HIDDEN, OFFSETS, QUARANTINE

VIEW = "source"


def shape(parsed: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Parsed rows in, rows for the writer out. With SQL only good rows come out: the bad ones have no place in it."""
    if pipeline.sql is not None:
        rows = with_sql(parsed.where(F.col(QUARANTINE).isNull()).drop(QUARANTINE, RAW), pipeline.sql)
        rows = rows.withColumn(QUARANTINE, F.lit(None).cast(QUARANTINE_FIELDS))
    else:
        rows = parsed
    return judge(partitioned(rows, pipeline.partitions), pipeline.expectations).drop(RAW)


def with_sql(good: DataFrame, sql: str) -> DataFrame:
    """The user's query over a view named `source`. Raises StrandlineError if it is wrong, or loses the offsets."""
    session = good.sparkSession
    catalog = session.catalog
    theirs = session.table(VIEW) if catalog.tableExists(VIEW) and catalog.getTable(VIEW).isTemporary else None
    good.createOrReplaceTempView(VIEW)
    try:
        rows = session.sql(sql)
    except (AnalysisException, ParseException) as error:
        raise StrandlineError(f"[transform] {first_line(error)}", f"{VIEW} has {', '.join(good.columns)}") from None
    finally:
        catalog.dropTempView(VIEW)
        if theirs is not None:  # a view of that name in somebody's notebook
            theirs.createOrReplaceTempView(VIEW)
    missing = [name for name in OFFSETS if name not in rows.columns]
    if missing:
        raise StrandlineError(
            f"[transform] the SQL leaves out {', '.join(missing)}: every row must keep the place of its record",
            f"add {', '.join(missing)} to its SELECT",
        )
    if rows.isStreaming:
        raise StrandlineError("[transform] the SQL runs on batches and cannot read a stream itself")
    return rows


def partitioned(rows: DataFrame, partitions: Sequence[Partition]) -> DataFrame:
    for each in partitions:
        if each.sql is not None:
            rows = with_column(rows, each.name, each.sql)
    return rows


def with_column(rows: DataFrame, name: str, sql: str) -> DataFrame:
    if name in rows.columns:
        raise StrandlineError(
            f"[sink] partition_by makes a column {name}, which the rows already have", f"write only {name!r}"
        )
    try:
        return rows.withColumn(name, F.expr(sql))
    except (AnalysisException, ParseException) as error:
        raise StrandlineError(f"[sink] partition_by {name}: {first_line(error)}") from None


def judge(rows: DataFrame, expectations: Sequence[Expectation]) -> DataFrame:
    """Each expectation is a bit of FAILED; rows for quarantine get their reason, unless they have one already."""
    columns = [name for name in rows.columns if name not in (*HIDDEN, RAW)]
    is_good = F.col(QUARANTINE).isNull()
    bits = F.lit(0).cast("bigint")
    for bit, expectation in enumerate(expectations):
        is_met = checked(rows, expectation)
        bits = bits + F.when(is_good & ~F.coalesce(is_met, F.lit(False)), F.lit(1 << bit).cast("bigint")).otherwise(0)
    rows = rows.withColumn(FAILED, bits)
    aside = [(bit, each) for bit, each in enumerate(expectations) if each.action == "quarantine"]
    if not aside:
        return rows
    reasons = [F.when(has_bit(bit), F.lit(f"{each.name}: not {each.check}")) for bit, each in aside]
    names = [F.when(has_bit(bit), F.lit(each.name)) for bit, each in aside]
    rejection = F.struct(
        (F.col("timestamp") if is_a(rows, "timestamp", "timestamp") else F.lit(None))
        .cast("timestamp")
        .alias("timestamp"),
        (F.col("key").cast("binary") if "key" in columns else F.lit(None).cast("binary")).alias("key"),
        (F.col(RAW) if RAW in rows.columns else F.lit(None).cast("binary")).alias("value"),
        F.to_json(F.struct(*[F.col(quoted(name)) for name in columns])).alias("row"),
        F.concat_ws(", ", *names).alias("rule"),
        F.concat_ws("; ", *reasons).alias("reason"),
    )
    is_aside = F.col(FAILED).bitwiseAND(sum(1 << bit for bit, _ in aside)) != 0
    return rows.withColumn(QUARANTINE, F.when(is_aside, rejection).otherwise(F.col(QUARANTINE)))


def is_a(rows: DataFrame, name: str, kind: str) -> bool:
    return name in rows.columns and rows.schema[name].dataType.simpleString() == kind


def has_bit(bit: int) -> Expression:
    return F.col(FAILED).bitwiseAND(1 << bit) != 0


def checked(rows: DataFrame, expectation: Expectation) -> Expression:
    try:
        expression = F.expr(expectation.check)
        kind = rows.withColumn(FAILED, expression).schema[FAILED].dataType.simpleString()
    except (AnalysisException, ParseException) as error:
        raise StrandlineError(f"expectation {expectation.name!r}: {first_line(error)}") from None
    if kind != "boolean":
        raise StrandlineError(f"expectation {expectation.name!r}: {expectation.check} is {kind}, not true or false")
    return expression


def dropped_bits(expectations: Sequence[Expectation]) -> int:
    """The bits of the expectations whose rows no table takes."""
    return sum(1 << bit for bit, each in enumerate(expectations) if each.action == "drop")
