"""What is known of idempotent producers, as it stood at an offset: Kafka's `.snapshot` files beside the segments.

A snapshot only saves reading: what it says, the batches below its offset said. One is written where a segment begins
and at a clean stop, so what is read of a log at its start, or after a truncation, is a segment's headers at most.

A producer has one row for each batch that is remembered of it, in order. Kafka writes the last one only, and of several
rows it believes the last; so each reads what the other wrote, and here a restart forgets nothing.

Invariants:
  - no snapshot is ahead of the log: those above its end are removed before anything is appended;
  - after an unclean stop none is believed that is not below the recovery point: that moves past a snapshot only when
    its file, and the removal of one that had its name before, are durable;
  - one that is damaged counts as none, and so do all if a batch is not where one of them says.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import TYPE_CHECKING

from crc32c import crc32c

from strandline.base.ports import Disk
from strandline.base.time import Instant
from strandline.log.producers.producers import Producer, Producers, Remembered, step_back
from strandline.log.segment import file_name
from strandline.wire.batch import batches

if TYPE_CHECKING:
    from strandline.log.log import Log

SUFFIX = ".snapshot"
VERSION = 1
HEAD = Struct(">hI")
COUNT = Struct(">i")
# producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first offset of the
# transaction
ROW = Struct(">qhiqiqiq")
NONE = -1


class Damaged(ValueError):
    """A snapshot that is not whole, or not in Kafka's format."""


# --- the format


def encode(producers: Producers) -> bytes:
    rows = b"".join(
        row for producer_id, producer in sorted(producers.known.items()) for row in rows_of(producer_id, producer)
    )
    body = COUNT.pack(len(rows) // ROW.size) + rows
    return HEAD.pack(VERSION, crc32c(body)) + body


def rows_of(producer_id: int, producer: Producer) -> Iterable[bytes]:
    if not producer.batches:
        yield ROW.pack(producer_id, producer.epoch, NONE, NONE, 0, NONE, NONE, NONE)
    for one in producer.batches:
        delta = one.last_offset - one.base_offset
        yield ROW.pack(
            producer_id, producer.epoch, one.last_sequence, one.last_offset, delta, one.timestamp, NONE, NONE
        )


def decode(content: bytes, now: Instant) -> Producers:
    """`now` counts as the time when each of them was last heard of."""
    if len(content) < HEAD.size + COUNT.size:
        raise Damaged("cut off")
    version, crc = HEAD.unpack_from(content)
    body = content[HEAD.size :]
    if version != VERSION or crc != crc32c(body):
        raise Damaged(f"version {version}, checksum {crc:08x}")
    (count,) = COUNT.unpack_from(body)
    if count * ROW.size != len(body) - COUNT.size:
        raise Damaged(f"{count} rows in {len(body)} bytes")
    producers = Producers()
    for producer_id, epoch, sequence, offset, delta, timestamp, _, _ in ROW.iter_unpack(body[COUNT.size :]):
        batches = []
        if offset >= 0:
            batches = [Remembered(step_back(sequence, delta), sequence, offset - delta, offset, timestamp)]
        producers.restore(producer_id, epoch, batches, now)
    return producers


# --- the files


def path_of(log: Log, offset: int) -> str:
    return f"{log.directory}/{file_name(offset, SUFFIX)}"


def offsets_in(disk: Disk, directory: str) -> list[int]:
    stems = [name.removesuffix(SUFFIX) for name in disk.list(directory) if name.endswith(SUFFIX)]
    return sorted(int(stem) for stem in stems if len(stem) == 20 and stem.isascii() and stem.isdigit())


def take(log: Log, offset: int) -> None:
    """Write down what is known at the log's end, unless that was done; `offset` is the next that is written, which may
    lie behind a gap. It is synced with what the log has so far."""
    is_first = offset == log.bases[0] and not log.producers.known
    if is_first or (log.snapshots and log.snapshots[-1] == offset):
        return
    path = path_of(log, offset)
    log.disk.write_file(path, encode(log.producers))
    log.snapshots.append(offset)
    log.unsynced_others[path] = None
    log.unsynced_others[log.directory] = None


def keep(log: Log, kept: Iterable[int]) -> None:
    """Remove all others, the last ones first: a crash in the middle leaves those that are older."""
    kept = list(kept)
    for offset in reversed(log.snapshots):
        if offset not in kept:
            log.disk.remove(path_of(log, offset))
            log.unsynced_others[log.directory] = None
    log.snapshots = kept


def load(log: Log, now: Instant, *, believed_below: int) -> None:
    """At start: find the snapshots, drop those that cannot be believed or belong to no segment, and learn the state."""
    for name in log.disk.list(log.directory):
        if name.endswith(f"{SUFFIX}.tmp"):
            log.disk.remove(f"{log.directory}/{name}")
    log.snapshots = offsets_in(log.disk, log.directory)
    sound = [offset for offset in log.snapshots if offset <= log.log_end_offset and offset < believed_below]
    # The newest may be of a clean stop, in the middle of the last segment.
    keep(log, [offset for offset in sound if offset in log.bases or offset == sound[-1] > log.bases[-1]])
    rebuild(log, now)


def rebuild(log: Log, now: Instant) -> None:
    """From the newest snapshot that is not damaged, and from the headers behind it."""
    log.producers = Producers()
    start = log.log_start_offset
    while log.snapshots:
        offset = log.snapshots[-1]
        content = log.disk.read_file(path_of(log, offset))
        try:
            found = decode(content or b"", now)
            if found.end_offset > offset:
                raise Damaged(f"it names a batch that ends at {found.end_offset}")
            log.producers = found
        except Damaged:
            keep(log, log.snapshots[:-1])
            continue
        log.producers.forget_gone(log.log_start_offset, now, log.config.producer_id_expiration_ms)
        start = offset
        break
    if start < log.log_end_offset:
        for header in log.headers(start):
            if header.producer_id >= 0:
                log.producers.appended(header, header.base_offset, now)


def distrust(log: Log, now: Instant) -> None:
    """A batch is not where it is remembered: only the log itself is believed."""
    keep(log, [])
    rebuild(log, now)


def mend(log: Log, patch: memoryview, start: int, end: int, now: Instant) -> None:
    """Damaged batches in [start, end) were repaired with `patch`. What was learned from them may be written down."""
    if log.producers.mend(batches(patch), start, end, now):
        keep(log, [offset for offset in log.snapshots if offset <= start])


# --- following the log


def cut_end(log: Log) -> None:
    """The log was truncated. Only if a batch of a producer went must something be read."""
    keep(log, [offset for offset in log.snapshots if offset <= log.log_end_offset])
    if log.producers.end_offset > log.log_end_offset:
        rebuild(log, log.touched)


def cut_start(log: Log) -> None:
    """Segments were deleted. Who wrote to them is remembered until he is idle, and by the snapshots that remain."""
    keep(log, [offset for offset in log.snapshots if offset >= log.bases[0]])


def cut_all(log: Log) -> None:
    """Before the whole log goes."""
    keep(log, [])
    log.producers = Producers()
