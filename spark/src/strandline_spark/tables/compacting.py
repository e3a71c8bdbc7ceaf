"""Many small files become few: the same rows, in the same order, by tasks that hold one row group at a time."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from strandline.base.value import Value
from strandline_spark.errors import StrandlineError
from strandline_spark.tables.files import DataFile, Layout, hive_folder, local_path
from strandline_spark.tables.writing import GROUP_BYTES_MAX, OpenFile, in_utc, open_input, opened_parquet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Compacted(Value, frozen=True):
    files_before: int = 0
    files_after: int = 0


class Merge(Value, frozen=True):
    """One task: which files become which."""

    sources: list[str]
    rows: int
    layout: Layout
    name: str
    values: dict[str, str | None]


def plan_merges(groups: Sequence[Sequence[DataFile]], root: str, layout: Layout) -> list[Merge]:
    """`root`: what the files' paths are relative to."""
    merges = []
    for number, group in enumerate(groups):
        values = group[0].values
        assert all(file.values == values for file in group), "files of different partitions"
        name = f"{layout.prefix}-{number:05d}{layout.suffix}"
        relative = "/".join(part for part in (hive_folder(values), name) if part)
        sources = [file.path if is_whole(file.path) else f"{root}/{file.path}" for file in group]
        merges.append(Merge(sources, sum(file.rows for file in group), layout, relative, values))
    return merges


def is_whole(path: str) -> bool:
    return path.startswith(("/", "file:")) or "://" in path


def merge_all(spark: "SparkSession | None", merges: Sequence[Merge]) -> list[DataFile]:
    """Run each merge as a task of Spark, or one after the other here."""
    if spark is None:
        return [merge(each) for each in merges]
    texts = [msgspec.json.encode(merge).decode() for merge in merges]
    plans = spark.createDataFrame([(text,) for text in texts], "plan string").repartition(len(texts))
    found = plans.mapInArrow(run_merges, "file string").collect()
    return [msgspec.json.decode(row.file, type=DataFile) for row in found]


def run_merges(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        merges = [msgspec.json.decode(text, type=Merge) for text in batch.column("plan").to_pylist()]
        yield pa.RecordBatch.from_pydict({"file": [msgspec.json.encode(merge(each)).decode() for each in merges]})


def merge(plan: Merge) -> DataFile:
    """Copy all rows of some files into one. Raises StrandlineError if there are other rows than were committed."""
    schema = pa.unify_schemas([columns_of(source) for source in plan.sources])
    file = OpenFile(plan.layout.folder, plan.name, plan.values, schema)
    for source in plan.sources:
        with opened_parquet(source) as reader:
            for batch in reader.iter_batches():
                file.add(widened(batch, schema))
                if file.waiting >= GROUP_BYTES_MAX:
                    file.write()
    file.write()
    merged = file.close()
    if merged.rows != plan.rows:
        raise StrandlineError(
            f"{len(plan.sources)} files beginning with {local_path(plan.sources[0]) or plan.sources[0]} have"
            f" {merged.rows} rows, and {plan.rows} were committed",
            "another program has changed them; the table is left as it is",
        )
    return merged


def columns_of(source: str) -> pa.Schema:
    with open_input(source) as data:
        return in_utc(pq.read_schema(data))


def widened(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """With nulls for the columns that came into the table after the file."""
    names = batch.schema.names
    columns = [
        batch.column(field.name).cast(field.type) if field.name in names else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
