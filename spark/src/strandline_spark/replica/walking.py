"""The batches of a piece, judged: what is sound, and what kind of damage lies where.

Faults, of which a batch has the first that holds:
  - "corrupt": no batch begins here; the row spans the bytes up to where one begins that has its right CRC
  - "torn": the file ends within a batch
  - "crc": the bytes are not those that were written
  - "misplaced": the offsets are not above the batch before, or outside of the segment's
A piece whose file is not what it was is `LogChanged`, and a write that is under way is not damage.
"""

import time
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from strandline.base.crc32c import crc32c
from strandline.log.checkpoints import Unreadable, parse_epochs
from strandline.log.segment import OFFSET_SPAN_MAX
from strandline.wire.batch import (
    ATTRIBUTES_AT,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    Tail,
    read_header,
    why_invalid,
    why_no_batch,
)
from strandline_spark.decode.heads import BASE, CRC, DELTA, EPOCH, POSITION, SIZE, Table
from strandline_spark.replica.errors import LogChanged
from strandline_spark.replica.places import epochs_content
from strandline_spark.replica.planning import Piece
from strandline_spark.replica.windows import BATCH_BYTES_MAX, File, Window, windows

SOUND, TORN, CORRUPT, BAD_CRC, MISPLACED = range(5)
FAULTS = (None, "torn", "corrupt", "crc", "misplaced")
SEARCH_BYTES = 4 << 20
GRACE_SECONDS = (0.02, 0.1, 0.3)  # how long a write may be under way


class Damage(NamedTuple):
    """Bytes that are not a batch. `position` is in the file; over the wire it is the offset that was asked for."""

    position: int
    size: int
    fault: int  # TORN or CORRUPT


class Judged(NamedTuple):
    """Batches of one window, with positions in `window.buffer`, and what their CRCs say."""

    window: Window
    table: Table
    crc_ok: NDArray[np.bool_]
    faults: NDArray[np.int64]  # SOUND, BAD_CRC or MISPLACED


def judged(piece: Piece) -> Iterator[Judged | Damage]:
    """All of a piece, in the order of the file. Raises `LogChanged`."""
    with File(piece.file) as file:
        last = floor_of(piece, file)
        seen = Seen(piece)
        position = piece.start
        while position < piece.end:
            why: Tail | None = None
            for window in windows(file, position, piece.end):
                position, why = window.position + window.heads.end, window.why_ended
                if len(window.heads.table):
                    found = judge(window, piece, last, file)
                    found, hidden = unhidden(found, piece, last, file)
                    last = last_offset(found, last)
                    seen.add(found)
                    yield found
                    if hidden is not None:
                        position, why = hidden, None
                        break
            else:
                if why is None:
                    break
            if why is not None:
                damage = damage_at(file, piece, position, last, why)
                if damage is None:
                    break
                yield damage
                position += damage.size
        file.check()
        seen.check()


def floor_of(piece: Piece, file: File) -> int:
    """The last offset before the piece, as well as it can be known: that of the batch before, unless that is itself
    what the batches on both its sides contradict."""
    spans: list[tuple[int, int]] = []
    if piece.lead < piece.start:
        for window in windows(file, piece.lead, piece.start):
            table = window.heads.table[crcs_ok(window.heads.table, window.buffer)]
            spans += zip(table[:, BASE].tolist(), (table[:, BASE] + table[:, DELTA]).tolist(), strict=True)
            del spans[:-2]
    if not spans:
        return piece.file.base - 1
    first = base_at(file, piece.start, piece.file.size)
    if len(spans) == 2 and first is not None and spans[0][1] < first <= spans[1][1] and spans[1][0] > spans[0][1] + 1:
        spans.pop()
    return max(piece.file.base - 1, spans[-1][1])


def judge(window: Window, piece: Piece, last: int, file: File) -> Judged:
    table = window.heads.table
    crc_ok = crcs_ok(table, window.buffer)
    faults = np.where(crc_ok, SOUND, BAD_CRC)
    ends = table[:, BASE] + table[:, DELTA]
    ceiling = piece.file.base + OFFSET_SPAN_MAX + 1 if piece.file.following is None else piece.file.following
    outside = (table[:, BASE] < piece.file.base) | (ends >= ceiling) | (ends < table[:, BASE]) | ~crc_ok
    rises = np.concatenate(([table[0, BASE] > last], table[1:, BASE] > ends[:-1]))
    before = last if len(table) == 1 else int(ends[-2])
    following = None  # looked at only behind a gap, since only a gap makes the last batch doubtful
    if int(table[-1, BASE]) > before + 1:
        following = base_at(file, window.position + window.heads.end, piece.file.size)
    if outside.any() or not rises.all() or (following is not None and following <= ends[-1]):
        misplaced = fallen(table[:, BASE].tolist(), ends.tolist(), outside.tolist(), last, following)
        faults = np.where(crc_ok & misplaced, MISPLACED, faults)
    return Judged(window, table, crc_ok, faults)


def crcs_ok(table: Table, view: memoryview) -> NDArray[np.bool_]:
    columns = zip(table[:, POSITION].tolist(), table[:, SIZE].tolist(), table[:, CRC].tolist(), strict=True)
    return np.array([crc32c(view[at + ATTRIBUTES_AT : at + size]) == crc for at, size, crc in columns], np.bool_)


def base_at(file: File, position: int, end: int) -> int | None:
    """The base offset of the batch at `position`; None if none begins there."""
    head = file.read(position, HEADER_SIZE) if position + HEADER_SIZE <= end else memoryview(b"")
    if len(head) < HEADER_SIZE or why_no_batch(head, 0) is Tail.CORRUPT:
        return None
    return read_header(head).base_offset


def fallen(bases: list[int], ends: list[int], outside: list[bool], last: int, behind: int | None) -> NDArray[np.bool_]:
    """Which batches do not lie above those before. One that the next but not the last contradicts is itself wrong.
    `behind` is where the batch after all of them begins, if that is known."""
    found = np.array(outside, np.bool_)
    following: list[int | None] = [behind]  # of each batch, from the last one: where the next begins that may count
    for base, is_outside in zip(reversed(bases[1:]), reversed(outside[1:]), strict=True):
        following.append(following[-1] if is_outside else base)
    for index, (base, after) in enumerate(zip(bases, reversed(following), strict=True)):
        if outside[index]:
            continue
        is_spike = after is not None and last < after <= ends[index] and base > last + 1
        if base <= last or is_spike:
            found[index] = True
        else:
            last = ends[index]
    return found


def unhidden(found: Judged, piece: Piece, last: int, file: File) -> tuple[Judged, int | None]:
    """A batch with a wrong CRC may have a wrong length too. If a sound batch begins within what it says to be its
    bytes, then it ends there, and the walk goes on from that position in the file."""
    for index in np.flatnonzero(~found.crc_ok).tolist():
        at, size = found.table[index, [POSITION, SIZE]].tolist()
        start = found.window.position + at
        before = found._replace(table=found.table[:index], faults=found.faults[:index])
        inner = search(file, piece, start + 1, start + size, last_offset(before, last))
        if inner is not None:
            table = found.table[: index + 1].copy()
            table[index, SIZE] = inner - start
            return Judged(found.window, table, found.crc_ok[: index + 1], found.faults[: index + 1]), inner
    return found, None


def last_offset(found: Judged, last: int) -> int:
    sound = found.faults == SOUND
    return max(last, int((found.table[sound, BASE] + found.table[sound, DELTA]).max())) if sound.any() else last


# --- what is not a batch


def damage_at(file: File, piece: Piece, position: int, last: int, why: Tail | None) -> Damage | None:
    """What lies at `position`, where no complete batch is. None if it is a write that was under way."""
    is_end = piece.end == piece.file.size
    if why is not Tail.CORRUPT and is_end and piece.file.is_active and is_being_written(file, piece):
        return None
    following = search(file, piece, position + 1, piece.end, last)
    if following is None:  # perhaps it was the last offset that was wrong
        following = search(file, piece, position + 1, piece.end, piece.file.base - 1)
    if following is not None:
        return Damage(position, following - position, CORRUPT)
    is_torn = why is not Tail.CORRUPT and is_end
    return Damage(position, piece.end - position, TORN if is_torn else CORRUPT)


def is_being_written(file: File, piece: Piece) -> bool:
    """The snapshot's last batch was not complete. Does the file grow? Then it belongs to what came later."""
    for grace in GRACE_SECONDS:
        if file.size() > piece.file.size:
            return True  # a broker that finds a torn tail cuts it before it writes on
        file.check()
        time.sleep(grace)
    return file.size() > piece.file.size


def search(file: File, piece: Piece, position: int, end: int, last: int) -> int | None:
    """Where, below `end`, the next batch begins that is in its place and has its right CRC; None if none does."""
    while position < end:
        buffer = file.read(position, min(SEARCH_BYTES, end - position + HEADER_SIZE - 1, piece.end - position))
        for at in candidates(buffer, piece, last):
            header = read_header(buffer, at)
            if header.size > piece.end - position - at:
                continue
            whole = file.read(position + at, header.size)
            if len(whole) == header.size and why_invalid(read_header(whole), whole) is None:
                return position + at
        if len(buffer) < HEADER_SIZE:
            return None
        position += len(buffer) - HEADER_SIZE + 1
    return None


def candidates(buffer: memoryview, piece: Piece, last: int) -> list[int]:
    """Where a header could lie, by magic, length and offset: of random bytes, nearly nowhere."""
    if len(buffer) < HEADER_SIZE:
        return []
    source = np.frombuffer(buffer, np.uint8)
    at = np.flatnonzero(source[MAGIC_AT : len(source) - HEADER_SIZE + MAGIC_AT + 1] == MAGIC)
    bases, lengths = numbers(source, at, 8), numbers(source, at + 8, 4)
    above = piece.file.base + OFFSET_SPAN_MAX
    fits = (bases > last) & (bases <= above)
    fits &= (lengths >= HEADER_SIZE - LOG_OVERHEAD) & (lengths <= BATCH_BYTES_MAX)
    found: list[int] = at[fits].tolist()
    return found


def numbers(source: NDArray[np.uint8], at: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Big-endian; negative ones too, of 8 bytes."""
    value = np.zeros(len(at), np.int64)
    for i in range(size):
        value = (value << 8) | source[at + i]
    return value


# --- was the log truncated and written again, behind our back?


class Seen:
    """The epochs of the batches of an active segment, held against the checkpoint of epochs after the read.

    A follower that truncates and writes on does so in another epoch. If what was read is not what the checkpoint says,
    and the checkpoint is not what it was, the log changed; if it is what it was, the log is simply wrong.
    """

    def __init__(self, piece: Piece) -> None:
        self.piece = piece
        self.epochs: list[tuple[int, int]] = []  # as they come, each with the offset of its last batch

    def add(self, found: Judged) -> None:
        if not self.piece.file.is_active:
            return
        table = found.table[found.faults == SOUND]
        ends = [*np.flatnonzero(np.diff(table[:, EPOCH])).tolist(), len(table) - 1] if len(table) else []
        for base, epoch in table[ends][:, [BASE, EPOCH]].tolist():
            if self.epochs and self.epochs[-1][1] == epoch:
                self.epochs.pop()
            self.epochs.append((base, epoch))

    def check(self) -> None:
        if not self.epochs:
            return
        now = epochs_content(self.piece.replica)
        if now == self.piece.epochs or now is None:
            return
        try:
            starts = [(entry.start_offset, entry.epoch) for entry in parse_epochs(now)]
        except Unreadable:
            return  # damaged, which another rule finds
        for offset, epoch in self.epochs:
            at = bisect_right(starts, (offset, 1 << 31))
            if at and starts[at - 1][1] > epoch:
                start, newer = starts[at - 1]
                raise LogChanged(f"{self.piece.replica} was cut, and written again from {start} on in epoch {newer}")
