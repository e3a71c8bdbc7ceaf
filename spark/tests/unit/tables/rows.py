"""Rows for tables, and how a batch of them is written without Spark."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql.types import ArrayType

from strandline_spark.schemas import rows as columns
from strandline_spark.tables.account import Account
from strandline_spark.tables.table import Table, Written
from strandline_spark.tables.writing import Plan, read_results, write_rows

SCHEMA = columns("topic string", "partition int", "offset long", "region string", "amount long")
ARROW = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("region", pa.string()),
        ("amount", pa.int64()),
    ]
)


def rows(
    start: int, end: int, partition: int = 0, regions: Sequence[str | None] = ("eu", "us", None)
) -> pa.RecordBatch:
    offsets = range(start, end)
    return pa.RecordBatch.from_pydict(
        {
            "topic": ["orders"] * len(offsets),
            "partition": [partition] * len(offsets),
            "offset": list(offsets),
            "region": [regions[offset % len(regions)] for offset in offsets],
            "amount": [offset * 10 for offset in offsets],
        },
        schema=ARROW,
    )


def write(table: Table, batch: int, *tasks: Sequence[pa.RecordBatch]) -> Written:
    """What `Table.write` does, with the tasks run here one after the other."""
    import msgspec

    if table.has(batch):
        return Written(batch, was_there=True)
    layout = table.begin(batch)
    result = read_results(
        msgspec.json.encode(write_rows(task, Plan(layout), number)).decode() for number, task in enumerate(tasks)
    )
    table.commit(batch, layout, result.table, result.account)
    return Written(batch, result.account, len(result.table))


def whole(account: Account) -> tuple[int, bool | None, dict[str, dict[int, int]]]:
    return account.rows, account.is_dense, account.ends


TIMED = columns("offset long", "at timestamp").add("deep", ArrayType(columns("at timestamp")))


def timed(offset: int, zone: str) -> pa.RecordBatch:
    """A row as Spark gives it in a session of that time zone."""
    kind = pa.timestamp("us", zone)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    schema = pa.schema([("offset", pa.int64()), ("at", kind), ("deep", pa.list_(pa.struct([("at", kind)])))])
    return pa.RecordBatch.from_pylist([{"offset": offset, "at": at, "deep": [{"at": at}]}], schema)


WIDER = columns("topic string", "partition int", "offset long", "region string", "amount long", "note string")


def wider(start: int, end: int) -> pa.RecordBatch:
    """Rows with a column more."""
    batch = rows(start, end)
    return batch.append_column("note", pa.array([f"n{offset}" for offset in range(start, end)]))
