"""The rows of the levels batch and record, as Arrow."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from strandline.pipeline.decode import Columns, Origin, decode_heads
from strandline.pipeline.decode import heads as at
from strandline.pipeline.decode.decoding import check_headers
from strandline.pipeline.errors import PipelineError
from strandline.pipeline.replica.planning import Piece
from strandline.pipeline.replica.walking import CORRUPT, FAULTS, SOUND, TORN, Damage, Judged, judged
from strandline.pipeline.replica.windows import LogChanged
from strandline.wire.compress import Corrupt

ROWS_MAX = 1 << 16  # in one Arrow batch
CHANGED = "changed"
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
MILLISECONDS_MAX = (1 << 63) // 1000


class DamagedLog(PipelineError):
    """Records that were asked for make no sense."""


# --- batches


def batch_rows(piece: Piece, schema: pa.Schema, *, reports_changes: bool) -> Iterator[pa.RecordBatch]:
    """A row for each batch of the piece, and for each stretch of bytes that is none.

    With `reports_changes` a log that changed has one row instead, whose fault is "changed". Raises `LogChanged`.
    """
    rows = BatchRows(piece, schema)
    try:
        for found in judged(piece):
            rows.add(found)
            if rows.count >= ROWS_MAX and not reports_changes:
                yield rows.take()
    except LogChanged:
        if not reports_changes:
            raise
        rows = BatchRows(piece, schema)
        rows.add(Damage(piece.start, piece.end - piece.start, len(FAULTS)))
    if rows.count:
        yield rows.take()


class BatchRows:
    """Rows of one piece, gathered."""

    def __init__(self, piece: Piece, schema: pa.Schema) -> None:
        self.piece = piece
        self.schema = schema
        self.parts: list[pa.RecordBatch] = []
        self.count = 0

    def add(self, found: Judged | Damage) -> None:
        """Tables are copied out of the window, whose memory is used again."""
        part = self.of_damage(found) if isinstance(found, Damage) else self.of_batches(found)
        self.parts.append(part)
        self.count += part.num_rows

    def take(self) -> pa.RecordBatch:
        parts, self.parts, self.count = self.parts, [], 0
        (whole,) = pa.Table.from_batches(parts).combine_chunks().to_batches()
        return whole

    def of_batches(self, found: Judged) -> pa.RecordBatch:
        positions = found.table[:, at.POSITION] + found.window.position
        arrays = [
            batch_column(field, found.table, positions, found.crc_ok, found.faults, self.piece) for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def of_damage(self, found: Damage) -> pa.RecordBatch:
        known = {
            **origin_of(self.piece)._asdict(),
            "position": found.position,
            "size": found.size,
            "fault": [*FAULTS, CHANGED][found.fault],
        }
        arrays = [pa.array([known.get(field.name)], field.type) for field in self.schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def batch_column(
    field: pa.Field,
    table: at.Table,
    positions: NDArray[np.int64],
    crc_ok: NDArray[np.bool_],
    faults: NDArray[np.int64],
    piece: Piece,
) -> pa.Array:
    match field.name:
        case "position":
            return pa.array(positions)
        case "size":
            return pa.array(table[:, at.SIZE]).cast(field.type)
        case "last_offset":
            return pa.array(table[:, at.BASE] + table[:, at.DELTA])
        case "crc_ok":
            return pa.array(crc_ok)
        case "fault":
            if not faults.any():
                return pa.nulls(len(table), field.type)
            return pa.array([FAULTS[fault] for fault in faults.tolist()], field.type)
        case name if name in OF_HEADER:
            return pa.array(table[:, OF_HEADER[name]]).cast(field.type)
        case name if name in OF_TIME:
            return times(table[:, OF_TIME[name]], field.type)
        case name:
            return pa.repeat(pa.scalar(getattr(origin_of(piece), name), field.type), len(table))


def times(milliseconds: NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    """Null where microseconds cannot say it."""
    wrong = (milliseconds > MILLISECONDS_MAX) | (milliseconds < -MILLISECONDS_MAX)
    return pa.array(np.where(wrong, 0, milliseconds) * 1000, mask=wrong).cast(kind)


def origin_of(piece: Piece, position: int = 0) -> Origin:
    replica = piece.replica
    return Origin(
        replica.topic, replica.partition, position, piece.file.base, replica.broker, replica.directory, replica.topic_id
    )


# --- records


def record_rows(piece: Piece, columns: Columns, *, drops_damage: bool) -> Iterator[pa.RecordBatch]:
    """A row for each record, those of control batches too. A torn end of the log is passed over: nothing there was
    ever acknowledged that is not on other replicas.

    Raises `DamagedLog` unless `drops_damage`: then what makes no sense is left out. Raises `LogChanged`.
    """
    for found in judged(piece):
        if isinstance(found, Damage):
            if not (drops_damage or (found.fault == TORN and piece.file.is_active)):
                what = "no batch begins" if found.fault == CORRUPT else "the file ends in a batch"
                raise damaged(piece, f"{what} at byte {found.position} ({found.size} bytes)")
            continue
        table, origin = found.table, origin_of(piece, found.window.position)
        if not found.crc_ok.all() or (found.faults != SOUND).any():
            if not drops_damage:
                index = int((found.faults != SOUND).argmax())
                where = f"offset {table[index, at.BASE]}, byte {found.window.position + table[index, at.POSITION]}"
                raise damaged(piece, f"the batch at {where} has the fault {FAULTS[found.faults[index]]!r}")
            table = table[found.faults == SOUND]
        try:
            check_headers(table, origin)
            decoded = decode_heads(found.window.buffer, table, columns, origin)
            yield from list(decoded) if drops_damage else decoded
        except Corrupt as error:  # the CRC is right, so it was written like that
            if not drops_damage:
                raise damaged(piece, str(error)) from None
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


def damaged(piece: Piece, what: str) -> DamagedLog:
    return DamagedLog(
        f"{piece.file.path}: {what}",
        "level = batch shows every fault; mode = DROPMALFORMED reads the records that are sound",
    )
