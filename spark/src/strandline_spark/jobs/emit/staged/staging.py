"""Any DataFrame as rows for a topic, staged: from then on the rows and their order are fixed, whatever the query is.

The columns are those of Spark's Kafka connector (key, value, headers, partition), and `timestamp`.
"""

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    ByteType,
    DataType,
    IntegerType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from strandline_spark.errors import BadOption
from strandline_spark.jobs.emit.checkpoint import Checkpoint
from strandline_spark.schemas import TOPIC_ROW_WITH_HEADERS

KEY, VALUE, HEADERS, PARTITION, TIMESTAMP_MS = "key", "value", "headers", "partition", "timestamp_ms"
ORDER = "order"
HEADERS_TYPE = TOPIC_ROW_WITH_HEADERS["headers"].dataType
CAST = "CAST it: CAST({0} AS STRING), or to_json({0}) if it has fields"


def message_rows(df: DataFrame, *, key: str | None = None, value: str | None = None) -> DataFrame:
    """The rows to be staged: key binary, value binary [, headers, partition int, timestamp_ms long].

    `key` and `value` are SQL expressions over the columns of `df`; without them its columns key and value. If it has no
    column `value` and none is given, each row becomes a JSON object of all its columns; then only an expression makes
    a key. Raises BadOption for columns of a type that no topic has.
    """
    if value is None and VALUE not in df.columns:
        return df.select(bytes_of(df, key, KEY), F.to_json(F.struct("*")).cast("binary").alias(VALUE))
    columns = [bytes_of(df, key or (KEY if KEY in df.columns else None), KEY), bytes_of(df, value or VALUE, VALUE)]
    fields = df.schema
    if HEADERS in df.columns and wanted(fields, HEADERS, (type(HEADERS_TYPE), NullType), "array<struct<key,value>>"):
        headers = F.col(HEADERS).cast(HEADERS_TYPE)
        nameless = F.exists(headers, lambda header: header["key"].isNull())
        columns.append(F.when(nameless, F.raise_error(F.lit("a header has no key"))).otherwise(headers).alias(HEADERS))
    if PARTITION in df.columns and wanted(fields, PARTITION, (IntegerType, ShortType, ByteType, NullType), "int"):
        columns.append(F.col(PARTITION).cast("int").alias(PARTITION))
    if "timestamp" in df.columns and wanted(fields, "timestamp", (TimestampType, NullType), "timestamp"):
        made = F.unix_millis(F.col("timestamp"))
        columns.append(F.when(made < 0, too_early(F.col("timestamp"))).otherwise(made).alias(TIMESTAMP_MS))
    return df.select(*columns)


def too_early(timestamp: Column) -> Column:
    """Kafka has no times before 1970: brokers take -1 for none."""
    why = F.lit(" is before 1970 (UTC): records have no such times; leave it null for the time of writing")
    return F.raise_error(F.concat(F.lit("the timestamp "), timestamp.cast("string"), why))


def bytes_of(df: DataFrame, expression: str | None, name: str) -> Column:
    if expression is None:
        return F.lit(None).cast("binary").alias(name)
    found = df.select(F.expr(expression)).schema.fields[0].dataType
    if not isinstance(found, StringType | BinaryType | NullType):
        problem = f"{name} attribute type must be a string or binary, and {expression} is {found.simpleString()}"
        raise BadOption(problem, CAST.format(expression))
    return F.expr(expression).cast("binary").alias(name)


def wanted(fields: StructType, name: str, types: tuple[type[DataType], ...], said: str) -> bool:
    """Is the column to be sent? True; raises BadOption if it is of another type."""
    found = fields[name].dataType
    if not isinstance(found, types):
        raise BadOption(f"{name} attribute type must be {said}, and is {found.simpleString()}", "rename or CAST it")
    return True


def stage(rows: DataFrame, checkpoint: Checkpoint, lanes: int | None) -> None:
    """Write the rows into the checkpoint's folder, one file for each partition of the DataFrame, or `lanes` files."""
    checkpoint.forget_rows()
    spread = rows if lanes is None else in_order(rows) if lanes == 1 else rows.repartition(lanes)
    spread.write.mode("overwrite").parquet(f"file://{checkpoint.rows}")  # no URI: Spark takes %20 for itself


def in_order(rows: DataFrame) -> DataFrame:
    """All rows in one partition, in their order: `coalesce(1)` begins with a partition whose place Spark knows."""
    numbered = rows.withColumn(ORDER, F.monotonically_increasing_id())
    return numbered.repartition(1).sortWithinPartitions(ORDER).drop(ORDER)


def staged_rows(checkpoint: Checkpoint) -> dict[str, int]:
    """How many rows each staged file has; files without any are left out."""
    counts = {name: pq.read_metadata(checkpoint.rows / name).num_rows for name in checkpoint.staged_files()}
    return {name: rows for name, rows in counts.items() if rows}


def check_partitions(checkpoint: Checkpoint, partitions: int) -> None:
    """Raises BadOption if a staged row names a partition that the topic does not have (by the files' statistics)."""
    for name in checkpoint.staged_files():
        metadata = pq.read_metadata(checkpoint.rows / name)
        for group in range(metadata.num_row_groups):
            columns = [metadata.row_group(group).column(at) for at in range(metadata.num_columns)]
            for column in columns:
                known = column.statistics if column.path_in_schema == PARTITION else None
                if known is None or not known.has_min_max:
                    continue
                for found in (known.min, known.max):
                    if not 0 <= found < partitions:
                        problem = f"rows name partition {found}, and the topic has the partitions 0 to {partitions - 1}"
                        raise BadOption(problem, "correct the column partition, or leave it null")
