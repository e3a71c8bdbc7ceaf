"""A table's files as a DataFrame, where a log or a catalog says which they are and Spark alone could not know."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from strandline.base.value import Value
from strandline_spark.tables.files import DataFile
from strandline_spark.tables.schema import arrow_schema
from strandline_spark.tables.writing import opened_parquet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class Piece(Value, frozen=True):
    path: str
    values: dict[str, str | None]


def read_files(spark: "SparkSession", schema: "StructType", files: Sequence[DataFile], root: str) -> "DataFrame":
    """All rows of some files, of which those without a scheme or a leading slash lie below `root`."""
    if not files:
        return spark.createDataFrame([], schema)
    prefix = f"{root.rstrip('/')}/" if root else ""
    pieces = [
        Piece(file.path if "://" in file.path or file.path.startswith("/") else prefix + file.path, file.values)
        for file in files
    ]
    texts = [(msgspec.json.encode(piece).decode(),) for piece in pieces]
    wanted = arrow_schema(schema)
    plans = spark.createDataFrame(texts, "piece string").repartition(min(len(texts), 2 * parallelism(spark)))

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for text in batch.column("piece").to_pylist():
                yield from read_piece(msgspec.json.decode(text, type=Piece), wanted)

    return plans.mapInArrow(read, schema)


def parallelism(spark: "SparkSession") -> int:
    return int(spark.sparkContext.defaultParallelism)


def read_piece(piece: Piece, wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
    with opened_parquet(piece.path) as file:
        for batch in file.iter_batches(1 << 14):
            yield pa.RecordBatch.from_arrays([column_of(batch, field, piece.values) for field in wanted], schema=wanted)


def column_of(batch: pa.RecordBatch, field: Any, values: dict[str, str | None]) -> pa.Array:
    if field.name in batch.schema.names:
        return batch.column(field.name).cast(field.type)
    text = values.get(field.name)  # a column that the table is partitioned by, or one that the file is too old for
    if text is None:
        return pa.nulls(batch.num_rows, field.type)
    return pa.repeat(pa.scalar(text).cast(field.type), batch.num_rows)
