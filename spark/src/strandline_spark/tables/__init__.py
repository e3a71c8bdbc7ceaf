"""Tables that take each batch exactly once: Parquet, Iceberg, Delta.

`open_table` opens one for writing, and makes it if there is none; `read_table` reads exactly what is committed.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from strandline_spark.errors import StrandlineError
from strandline_spark.tables.table import Table, Written

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

__all__ = ["FORMATS", "Format", "Table", "Written", "open_table", "read_table"]

Format = Literal["parquet", "iceberg", "delta"]
FORMATS: tuple[str, ...] = get_args(Format)


def open_table(
    format: str,  # noqa: A002  # Spark's name
    path: str,
    *,
    application: str,
    schema: "StructType",
    partition_by: Sequence[str] = (),
    catalog: Mapping[str, str] | None = None,
) -> Table:
    """A table for writing, made if it is not there. `application` names who counts the batches (a query's id).

    Raises StrandlineError if it has other columns or another partitioning, or if another process writes it.
    """
    match format:
        case "parquet":
            from strandline_spark.tables.parquet import ParquetTable

            return ParquetTable(path, application=application, schema=schema, partition_by=partition_by)
        case "iceberg":
            from strandline_spark.tables.iceberg import IcebergTable

            return IcebergTable(
                path, application=application, schema=schema, partition_by=partition_by, catalog=catalog
            )
        case "delta":
            from strandline_spark.tables.delta import DeltaTable

            return DeltaTable(path, application=application, schema=schema, partition_by=partition_by)
    raise StrandlineError(f"a table's format is one of {', '.join(FORMATS)}, not {format!r}")


def read_table(
    spark: "SparkSession",
    format: str,  # noqa: A002  # Spark's name
    path: str,
    catalog: Mapping[str, str] | None = None,
) -> "DataFrame":
    """Exactly the committed rows, also while a batch is under way or was cut off."""
    match format:
        case "parquet":
            from strandline_spark.tables import parquet

            return parquet.read(spark, path)
        case "iceberg":
            from strandline_spark.tables import iceberg

            return iceberg.read(spark, path, catalog)
        case "delta":
            from strandline_spark.tables import delta

            return delta.read(spark, path)
    raise StrandlineError(f"a table's format is one of {', '.join(FORMATS)}, not {format!r}")
