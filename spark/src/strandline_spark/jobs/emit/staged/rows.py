"""A lane's staged rows, in pieces, and which partition each goes to: by nothing but the row and its place in the file,
so that every run gives each partition the same rows in the same order.

A row names its partition, or its key does (murmur2, as in Kafka's clients), or, without either, its place: BLOCK rows
for one partition, then BLOCK for the next, and each lane begins with another.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from strandline_spark.errors import StrandlineError
from strandline_spark.sink.batches import encoders
from strandline_spark.sink.layout import I32, NO_BYTES, U8, Rows, rows_of, valid_bytes
from strandline_spark.tables.writing import opened_parquet

BLOCK = 500
PIECE_BYTES = 16 << 20  # of rows in memory at a time, about
PIECE_ROWS_MAX = 64 << 10
# What lengths, deltas and counts take at most of a record, and of each header: seven numbers of five bytes, a time of
# ten, and two more numbers. So sizes are bounds for the memory that an encoder writes to.
ROW_OVERHEAD = 46
HEADER_OVERHEAD = 10

I64 = NDArray[np.int64]
NO_TIMES: I64 = np.empty(0, np.int64)


class Chosen(NamedTuple):
    """Rows for one partition, next to one another in its order: `indices` of `rows`, which others share."""

    rows: Rows
    indices: I64
    sizes: I64  # of each of them: how many bytes its record takes at most
    stamps: I64  # of each of them, in ms, -1: none; empty: none has one

    @property
    def length(self) -> int:
        return len(self.indices)

    @property
    def size(self) -> int:
        """Bytes that the records take at most."""
        return int(self.sizes.sum())

    def part(self, first: int, count: int) -> "Chosen":
        stop = first + count
        return Chosen(self.rows, self.indices[first:stop], self.sizes[first:stop], self.stamps[first:stop])

    def times(self, now_ms: int) -> I64:
        """The records' timestamps."""
        return np.where(self.stamps >= 0, self.stamps, now_ms) if len(self.stamps) else np.full(self.length, now_ms)

    def cuts(self, bytes_max: int) -> Iterator[tuple[int, int]]:
        """(first, count) of batches that do not exceed `bytes_max`, if no single row does."""
        ends = np.cumsum(self.sizes)
        first, before = 0, 0
        while first < self.length:
            stop = max(first + 1, int(np.searchsorted(ends, before + bytes_max, side="right")))
            yield first, stop - first
            first, before = stop, int(ends[stop - 1])


def memory_of(rows: Rows) -> int:
    """Bytes that are held by whoever holds one of these rows."""
    keys, values, (lists, names, contents) = rows
    return int(lists.nbytes + sum(array.nbytes for blobs in (keys, values, names, contents) for array in blobs))


Piece = tuple[int, Chosen]  # the next rows of a lane for a partition


def pieces(path: str, lane: int, partitions: int) -> Iterator[Piece]:
    """Raises StrandlineError if a row names a partition that the topic does not have."""
    with opened_parquet(path) as file:
        at = 0
        for batch in file.iter_batches(batch_size=rows_at_a_time(file.metadata)):
            yield from by_partition(batch, at, lane, partitions)
            at += batch.num_rows


def rows_at_a_time(metadata: Any) -> int:
    size = sum(metadata.row_group(at).total_byte_size for at in range(metadata.num_row_groups))
    return int(min(PIECE_ROWS_MAX, max(1, PIECE_BYTES * metadata.num_rows // max(size, 1))))


def by_partition(batch: Any, first_row: int, lane: int, partitions: int) -> Iterator[Piece]:
    """The rows of `batch`, which begins at `first_row` of the lane, nothing copied but numbers."""
    names = {name: at for at, name in enumerate(batch.schema.names)}
    rows = rows_of(batch, names)
    to, sizes, stamps = choose(batch, rows, first_row, lane, partitions), sizes_of(batch), stamps_of(batch)
    order = np.argsort(to, kind="stable").astype(np.int64)
    for part in np.split(order, np.flatnonzero(np.diff(to[order])) + 1):
        if len(part):
            yield int(to[part[0]]), Chosen(rows, part, sizes[part], stamps[part] if len(stamps) else NO_TIMES)


def choose(batch: Any, rows: Rows, first_row: int, lane: int, partitions: int) -> I32:
    """The partition of each row."""
    everything = np.arange(batch.num_rows, dtype=np.int64)
    named, has_named = named_partitions(batch)
    chosen = np.empty(batch.num_rows, np.int32)
    wrong = encoders().targets(rows.keys, named, has_named, everything, partitions, 0, chosen)
    if wrong >= 0:
        names = f"names partition {named[wrong]}, and the topic has {partitions}"
        problem = f"row {first_row + int(wrong)} of lane {lane} {names}"
        raise StrandlineError(problem, "correct the column partition, or leave it null")
    blocks = ((everything + first_row) // BLOCK + lane) % partitions
    return np.where(chosen >= 0, chosen, blocks).astype(np.int32)


def named_partitions(batch: Any) -> tuple[I32, U8]:
    if "partition" not in batch.schema.names:
        return np.empty(0, np.int32), NO_BYTES
    column = batch.column("partition")
    numbers: I32 = pc.fill_null(column, -1).to_numpy(zero_copy_only=False).astype(np.int32)
    return numbers, valid_bytes(column)


def stamps_of(batch: Any) -> I64:
    if "timestamp_ms" not in batch.schema.names:
        return NO_TIMES
    made: I64 = pc.fill_null(batch.column("timestamp_ms"), -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return made


def sizes_of(batch: Any) -> I64:
    total = np.full(batch.num_rows, ROW_OVERHEAD, dtype=np.int64)
    for name in ("key", "value"):
        total += lengths(batch.column(name))
    if "headers" in batch.schema.names:
        total += header_sizes(batch.column("headers"))
    return total


def lengths(column: pa.Array) -> I64:
    made: I64 = pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return made


def header_sizes(column: pa.Array) -> I64:
    """At most the bytes of each row's headers."""
    counts = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    inner = column.flatten()
    each = HEADER_OVERHEAD + lengths(inner.field("key")) + lengths(inner.field("value"))
    ends = np.concatenate([[0], np.cumsum(each)])
    bounds = np.concatenate([[0], np.cumsum(counts)])
    made: I64 = (ends[bounds[1:]] - ends[bounds[:-1]]).astype(np.int64)
    return made
