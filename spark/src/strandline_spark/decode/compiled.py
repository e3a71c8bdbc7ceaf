"""Records to Arrow by the kernel: memory for it to fill, and arrays around that memory."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from strandline_spark.decode import kernel, twin
from strandline_spark.decode.columns import TYPES
from strandline_spark.decode.heads import Bytes
from strandline_spark.decode.rows import COUNT, END, START, Rows, Run, Wants, Wrong

HEADER_SIZE_MIN = 2


def decode_rows(runs: list[Run], wants: Wants) -> Rows:
    """Raises `Wrong`.

    What can be filled is bounded by the bytes that are read, since a record has seven bytes and a header two at least,
    and the caller has held the records' counts against that. Memory that is not touched costs nothing.
    """
    jobs = sum(len(run.jobs) for run in runs)
    rows = int(sum(run.jobs[:, COUNT].sum() for run in runs))
    content = int(sum((run.jobs[:, END] - run.jobs[:, START]).sum() for run in runs))
    headers = content // HEADER_SIZE_MIN if wants.headers else 0
    out = kernel.Out(
        np.array([wants.keys, wants.values, wants.headers]),
        np.empty(rows, np.int64),
        np.empty(rows, np.int64),
        strings(rows if wants.keys else 0, content),
        strings(rows if wants.values else 0, content),
        starting(rows if wants.headers else 0),
        starting(headers),
        np.empty(content if wants.headers else 0, np.uint8),
        strings(headers, content),
    )
    counts = np.zeros(jobs, np.int64)
    state = np.zeros(kernel.STATE_WIDTH, np.int64)
    done = 0
    for run in runs:
        part = counts[done : done + len(run.jobs)]
        why = kernel.fill(run.source, run.jobs, wants.first, wants.end, out, part, state)
        assert why != kernel.FULL, "more was found than there are bytes"
        if why == kernel.NOT_UTF8:
            return twin.decode_rows(runs, wants)  # rare: names are mended there
        if why:
            raise Wrong(done + int(state[kernel.FAILED_JOB]), kernel.WHY[why])
        done += len(run.jobs)
    found = int(state[kernel.ROWS])
    offsets, times = out.offsets[:found], out.stamps[:found]
    valid = bitmap(times != kernel.NO_STAMP, found, int(state[kernel.NULL_STAMPS]))
    stamps = pa.Array.from_buffers(TYPES["timestamp"], found, [valid, pa.py_buffer(times)])
    keys = binary(out.keys, found, state, kernel.KEY_BYTES, kernel.NULL_KEYS) if wants.keys else None
    values = binary(out.values, found, state, kernel.VALUE_BYTES, kernel.NULL_VALUES) if wants.values else None
    return Rows(counts, offsets, stamps, keys, values, header_lists(out, found, state) if wants.headers else None)


def starting(rows: int) -> NDArray[np.int32]:
    """Offsets of an Arrow column that is to be filled."""
    offsets = np.empty(rows + 1, np.int32)
    offsets[0] = 0
    return offsets


def strings(rows: int, content: int) -> kernel.Strings:
    return kernel.Strings(starting(rows), np.empty(content if rows else 0, np.uint8), np.empty(rows, np.uint8))


def bitmap(valid: Bytes | NDArray[np.bool_], rows: int, nulls: int) -> pa.Buffer | None:
    return pa.py_buffer(np.packbits(valid[:rows], bitorder="little")) if nulls else None


def binary(column: kernel.Strings, rows: int, state: kernel.I64, used: int, nulls: int) -> pa.Array:
    buffers = [
        bitmap(column.valid, rows, int(state[nulls])),
        pa.py_buffer(column.offsets[: rows + 1]),
        pa.py_buffer(column.content[: int(state[used])]),
    ]
    return pa.Array.from_buffers(pa.binary(), rows, buffers, int(state[nulls]))


def header_lists(out: kernel.Out, rows: int, state: kernel.I64) -> pa.Array:
    count = int(state[kernel.HEADERS])
    names = pa.Array.from_buffers(
        pa.string(),
        count,
        [None, pa.py_buffer(out.name_offsets[: count + 1]), pa.py_buffer(out.names[: int(state[kernel.NAME_BYTES])])],
        0,
    )
    contents = binary(out.contents, count, state, kernel.CONTENT_BYTES, kernel.NULL_CONTENTS)
    kind = TYPES["headers"]
    pairs = pa.StructArray.from_arrays([names, contents], fields=list(kind.value_type))
    offsets = out.list_offsets[: rows + 1]
    has_any = np.diff(offsets) > 0
    nulls = rows - int(has_any.sum())
    buffers = [bitmap(has_any, rows, nulls), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(kind, rows, buffers, nulls, children=[pairs])
