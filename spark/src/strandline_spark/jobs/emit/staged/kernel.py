"""The loop over rows that become records of a lane, compiled by numba. `encoding.in_python` is its twin.

Compiled code checks no bounds: `out` has as many bytes as `Chosen.size` says. The record is written out here as it is
in the sink's loop: a function of both that takes whole columns doubles the time of a small record.
"""

from typing import Any

from strandline_spark.decode.caching import compiled
from strandline_spark.sink.kernel import Int, blob_size, field_size, put_blob, put_varint, varint_size
from strandline_spark.sink.layout import I64, U8, Rows


@compiled
def encode(rows: Rows, chosen: I64, times: I64, out: U8, position: Int) -> Any:
    """Write a record of each of the rows `chosen` to `out`, from `position` on; the end of the last one.

    `times`: for each of them its timestamp less the batch's. Headers all have keys.
    """
    lists = rows.headers.lists
    for at in range(len(chosen)):
        row: Int = chosen[at]
        first: Int = lists[row] if len(lists) > 0 else 0
        last: Int = lists[row + 1] if len(lists) > 0 else 0
        size = 1 + varint_size(times[at]) + varint_size(at) + varint_size(last - first)
        size += field_size(blob_size(rows.keys, row)) + field_size(blob_size(rows.values, row))
        for i in range(first, last):
            size += field_size(blob_size(rows.headers.names, i)) + field_size(blob_size(rows.headers.contents, i))
        position = put_varint(out, position, size)
        out[position] = 0
        position = put_varint(out, position + 1, times[at])
        position = put_varint(out, position, at)
        position = put_blob(out, position, rows.keys, row)
        position = put_blob(out, position, rows.values, row)
        position = put_varint(out, position, last - first)
        for i in range(first, last):
            position = put_blob(out, position, rows.headers.names, i)
            position = put_blob(out, position, rows.headers.contents, i)
    return position
