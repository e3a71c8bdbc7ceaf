"""Which batches of a buffer are decoded, in which portions, and what their rows look like.

Invariants:
  - a batch's records are read only if its header makes sense and its CRC is right;
  - rows come in the order of the batches; none lies outside of the window that was asked for;
  - no more is allotted than a small multiple of the bytes that are there, or of what a batch may unpack to.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from strandline.base.crc32c import crc32c
from strandline.base.ports import Buffer
from strandline.wire.batch import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    MAGIC,
    MAGIC_AT,
    NO_SEQUENCE,
    RECORD_SIZE_MIN,
    SEQUENCE_MAX,
    TRANSACTIONAL,
    Tail,
    read_header,
)
from strandline.wire.compress import DECOMPRESSED_SIZE_MAX, Codec, Corrupt
from strandline.wire.control import ControlType, control_type
from strandline.wire.record import plain_records, records
from strandline_spark.decode import heads as at
from strandline_spark.decode import rows as job
from strandline_spark.decode import twin
from strandline_spark.decode.backends import backend
from strandline_spark.decode.columns import Columns
from strandline_spark.decode.heads import Table, as_bytes, walk
from strandline_spark.decode.rows import Rows, Run, Wants, Wrong

PORTION_BYTES = 4 << 20  # of records, uncompressed, that make one Arrow batch
OFFSET_MAX = (1 << 63) - 1


class Origin(NamedTuple):
    """What is the same in all rows: where the bytes came from. `position`: of the buffer's first byte in its file; None
    if there is none."""

    topic: str
    partition: int
    position: int | None = 0
    segment: int | None = None
    broker: int | None = None
    directory: str | None = None
    topic_id: str | None = None

    def __str__(self) -> str:
        where = f"{self.topic}-{self.partition}"
        if self.directory is not None and self.segment is not None:
            return f"{self.directory}/{where}/{self.segment:020d}.log"
        return where if self.broker is None else f"{where} on broker {self.broker}"


def decode(
    buffer: Buffer,
    columns: Columns,
    *,
    topic: str,
    partition: int,
    first: int,
    end: int = OFFSET_MAX,
    aborted: Sequence[tuple[int, int]] = (),
    read_committed: bool = False,
    check_crcs: bool = True,
) -> tuple[list[pa.RecordBatch], int]:
    """The records with first ≤ offset < end of all complete batches in `buffer`, and the offset to go on from.

    That offset lies behind all complete batches, so also behind control batches and what was compacted away, but not
    above `end`; it is `first` if no batch is complete. `aborted` are (producer id, first offset) of a Fetch answer, and
    with `read_committed` their records are left out. Control batches always are.

    Raises `Corrupt`, which names the partition and the batch's offset; then nothing of the buffer is returned.
    """
    origin = Origin(topic, partition)
    found = walk(buffer)
    table = in_window(found.table, first, end)
    check_headers(table, origin)
    behind = int((found.table[:, at.BASE] + found.table[:, at.DELTA]).max()) + 1 if len(found.table) else first
    if found.tail is Tail.CORRUPT and behind < end:
        old = ": formats 0 and 1 are not supported" if memoryview(buffer)[found.end + MAGIC_AT] < MAGIC else ""
        raise Corrupt(f"{origin}: no batch begins at byte {found.end}, where offset {max(first, behind)} must be{old}")
    if check_crcs:
        check_crcs_of(table, buffer, origin)
    keep = (table[:, at.ATTRIBUTES] & CONTROL) == 0
    if read_committed and aborted:
        keep &= ~of_aborted(found.table, buffer, aborted, origin)[is_in_window(found.table, first, end)]
    batches = list(decode_heads(buffer, table[keep], columns, origin, first=first, end=end))
    return batches, max(first, min(behind, end))


def is_in_window(table: Table, first: int, end: int) -> NDArray[np.bool_]:
    return (table[:, at.BASE] < end) & (table[:, at.BASE] + table[:, at.DELTA] >= first)


def in_window(table: Table, first: int, end: int) -> Table:
    return table[is_in_window(table, first, end)]


def check_headers(table: Table, origin: Origin) -> None:
    """Raises `Corrupt` for a header that says what none can."""
    wrong = (table[:, at.BASE] < 0) | (table[:, at.DELTA] < 0) | (table[:, at.COUNT] < 0)
    wrong |= table[:, at.BASE] > OFFSET_MAX - table[:, at.DELTA] - 1
    wrong |= (table[:, at.ATTRIBUTES] & CODEC_MASK) > Codec.ZSTD
    if wrong.any():
        row = table[int(wrong.argmax())]
        raise corrupt(row, origin, "its header is not valid")


def check_crcs_of(table: Table, buffer: Buffer, origin: Origin) -> None:
    view = memoryview(buffer)
    columns = table[:, at.POSITION], table[:, at.SIZE], table[:, at.CRC]
    for index, (position, size, crc) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        if crc32c(view[position + ATTRIBUTES_AT : position + size]) != crc:
            raise corrupt(table[index], origin, "its CRC is wrong")


def corrupt(row: Table, origin: Origin, why: str) -> Corrupt:
    place = f"the batch at offset {row[at.BASE]} (byte {(origin.position or 0) + row[at.POSITION]})"
    return Corrupt(f"{origin}: {place} is corrupt: {why}")


def of_aborted(table: Table, buffer: Buffer, aborted: Sequence[tuple[int, int]], origin: Origin) -> NDArray[np.bool_]:
    """Which batches are of transactions that were aborted. As in Kafka's consumer, a transaction begins at its first
    offset and ends at its producer's next abort marker."""
    upcoming = sorted(aborted, key=lambda pair: pair[1])
    begun: dict[int, None] = {}
    found = np.zeros(len(table), dtype=np.bool_)
    for index in range(len(table)):
        row = table[index]
        last, producer, attributes = int(row[at.BASE] + row[at.DELTA]), int(row[at.PRODUCER_ID]), row[at.ATTRIBUTES]
        while upcoming and upcoming[0][1] <= last:
            begun[upcoming.pop(0)[0]] = None
        if producer not in begun:
            continue
        if attributes & CONTROL:
            if is_abort(row, buffer, origin):
                del begun[producer]
        elif attributes & TRANSACTIONAL:
            found[index] = True
    return found


def is_abort(row: Table, buffer: Buffer, origin: Origin) -> bool:
    header = read_header(buffer, int(row[at.POSITION]))
    try:
        return any(control_type(record.key) == ControlType.ABORT for record in records(header, buffer))
    except Corrupt as error:
        raise corrupt(row, origin, str(error)) from None


# --- portions


def decode_heads(
    buffer: Buffer,
    table: Table,
    columns: Columns,
    origin: Origin,
    *,
    first: int = 0,
    end: int = OFFSET_MAX,
    compiled: bool | None = None,
) -> Iterator[pa.RecordBatch]:
    """The records of the batches in `table` (of `walk`, checked) as Arrow batches of about 4 MiB. Raises `Corrupt`."""
    wants = Wants(columns.has("key"), columns.has("value"), columns.has("headers"), first, end)
    decode_rows = twin.decode_rows
    if backend() == "numba" if compiled is None else compiled:
        from strandline_spark.decode.compiled import decode_rows
    for part, runs in portions(buffer, table, origin):
        try:
            rows = decode_rows(runs, wants)
        except Wrong as error:
            raise corrupt(part[error.job], origin, error.why) from None
        if len(rows.offsets):
            yield assemble(rows, part, columns, origin)


def portions(buffer: Buffer, table: Table, origin: Origin) -> Iterator[tuple[Table, list[Run]]]:
    """The batches in parts of about PORTION_BYTES, each with its jobs."""
    table = table[table[:, at.COUNT] > 0]
    if not len(table):
        return
    source = as_bytes(buffer)
    packed = (table[:, at.ATTRIBUTES] & CODEC_MASK) != 0
    start, used, runs = 0, 0, list[Run]()
    bounds = [0, *(np.flatnonzero(np.diff(packed)) + 1).tolist(), len(table)]
    for low, high in pairwise(bounds):  # batches with and without compression, in turn
        here = low
        while here < high:
            if packed[low]:
                upto = here + 1
                plain = unpacked(buffer, table[here], origin)
                run = Run(as_bytes(plain), jobs_of(table[here:upto], len(plain)))
            else:
                ends = np.cumsum(table[here:high, at.SIZE])
                upto = min(high, here + 1 + int(np.searchsorted(ends, PORTION_BYTES - used)))
                run = Run(source, jobs_of(table[here:upto]))
            check_counts(run.jobs, table[here:upto], origin)
            runs.append(run)
            used += int((run.jobs[:, job.END] - run.jobs[:, job.START]).sum())
            here = upto
            if used >= PORTION_BYTES:
                yield table[start:here], runs
                start, used, runs = here, 0, []
    if runs:
        yield table[start:], runs


def unpacked(buffer: Buffer, row: Table, origin: Origin) -> bytes:
    try:
        return plain_records(read_header(buffer, int(row[at.POSITION])), buffer)
    except Corrupt as error:
        raise corrupt(row, origin, str(error)) from None


def jobs_of(table: Table, plain: int | None = None) -> Table:
    """`plain`: the size of the records of a batch that is compressed; they are a source of their own."""
    jobs = np.empty((len(table), job.JOB_WIDTH), dtype=np.int64)
    jobs[:, job.START] = table[:, at.POSITION] + HEADER_SIZE if plain is None else 0
    jobs[:, job.END] = table[:, at.POSITION] + table[:, at.SIZE] if plain is None else plain
    jobs[:, job.BASE] = table[:, at.BASE]
    jobs[:, job.DELTA] = table[:, at.DELTA]
    jobs[:, job.BASE_TIMESTAMP] = table[:, at.BASE_TIMESTAMP]
    jobs[:, job.STAMP] = table[:, at.MAX_TIMESTAMP]
    jobs[:, job.IS_STAMPED] = (table[:, at.ATTRIBUTES] & LOG_APPEND_TIME) != 0
    jobs[:, job.COUNT] = table[:, at.COUNT]
    return jobs


def check_counts(jobs: Table, table: Table, origin: Origin) -> None:
    """No batch says that it has more records than its bytes can hold, or more bytes than a batch may unpack to."""
    size = jobs[:, job.END] - jobs[:, job.START]
    wrong = (jobs[:, job.COUNT] * RECORD_SIZE_MIN > size) | (size > DECOMPRESSED_SIZE_MAX)
    if wrong.any():
        index = int(wrong.argmax())
        raise corrupt(table[index], origin, f"{jobs[index, job.COUNT]} records in {size[index]} bytes")


# --- columns


def assemble(rows: Rows, table: Table, columns: Columns, origin: Origin) -> pa.RecordBatch:
    count = len(rows.offsets)
    arrays = [column(field, rows, table, origin, count) for field in columns.schema]
    return pa.RecordBatch.from_arrays(arrays, schema=columns.schema)


def column(field: pa.Field, rows: Rows, table: Table, origin: Origin, count: int) -> pa.Array:
    def of_batch(values: NDArray[np.int64] | NDArray[np.bool_]) -> pa.Array:
        return pa.array(np.repeat(values, rows.counts)).cast(field.type)

    match field.name:
        case "key":
            return rows.keys
        case "value":
            return rows.values
        case "offset":
            return pa.array(rows.offsets)
        case "timestamp":
            return rows.stamps
        case "headers":
            assert rows.headers is not None
            return rows.headers.cast(field.type)
        case "sequence":
            base, begin = np.repeat(table[:, at.SEQUENCE], rows.counts), np.repeat(table[:, at.BASE], rows.counts)
            numbered = (base + rows.offsets - begin) & SEQUENCE_MAX
            return pa.array(np.where(base == NO_SEQUENCE, NO_SEQUENCE, numbered)).cast(field.type)
        case "timestampType":
            return of_batch((table[:, at.ATTRIBUTES] & LOG_APPEND_TIME) // LOG_APPEND_TIME)
        case "position":
            if origin.position is None:
                return pa.nulls(count, field.type)
            return of_batch(table[:, at.POSITION] + origin.position)
        case "leader_epoch":
            return of_batch(table[:, at.EPOCH])
        case "producer_id":
            return of_batch(table[:, at.PRODUCER_ID])
        case "producer_epoch":
            return of_batch(table[:, at.PRODUCER_EPOCH])
        case "is_control":
            return of_batch((table[:, at.ATTRIBUTES] & CONTROL) != 0)
        case "is_transactional":
            return of_batch((table[:, at.ATTRIBUTES] & TRANSACTIONAL) != 0)
        case name:
            return pa.repeat(pa.scalar(getattr(origin, name), field.type), count)
