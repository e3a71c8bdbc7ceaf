"""Arrow columns as plain arrays of numbers and bytes, as the kernel and its twin take them."""

from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

N = TypeVar("N", bound=np.generic)
U8 = NDArray[np.uint8]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]


class Blobs(NamedTuple):
    """A column of byte strings: row i is `content[offsets[i] : offsets[i + 1]]`, or null."""

    offsets: I64
    content: U8
    valid: U8  # a byte a row; empty: no row is null


class Heads(NamedTuple):
    """Headers: row i has those from `lists[i]` up to `lists[i + 1]`; empty `lists`: no row has any."""

    lists: I64
    names: Blobs
    contents: Blobs


class Rows(NamedTuple):
    """What becomes records."""

    keys: Blobs
    values: Blobs
    headers: Heads


def frozen(array: NDArray[N]) -> NDArray[N]:
    """Not to be written to. All of these arrays are so, whoever owns their memory: to numba that is part of their
    type, and each combination of types would be compiled anew."""
    array.setflags(write=False)
    return array


NO_BYTES: U8 = frozen(np.empty(0, np.uint8))
NO_OFFSETS: I64 = frozen(np.zeros(0, np.int64))
NO_BLOBS = Blobs(frozen(np.zeros(1, np.int64)), NO_BYTES, NO_BYTES)
NO_HEADERS = Heads(NO_OFFSETS, NO_BLOBS, NO_BLOBS)


def blobs(column: pa.Array) -> Blobs:
    """Of a binary or string column; nothing is copied but offsets."""
    if pa.types.is_fixed_size_binary(column.type) or pa.types.is_dictionary(column.type):
        column = column.cast(pa.binary())
    wide = pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type)
    _, starts, content = column.buffers()
    offsets = np.frombuffer(starts, np.int64 if wide else np.int32)[column.offset : column.offset + len(column) + 1]
    return Blobs(
        frozen(offsets.astype(np.int64)),
        NO_BYTES if content is None else frozen(np.frombuffer(content, np.uint8)),
        valid_bytes(column),
    )


def nulls(rows: int) -> Blobs:
    """A column that is not there."""
    return Blobs(frozen(np.zeros(rows + 1, np.int64)), NO_BYTES, frozen(np.zeros(rows, np.uint8)))


def valid_bytes(column: pa.Array) -> U8:
    if not column.null_count:
        return NO_BYTES
    valid: U8 = pc.is_valid(column).to_numpy(zero_copy_only=False).astype(np.uint8)
    return frozen(valid)


def heads(column: pa.Array) -> Heads:
    """Of a column of lists of (key, value). A null list has no headers."""
    if column.null_count:
        column = pc.coalesce(column, pa.scalar([], type=column.type))
    names, contents = column.values.flatten()
    return Heads(frozen(np.asarray(column.offsets).astype(np.int64)), blobs(names), blobs(contents))


def rows_of(batch: Any, names: "dict[str, int]") -> Rows:
    """The rows of an Arrow record batch; `names` says where its columns are. All but `value` may be missing."""
    count = batch.num_rows
    return Rows(
        blobs(batch.column(names["key"])) if "key" in names else nulls(count),
        blobs(batch.column(names["value"])),
        heads(batch.column(names["headers"])) if "headers" in names and count else NO_HEADERS,
    )


def blob(column: Blobs, row: int) -> bytes | None:
    """One row of a column, for the twin and for messages."""
    if len(column.valid) and not column.valid[row]:
        return None
    return column.content[column.offsets[row] : column.offsets[row + 1]].tobytes()
