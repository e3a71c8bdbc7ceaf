"""The loops over rows, compiled by numba and cached on disk.

Compiled code checks no bounds: every write lies below the end of `out`, which is compared with the whole record's size
before the first of its bytes is written. Offsets of Arrow columns are Arrow's word for what lies within their content.
"""

from typing import Any

import numpy as np

from strandline_spark.decode.caching import compiled
from strandline_spark.decode.kernel import copy
from strandline_spark.sink.layout import I32, I64, U8, Blobs, Rows

Int = Any  # an int64 to numba, which has no other integers
DONE, FULL, TOO_LARGE, NAMELESS = range(4)
HEADER_SIZE = 61
MASK = 0xFFFF_FFFF
SEED, M = 0x9747B28C, 0x5BD1E995


@compiled
def varint_size(value: Int) -> Int:
    """Bytes of a number in zigzag form."""
    raw = np.uint64((value << 1) ^ (value >> 63))
    size = 1
    while raw > np.uint64(0x7F):
        raw >>= np.uint64(7)
        size += 1
    return size


@compiled
def put_varint(out: U8, at: Int, value: Int) -> Int:
    raw = np.uint64((value << 1) ^ (value >> 63))
    while raw > np.uint64(0x7F):
        out[at] = np.uint8((raw & np.uint64(0x7F)) | np.uint64(0x80))
        raw >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(raw)
    return at + 1


@compiled
def blob_size(column: Blobs, row: Int) -> Int:
    """−1: null."""
    if len(column.valid) > 0 and column.valid[row] == 0:
        return -1
    return column.offsets[row + 1] - column.offsets[row]


@compiled
def field_size(size: Int) -> Int:
    """Bytes of a key, a value or a header's part with the length before it."""
    return varint_size(size) + max(size, 0)


@compiled
def put_blob(out: U8, at: Int, column: Blobs, row: Int) -> Int:
    size = blob_size(column, row)
    at = put_varint(out, at, size)
    if size > 0:
        copy(out, at, column.content, column.offsets[row], size)
        at += size
    return at


@compiled
def encode(
    rows: Rows,
    chosen: I64,
    at: Int,
    out: U8,
    position: Int,
    count: Int,
    time_delta: Int,
    limit: Int,
    size_max: Int,
) -> tuple[Int, Int, Int, Int]:
    """Append the rows `chosen[at:]` to the records in `out`, which has `count` records up to `position`.

    Ends with (why, next at, position, count): all are in; FULL: the next would make more than `limit` bytes of it;
    TOO_LARGE: one alone makes more than `size_max`; NAMELESS: a header has no key."""
    lists = rows.headers.lists
    end = len(chosen)
    room = min(len(out), size_max)
    while at < end:
        row: Int = chosen[at]
        first: Int = lists[row] if len(lists) > 0 else 0
        last: Int = lists[row + 1] if len(lists) > 0 else 0
        size = 1 + varint_size(time_delta) + varint_size(count) + varint_size(last - first)
        size += field_size(blob_size(rows.keys, row)) + field_size(blob_size(rows.values, row))
        for i in range(first, last):
            name = blob_size(rows.headers.names, i)
            if name < 0:
                return NAMELESS, at, position, count
            size += field_size(name) + field_size(blob_size(rows.headers.contents, i))
        whole = size + varint_size(size)
        if count > 0 and position + whole > limit:
            return FULL, at, position, count
        if position + whole > room:
            if count > 0:
                return FULL, at, position, count
            return TOO_LARGE, at, HEADER_SIZE + whole, count
        position = put_varint(out, position, size)
        out[position] = 0
        position = put_varint(out, position + 1, time_delta)
        position = put_varint(out, position, count)
        position = put_blob(out, position, rows.keys, row)
        position = put_blob(out, position, rows.values, row)
        position = put_varint(out, position, last - first)
        for i in range(first, last):
            position = put_blob(out, position, rows.headers.names, i)
            position = put_blob(out, position, rows.headers.contents, i)
        count += 1
        at += 1
    return DONE, at, position, count


@compiled
def murmur2(content: U8, start: Int, end: Int) -> Int:
    """Kafka's hash of a key, as an unsigned number of 32 bits."""
    size = end - start
    h = (SEED ^ size) & MASK
    at = start
    while end - at >= 4:
        k = (
            np.int64(content[at])
            | np.int64(content[at + 1]) << 8
            | np.int64(content[at + 2]) << 16
            | np.int64(content[at + 3]) << 24
        )
        k = (k * M) & MASK
        k ^= k >> 24
        k = (k * M) & MASK
        h = ((h * M) & MASK) ^ k
        at += 4
    rest = end - at
    if rest > 0:
        if rest == 3:
            h ^= np.int64(content[at + 2]) << 16
        if rest >= 2:
            h ^= np.int64(content[at + 1]) << 8
        h ^= np.int64(content[at])
        h = (h * M) & MASK
    h ^= h >> 13
    h = (h * M) & MASK
    return h ^ (h >> 15)


@compiled
def targets(keys: Blobs, given: I32, has_given: U8, chosen: I64, partitions: Int, ignores_keys: Int, out: I32) -> Int:
    """The partition of each of the rows `chosen` into `out`: the given one, else by its key, else −1. `given`, and
    `has_given` (a byte a row), may be empty. Returns the first row whose given partition does not exist, or −1."""
    for i in range(len(chosen)):
        row = chosen[i]
        if len(given) > 0 and (len(has_given) == 0 or has_given[row] != 0):
            if given[row] < 0 or given[row] >= partitions:
                return row
            out[i] = given[row]
        elif ignores_keys == 0 and blob_size(keys, row) >= 0:
            out[i] = (murmur2(keys.content, keys.offsets[row], keys.offsets[row + 1]) & 0x7FFF_FFFF) % partitions
        else:
            out[i] = -1
    return -1
