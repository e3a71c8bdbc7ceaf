"""Campaigns of the simulator as Spark jobs: a task runs a block of seeds in a process of its own.

`seed_blocks` → `seed_rows` has no folder and keeps nothing; with `on_spark` as its engine
`campaign.engine.run_campaign` goes on where it was stopped.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from strandline_spark.jobs.simulate import store
from strandline_spark.jobs.simulate.block import Written, write_block
from strandline_spark.jobs.simulate.block import seed_rows as rows_of
from strandline_spark.jobs.simulate.definition import Block, Campaign, Task, blocks_left
from strandline_spark.jobs.simulate.engine import BLOCK_SEEDS, Engine
from strandline_spark.schemas import SEED, SEED_BLOCK, SEED_SPAN

WRITTEN = pa.schema([(field, pa.string() if field == "run" else pa.int64()) for field in Written.__struct_fields__])


def seed_blocks(spark: SparkSession, seeds: range, size: int = BLOCK_SEEDS, again_per_10000: int = 100) -> DataFrame:
    """`seeds` as rows of SEED_SPAN, each in a partition of its own."""
    return spans(spark, blocks_left(seeds, size, again_per_10000, ()))


def spans(spark: SparkSession, found: Sequence[Block]) -> DataFrame:
    rows = [(block.run, block.first, block.last) for block in found]
    return spark.createDataFrame(spark.sparkContext.parallelize(rows, max(1, len(rows))), SEED_SPAN)


def seed_rows(spans: DataFrame, campaign: Campaign) -> DataFrame:
    """A row of SEED for each seed of `spans` that counts. Computed anew by each action: write it, or cache it."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for block in blocks_in(batches):
            yield from store.table_of(list(rows_of(Task(campaign, block)))).to_batches()

    return spans.mapInArrow(run, SEED)


def written_blocks(spans: DataFrame, campaign: Campaign, folder: Path) -> DataFrame:
    """The same, but each block becomes a file in `folder`, and a row of SEED_BLOCK says what it has come to."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for block in blocks_in(batches):
            row = write_block(Task(campaign, block), folder)
            yield pa.RecordBatch.from_pylist([{name: getattr(row, name) for name in WRITTEN.names}], WRITTEN)

    return spans.mapInArrow(run, SEED_BLOCK)


def blocks_in(batches: Iterable[pa.RecordBatch]) -> Iterator[Block]:
    for batch in batches:
        for row in batch.to_pylist():
            yield Block(**row)


def on_spark(spark: SparkSession) -> Engine:
    """The engine that runs blocks as Spark's tasks, in the order in which they are given."""

    def run(tasks: Sequence[Task], folder: Path) -> list[Written]:
        frame = written_blocks(spans(spark, [task.block for task in tasks]), tasks[0].campaign, folder)
        return [Written(**row.asDict()) for row in frame.collect()]

    return run


def rows(spark: SparkSession, folder: Path) -> DataFrame:
    """All that a campaign has done so far, as rows of SEED."""
    return spark.read.schema(SEED).parquet(str(folder.resolve() / store.BLOCKS))
