"""The rows of the levels batch and record, as Arrow."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from strandline.client.errors import TimedOut, Unreachable
from strandline.wire.compress import Corrupt
from strandline_spark.decode import Columns, Origin, decode_heads
from strandline_spark.decode import heads as at
from strandline_spark.decode.decoding import check_headers
from strandline_spark.errors import StrandlineError
from strandline_spark.replica.errors import DamagedLog, LogChanged, UnreadableLog
from strandline_spark.replica.planning import Piece, Unplanned
from strandline_spark.replica.remote import Offsets
from strandline_spark.replica.walking import CORRUPT, FAULTS, SOUND, TORN, Damage, Judged

ROWS_MAX = 1 << 16  # in one Arrow batch
CHANGED = "changed"
UNREACHABLE = "unreachable"
UNREADABLE = "unreadable"
UNREAD = (LogChanged, UnreadableLog, Unreachable, TimedOut)  # why a part of a log was not read, though nothing is wrong
OF_HEADER = {
    "base_offset": at.BASE,
    "leader_epoch": at.EPOCH,
    "records": at.COUNT,
    "producer_id": at.PRODUCER_ID,
    "producer_epoch": at.PRODUCER_EPOCH,
    "base_sequence": at.SEQUENCE,
    "attributes": at.ATTRIBUTES,
    "crc": at.CRC,
}
OF_TIME = {"base_timestamp": at.BASE_TIMESTAMP, "max_timestamp": at.MAX_TIMESTAMP}
YEAR_1_MS, YEAR_9999_MS = -62_135_596_800_000, 253_402_300_799_999


# --- batches


def batch_rows(
    part: Piece | Offsets, source: Iterator[Judged | Damage], schema: pa.Schema, *, reports_changes: bool
) -> Iterator[pa.RecordBatch]:
    """A row for each batch of the part, and for each stretch of bytes that is none.

    With `reports_changes` a part that cannot be read has one row instead, whose fault says why not (`fault_of`). Else
    raises `UNREAD`.
    """
    rows = BatchRows(origin_of(part), schema)
    try:
        for found in source:
            rows.add(found)
            if rows.count >= ROWS_MAX and not reports_changes:
                yield from rows.take()
    except UNREAD as error:
        if not reports_changes:
            raise
        rows = BatchRows(origin_of(part), schema)
        rows.add_missing(part, fault_of(error))
    if rows.count:
        yield from rows.take()


def row_of_unplanned(part: Unplanned, schema: pa.Schema) -> pa.RecordBatch:
    r = part.replica
    origin = Origin(r.topic, r.partition, None, None, r.broker, r.directory or None, r.topic_id)
    return BatchRows(origin, schema).of_what_is_known({"fault": fault_of(part.why)})


def fault_of(error: StrandlineError) -> str:
    match error:
        case LogChanged():
            return CHANGED
        case UnreadableLog():
            return UNREADABLE
        case _:
            return UNREACHABLE


class BatchRows:
    """Rows of one part, gathered."""

    def __init__(self, origin: Origin, schema: pa.Schema) -> None:
        self.origin = origin
        self.schema = schema
        self.parts: list[pa.RecordBatch] = []
        self.count = 0

    def add(self, found: Judged | Damage) -> None:
        """Tables are copied out of the window, whose memory is used again."""
        if isinstance(found, Damage):
            # Over the wire there are offsets, and no positions.
            place = "base_offset" if self.origin.position is None else "position"
            known = {place: found.position, "size": found.size, "fault": FAULTS[found.fault]}
            self.parts.append(self.of_what_is_known(known))
        else:
            self.parts.append(self.of_batches(found))
        self.count += self.parts[-1].num_rows

    def add_missing(self, part: Piece | Offsets, fault: str) -> None:
        """A part that could not be read: all its bytes in one row."""
        known: dict[str, object] = {"fault": fault}
        if isinstance(part, Piece):
            known |= {"position": part.start, "size": part.end - part.start}
        self.parts.append(self.of_what_is_known(known))
        self.count += 1

    def take(self) -> list[pa.RecordBatch]:
        parts, self.parts, self.count = self.parts, [], 0
        found: list[pa.RecordBatch] = pa.Table.from_batches(parts).combine_chunks().to_batches(ROWS_MAX)
        return found

    def of_batches(self, found: Judged) -> pa.RecordBatch:
        arrays = [batch_column(field, found, self.origin) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def of_what_is_known(self, known: Mapping[str, object]) -> pa.RecordBatch:
        known = {**self.origin._asdict(), "position": None, **known}
        arrays = [pa.array([known.get(field.name)], field.type) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def batch_column(
    field: pa.Field,
    found: Judged,
    origin: Origin,
) -> pa.Array:
    table, faults = found.table, found.faults
    match field.name:
        case "position":
            if origin.position is None:
                return pa.nulls(len(table), field.type)
            return pa.array(table[:, at.POSITION] + found.window.position)
        case "size":
            return pa.array(table[:, at.SIZE]).cast(field.type)
        case "last_offset":
            return pa.array(table[:, at.BASE] + table[:, at.DELTA])
        case "crc_ok":
            return pa.array(found.crc_ok)
        case "fault":
            if not faults.any():
                return pa.nulls(len(table), field.type)
            return pa.array([FAULTS[fault] for fault in faults.tolist()], field.type)
        case name if name in OF_HEADER:
            return pa.array(table[:, OF_HEADER[name]]).cast(field.type)
        case name if name in OF_TIME:
            return times(table[:, OF_TIME[name]], field.type)
        case name:
            return pa.repeat(pa.scalar(getattr(origin, name), field.type), len(table))


def times(milliseconds: NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    """Null where no calendar has it, as a rotten header may say: Python could not read it."""
    wrong = (milliseconds > YEAR_9999_MS) | (milliseconds < YEAR_1_MS)
    return pa.array(np.where(wrong, 0, milliseconds) * 1000, mask=wrong).cast(kind)


def origin_of(part: Piece | Offsets, position: int = 0) -> Origin:
    if isinstance(part, Offsets):
        return part.origin
    replica = part.replica
    return Origin(
        replica.topic, replica.partition, position, part.file.base, replica.broker, replica.directory, replica.topic_id
    )


# --- records


def record_rows(
    part: Piece | Offsets, source: Iterator[Judged | Damage], columns: Columns, *, drops_damage: bool
) -> Iterator[pa.RecordBatch]:
    """A row for each record, those of control batches too. A torn end of the log is passed over: nothing there was
    ever acknowledged that is not on other replicas.

    Raises `DamagedLog` unless `drops_damage`: then what makes no sense is left out. Raises `LogChanged`.
    """
    for found in source:
        if isinstance(found, Damage):
            is_end = found.fault == TORN and isinstance(part, Piece) and part.file.is_active
            if not (drops_damage or is_end):
                what = "no batch begins" if found.fault == CORRUPT else "the file ends in a batch"
                where = "byte" if isinstance(part, Piece) else "offset"
                raise damaged(part, f"{what} at {where} {found.position} ({found.size} bytes)")
            continue
        table, origin = found.table, origin_of(part, found.window.position)
        if not found.crc_ok.all() or (found.faults != SOUND).any():
            if not drops_damage:
                index = int((found.faults != SOUND).argmax())
                where = f"offset {table[index, at.BASE]}, byte {found.window.position + table[index, at.POSITION]}"
                raise damaged(part, f"the batch at {where} has the fault {FAULTS[found.faults[index]]!r}")
            table = table[found.faults == SOUND]
        try:
            check_headers(table, origin)
            decoded = decode_heads(found.window.buffer, table, columns, origin)
            yield from list(decoded) if drops_damage else decoded
        except Corrupt as error:  # the CRC is right, so it was written like that
            if not drops_damage:
                raise damaged(part, str(error)) from None
            yield from decodable(found, table, columns, origin)


def decodable(found: Judged, table: at.Table, columns: Columns, origin: Origin) -> Iterator[pa.RecordBatch]:
    """Batch by batch, without those that make no sense."""
    for index in range(len(table)):
        row = table[index : index + 1]
        try:
            check_headers(row, origin)
            yield from list(decode_heads(found.window.buffer, row, columns, origin))
        except Corrupt:
            continue


def damaged(part: Piece | Offsets, what: str) -> DamagedLog:
    return DamagedLog(
        f"{part.file.path if isinstance(part, Piece) else part.origin}: {what}",
        "level = batch shows every fault; mode = DROPMALFORMED reads the records that are sound",
    )
