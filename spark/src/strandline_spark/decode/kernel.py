"""The loops over bytes, compiled by numba and cached on disk, so that a worker starts in a fraction of a second.

Compiled code checks no bounds, so all of it is done here, by these rules:
  - every read of `source` is below an end that is at most `len(source)`, checked before the read;
  - every write is below the length of its array, checked before the write (`FULL`: the caller allotted too little);
  - no number from the bytes is added to a position before it is known to be at most the bytes that are left.
"""

from typing import Any, NamedTuple

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from strandline_spark.decode.caching import compiled

U8 = NDArray[np.uint8]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Int = Any  # an int64 to numba, which has no other integers; to Python an int or one of numpy's

HEADER_SIZE, LOG_OVERHEAD, PREFIX_SIZE, MAGIC = 61, 12, 16, 2
COMPLETE, TRUNCATED, CORRUPT, MORE = 0, 1, 2, -1

# Columns of a table of jobs.
START, END, BASE, DELTA, BASE_TIMESTAMP, STAMP, IS_STAMPED, COUNT = range(8)
JOB_WIDTH = 8

# What `fill` keeps between calls, by place in `state`.
ROWS, KEY_BYTES, VALUE_BYTES, HEADERS, NAME_BYTES, CONTENT_BYTES = range(6)
NULL_KEYS, NULL_VALUES, NULL_CONTENTS, NULL_STAMPS, FAILED_JOB = range(6, 11)
STATE_WIDTH = 11

WHY = (
    "",
    "a variable-length integer has no end",
    "a record does not fit",
    "a key or a value does not fit",
    "headers do not fit",
    "a header without a name",
    "the name of a header is not UTF-8",
    "a record is longer or shorter than it says",
    "an offset lies outside of the batch",
    "bytes follow the last record",
)
(FINE, ENDLESS, RECORD, CONTENT, HEADER_COUNT, NAMELESS, NOT_UTF8, LENGTH, OFFSET, FOLLOWED) = range(10)
FULL = 99

MILLISECONDS_MAX = (1 << 63) // 1000  # what fits an int64 of microseconds
NO_STAMP = -(1 << 63)


class Strings(NamedTuple):
    """A binary column that is filled."""

    offsets: I32  # one more than rows; the first is 0
    content: U8
    valid: U8  # a byte a row


class Out(NamedTuple):
    """What `fill` appends to."""

    wants: NDArray[np.bool_]  # keys, values, headers
    offsets: I64
    stamps: I64  # microseconds, or NO_STAMP
    keys: Strings
    values: Strings
    list_offsets: I32  # of the headers of a record
    name_offsets: I32
    names: U8
    contents: Strings


def memcpy(_typing: Any, out: Any, _at: Any, source: Any, _start: Any, _size: Any) -> Any:
    """memcpy(out + at, source + start, size). The caller has checked that both ranges lie within their arrays."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        to = context.make_array(signature.args[0])(context, builder, args[0])
        of = context.make_array(signature.args[2])(context, builder, args[2])
        raw_memcpy(builder, builder.gep(to.data, [args[1]]), builder.gep(of.data, [args[3]]), args[4], 1)
        return context.get_dummy_value()

    return types.void(out, types.int64, source, types.int64, types.int64), generate


raw_memcpy: Any = cgutils.raw_memcpy
copy: Any = intrinsic(memcpy)


# --- numbers


@compiled
def int32_at(source: U8, at: Int) -> Int:
    raw = (
        (np.uint32(source[at]) << np.uint32(24))
        | (np.uint32(source[at + 1]) << np.uint32(16))
        | (np.uint32(source[at + 2]) << np.uint32(8))
        | np.uint32(source[at + 3])
    )
    return np.int64(np.int32(raw))


@compiled
def int64_at(source: U8, at: Int) -> Int:
    raw = np.uint64(0)
    for i in range(8):
        raw = (raw << np.uint64(8)) | np.uint64(source[at + i])
    return np.int64(raw)


@compiled
def signed(source: U8, at: Int, end: Int) -> tuple[Int, Int]:
    """The zigzag number at `at`, and the position after it; that is -1 if it does not end before `end`, or has more
    than ten bytes."""
    if at < end and source[at] < 0x80:
        short = np.int64(source[at])
        return (short >> 1) ^ -(short & 1), at + 1
    raw, shift = np.uint64(0), np.uint64(0)
    last = min(end, at + 10)
    while at < last:
        byte = np.uint64(source[at])
        at += 1
        raw |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            return np.int64(raw >> np.uint64(1)) ^ -np.int64(raw & np.uint64(1)), at
        shift += np.uint64(7)
    return np.int64(0), np.int64(-1)


@compiled
def is_utf8(source: U8, at: int, end: int) -> bool:
    """As Python and Arrow see it: no surrogates, no longer forms than needed, nothing above U+10FFFF."""
    while at < end:
        byte = source[at]
        if byte < 0x80:
            at += 1
            continue
        if 0xC2 <= byte <= 0xDF:
            more = 1
        elif 0xE0 <= byte <= 0xEF:
            more = 2
        elif 0xF0 <= byte <= 0xF4:
            more = 3
        else:
            return False
        if more > end - at - 1:
            return False
        second = source[at + 1]
        low, high = 0x80, 0xBF
        if byte == 0xE0:
            low = 0xA0
        elif byte == 0xED:
            high = 0x9F
        elif byte == 0xF0:
            low = 0x90
        elif byte == 0xF4:
            high = 0x8F
        if second < low or second > high:
            return False
        for i in range(2, more + 1):
            if source[at + i] & 0xC0 != 0x80:
                return False
        at += more + 1
    return True


# --- headers


@compiled
def walk(source: U8, at: Int, limit: Int, table: I64) -> tuple[Int, Int, Int]:
    """Read headers into `table` until it is full or no complete batch follows before `limit`.

    How many rows, the position after their batches, and COMPLETE, TRUNCATED, CORRUPT or MORE (the table is full).
    """
    limit = min(limit, len(source))
    rows = 0
    while True:
        rest = limit - at
        if rest <= 0:
            return rows, at, COMPLETE
        if rest < PREFIX_SIZE + 1:
            return rows, at, TRUNCATED
        length = int32_at(source, at + 8)
        if length < HEADER_SIZE - LOG_OVERHEAD or source[at + PREFIX_SIZE] != MAGIC:
            return rows, at, CORRUPT
        if length + LOG_OVERHEAD > rest:
            return rows, at, TRUNCATED
        if rows >= len(table):
            return rows, at, MORE
        row = table[rows]
        row[0] = at
        row[1] = int64_at(source, at)
        row[2] = length + LOG_OVERHEAD
        row[3] = int32_at(source, at + 12)
        row[4] = MAGIC
        row[5] = int32_at(source, at + 17) & 0xFFFFFFFF
        row[6] = np.int64(np.int16((np.int64(source[at + 21]) << 8) | np.int64(source[at + 22])))
        row[7] = int32_at(source, at + 23)
        row[8] = int64_at(source, at + 27)
        row[9] = int64_at(source, at + 35)
        row[10] = int64_at(source, at + 43)
        row[11] = np.int64(np.int16((np.int64(source[at + 51]) << 8) | np.int64(source[at + 52])))
        row[12] = int32_at(source, at + 53)
        row[13] = int32_at(source, at + 57)
        rows += 1
        at += length + LOG_OVERHEAD


# --- records


@compiled
def header_pair(source: U8, at: Int, end: Int) -> tuple[Int, Int, Int, Int, Int]:
    """One header: where its name and its content begin, their sizes (-1: null), and the position after it; below 0,
    that is what is wrong."""
    name_size, name_at = signed(source, at, end)
    if name_at < 0:
        return 0, 0, 0, 0, -ENDLESS
    if name_size == -1:
        return 0, 0, 0, 0, -NAMELESS
    if name_size < 0 or name_size > end - name_at:
        return 0, 0, 0, 0, -CONTENT
    size, content_at = signed(source, name_at + name_size, end)
    if content_at < 0:
        return 0, 0, 0, 0, -ENDLESS
    if size < -1 or size > end - content_at:
        return 0, 0, 0, 0, -CONTENT
    return name_at, name_size, content_at, size, content_at + max(size, 0)


@compiled
def put(source: U8, at: Int, size: Int, row: Int, position: Int, offsets: I32, content: U8, valid: U8) -> Int:
    """Write one binary value (null if `size` is -1) at `position` of `content`. The position after it; -1: no room."""
    if row >= len(valid) or size > len(content) - position:
        return -1
    if size < 0:
        size = 0
        valid[row] = 0
    else:
        copy(content, position, source, at, size)
        valid[row] = 1
    offsets[row + 1] = position + size
    return position + size


@compiled
def parse(source: U8, at: Int, limit: Int) -> tuple[Int, Int, Int, Int, Int, Int, Int, Int, Int]:
    """The record at `at`: its deltas of time and of offset, where key and value begin and their sizes (-1: null), how
    many headers follow and where, and the record's end; below 0, that is what is wrong."""
    length, at = signed(source, at, limit)
    if at < 0:
        return 0, 0, 0, 0, 0, 0, 0, 0, -ENDLESS
    if length < 1 or length > limit - at:
        return 0, 0, 0, 0, 0, 0, 0, 0, -RECORD
    end = at + length
    delta, at = signed(source, at + 1, end)
    if at < 0:
        return 0, 0, 0, 0, 0, 0, 0, 0, -ENDLESS
    offset_delta, at = signed(source, at, end)
    if at < 0:
        return 0, 0, 0, 0, 0, 0, 0, 0, -ENDLESS
    key_size, key_at = signed(source, at, end)
    if key_at < 0:
        return 0, 0, 0, 0, 0, 0, 0, 0, -ENDLESS
    if key_size < -1 or key_size > end - key_at:
        return 0, 0, 0, 0, 0, 0, 0, 0, -CONTENT
    value_size, value_at = signed(source, key_at + max(key_size, 0), end)
    if value_at < 0:
        return 0, 0, 0, 0, 0, 0, 0, 0, -ENDLESS
    if value_size < -1 or value_size > end - value_at:
        return 0, 0, 0, 0, 0, 0, 0, 0, -CONTENT
    count, at = signed(source, value_at + max(value_size, 0), end)
    if at < 0:
        return 0, 0, 0, 0, 0, 0, 0, 0, -ENDLESS
    if count < 0 or count > end - at:
        return 0, 0, 0, 0, 0, 0, 0, 0, -HEADER_COUNT
    return delta, offset_delta, key_at, key_size, value_at, value_size, count, at, end


@compiled
def fill_headers(
    source: U8,
    at: Int,
    end: Int,
    count: Int,
    is_wanted: bool,
    state: I64,
    name_offsets: I32,
    names: U8,
    offsets: I32,
    content: U8,
    valid: U8,
) -> Int:
    """Check a record's headers, and append them if they are wanted. FINE, or what is wrong."""
    for _ in range(count):
        name_at, name_size, content_at, size, at = header_pair(source, at, end)
        if at < 0:
            return -at
        if not is_wanted:
            continue
        if not is_utf8(source, name_at, name_at + name_size):
            return NOT_UTF8
        header = state[HEADERS]
        used = state[NAME_BYTES]
        if header >= len(valid) or name_size > len(names) - used:
            return FULL
        copy(names, used, source, name_at, name_size)
        state[NAME_BYTES] = used + name_size
        name_offsets[header + 1] = used + name_size
        used = put(source, content_at, size, header, state[CONTENT_BYTES], offsets, content, valid)
        if used < 0:
            return FULL
        state[CONTENT_BYTES] = used
        state[NULL_CONTENTS] += size < 0
        state[HEADERS] = header + 1
    return FINE if at == end else LENGTH


@compiled
def microseconds(base: Int, delta: Int) -> Int:
    """NO_STAMP if the sum has more than 64 bits, or cannot be said in microseconds."""
    stamp = base + delta
    if ((base ^ stamp) & (delta ^ stamp)) < 0 or stamp > MILLISECONDS_MAX or stamp < -MILLISECONDS_MAX:
        return NO_STAMP
    return stamp * 1000


@compiled
def fill(source: U8, jobs: I64, first: Int, stop: Int, out: Out, row_counts: I64, state: I64) -> Int:
    """Append the records of all jobs whose offsets lie in [first, stop), and count those of each job in `row_counts`.
    FINE, or what is wrong with which job (`state[FAILED_JOB]`). Long, because its arrays, which are
    taken out of their tuples once, would all have to be passed to a function for one job."""
    keys, values, headers = out.wants[0], out.wants[1], out.wants[2]
    # Each taken out once: to take an array out of a tuple counts a reference, which costs more than a record.
    offsets, stamps, list_offsets, name_offsets, names = (
        out.offsets, out.stamps, out.list_offsets, out.name_offsets, out.names,
    )  # fmt: skip
    key_offsets, key_bytes, key_valid = out.keys.offsets, out.keys.content, out.keys.valid
    value_offsets, value_bytes, value_valid = out.values.offsets, out.values.content, out.values.valid
    content_offsets, content, content_valid = out.contents.offsets, out.contents.content, out.contents.valid
    row, key_used, value_used = state[ROWS], state[KEY_BYTES], state[VALUE_BYTES]
    for index in range(len(jobs)):
        state[FAILED_JOB] = index
        at, limit, base, last_delta = jobs[index, START], jobs[index, END], jobs[index, BASE], jobs[index, DELTA]
        base_timestamp, is_stamped = jobs[index, BASE_TIMESTAMP], jobs[index, IS_STAMPED] != 0
        if at < 0 or limit < at or limit > len(source):
            return RECORD
        before = row
        for _ in range(jobs[index, COUNT]):
            delta, offset_delta, key_at, key_size, value_at, value_size, count, at, end = parse(source, at, limit)
            if end < 0:
                return -end
            if offset_delta < 0 or offset_delta > last_delta:
                return OFFSET
            offset = base + offset_delta
            is_wanted = first <= offset and offset < stop
            if is_wanted and row >= len(offsets):
                return FULL
            if count or at != end:
                why = fill_headers(
                    source, at, end, count, is_wanted and headers, state,
                    name_offsets, names, content_offsets, content, content_valid,
                )  # fmt: skip
                if why != FINE:
                    return why
            at = end
            if not is_wanted:
                continue
            offsets[row] = offset
            stamp = microseconds(jobs[index, STAMP], 0) if is_stamped else microseconds(base_timestamp, delta)
            stamps[row] = stamp
            state[NULL_STAMPS] += stamp == NO_STAMP
            if keys:
                key_used = put(source, key_at, key_size, row, key_used, key_offsets, key_bytes, key_valid)
                state[NULL_KEYS] += key_size < 0
            if values:
                value_used = put(source, value_at, value_size, row, value_used, value_offsets, value_bytes, value_valid)
                state[NULL_VALUES] += value_size < 0
            if key_used < 0 or value_used < 0:
                return FULL
            if headers:
                list_offsets[row + 1] = state[HEADERS]
            row += 1
        if at != limit:
            return FOLLOWED
        row_counts[index] = row - before
    state[ROWS], state[KEY_BYTES], state[VALUE_BYTES] = row, key_used, value_used
    return FINE
