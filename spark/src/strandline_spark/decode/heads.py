"""The headers of the complete batches in a buffer, as one table of int64.

Invariants, with either backend and whatever the bytes say:
  - a walk never leaves its buffer and always ends;
  - it finds exactly the batches that `wire.batch.scan` finds.
"""

import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from strandline.base.ports import Buffer
from strandline.wire.batch import HEADER, LOG_OVERHEAD, Tail, why_no_batch
from strandline_spark.decode.backends import backend

# The columns of the table. SIZE is the whole batch's, in bytes; POSITION is in the buffer.
POSITION, BASE, SIZE, EPOCH, MAGIC, CRC, ATTRIBUTES, DELTA, BASE_TIMESTAMP, MAX_TIMESTAMP = range(10)
PRODUCER_ID, PRODUCER_EPOCH, SEQUENCE, COUNT = range(10, 14)
WIDTH = 14
ROWS = 4096  # of headers that are read at once
LARGE_BATCH_BYTES = 4096
KERNEL = "strandline_spark.decode.kernel"

Table = NDArray[np.int64]
Bytes = NDArray[np.uint8]
TAILS = (Tail.COMPLETE, Tail.TRUNCATED, Tail.CORRUPT)


class Heads(NamedTuple):
    """The complete batches of a buffer, the position after them, and why the walk ended there."""

    table: Table
    end: int
    tail: Tail


def as_bytes(buffer: Buffer) -> Bytes:
    """The same memory as an array that cannot be written to, so that compiled code meets one type only."""
    array = np.frombuffer(buffer, dtype=np.uint8) if len(buffer) else np.empty(0, np.uint8)
    array.flags.writeable = False
    return array


def walk(buffer: Buffer, start: int = 0, limit: int | None = None, compiled: bool | None = None) -> Heads:
    """The headers of all complete batches that begin at `start` and lie before `limit` (the buffer's end if None).

    `compiled` chooses a backend; what is likely to be done first if None.
    """
    limit = len(buffer) if limit is None else min(limit, len(buffer))
    assert start >= 0
    if not (is_worth_compiling(buffer, start, limit) if compiled is None else compiled):
        return walk_in_python(memoryview(buffer)[:limit], start)
    from strandline_spark.decode import kernel

    parts: list[Table] = []
    source = as_bytes(buffer)
    while True:
        part = np.empty((ROWS, WIDTH), dtype=np.int64)
        count, start, tail = kernel.walk(source, start, limit, part)
        parts.append(part[:count])
        if tail >= 0:
            return Heads(parts[0] if len(parts) == 1 else np.concatenate(parts), int(start), TAILS[tail])


def is_worth_compiling(buffer: Buffer, start: int, limit: int) -> bool:
    """numba takes half a second of a new process: as long as Python takes for the headers of gigabytes, unless the
    batches are small."""
    if KERNEL not in sys.modules and limit - start >= HEADER.size:
        length = HEADER.unpack_from(buffer, start)[1]
        if length >= LARGE_BATCH_BYTES:
            return False
    return backend() == "numba"


def walk_in_python(view: memoryview, start: int) -> Heads:
    rows: list[tuple[int, ...]] = []
    while (tail := why_no_batch(view, start)) is None:
        base, length, *rest = HEADER.unpack_from(view, start)
        rows.append((start, base, length + LOG_OVERHEAD, *rest))
        start += length + LOG_OVERHEAD
    return Heads(np.array(rows, dtype=np.int64).reshape(len(rows), WIDTH), start, tail)
