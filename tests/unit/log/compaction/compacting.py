"""Compacted logs in memory, and what a naive reader finds in them."""

from tests.unit.log.logs import NOW, ROOT, append, content, small

from strandline.base.time import Instant
from strandline.log.cleaning.cleanable import cleanable
from strandline.log.cleaning.compaction import Compaction
from strandline.log.config import LogConfig
from strandline.log.log import Log
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import BatchHeader, batches, build
from strandline.wire.compress import Codec
from strandline.wire.record import Record, records

MAP_BYTES = 1 << 20
Pair = tuple[str, str | None]


def compacted(**settings: object) -> LogConfig:
    return small(**{"cleanup_policy": ("compact",), **settings})


def keyed(
    *pairs: Pair,
    codec: Codec = Codec.NONE,
    timestamp: int = NOW,
    producer: tuple[int, int, int] | None = None,
) -> bytes:
    producer_id, epoch, sequence = producer or (-1, -1, -1)
    return build(
        [(timestamp, key.encode(), None if value is None else value.encode(), (("h", b"x"),)) for key, value in pairs],
        codec=codec,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


def write(log: Log, *rows: tuple[Pair, ...] | Pair, epoch: int = 0) -> None:
    """A row is a batch."""
    for row in rows:
        pairs = row if isinstance(row[0], tuple) else (row,)
        append(log, keyed(*pairs), epoch)


def roll(log: Log, disk: SimDisk) -> None:
    if log.active.size:
        log.roll(log.log_end_offset)
    sync(log, disk)


def sync(log: Log, disk: SimDisk) -> None:
    disk.sync(log.unsynced())
    log.mark_synced(log.log_end_offset)
    disk.sync(["/d"])


def begin(log: Log, *, now: int = NOW, high_watermark: int | None = None, map_bytes: int = MAP_BYTES) -> Compaction:
    end = log.log_end_offset if high_watermark is None else high_watermark
    return Compaction(log, cleanable(log, end, Instant(now)), end, Instant(now), map_bytes)


def finish(run: Compaction, disk: SimDisk, limit: int = 100) -> None:
    while not run.is_done:
        run.go_on(limit)
        if run.is_copied:
            disk.sync(run.unsynced())
            run.swap()
    run.log.check()


def compact(
    log: Log, disk: SimDisk, *, now: int = NOW, high_watermark: int | None = None, map_bytes: int = MAP_BYTES
) -> Compaction:
    run = begin(log, now=now, high_watermark=high_watermark, map_bytes=map_bytes)
    finish(run, disk)
    return run


def headers(log: Log) -> list[BatchHeader]:
    """From the files: the tail still has what was appended."""
    log.tail.clear()
    return list(batches(content(log)))


def all_of(log: Log) -> list[Record]:
    log.tail.clear()
    piece = content(log)
    return [record for header in batches(piece) for record in records(header, piece)]


def pairs(log: Log) -> list[tuple[int, str, str | None]]:
    return [(r.offset, (r.key or b"").decode(), None if r.value is None else r.value.decode()) for r in all_of(log)]


def reopen(
    disk: SimDisk, config: LogConfig, *, clean: bool, recovery_point: int = 0, cleaned_to: int | None = 0
) -> Log:
    log = Log.open(
        disk,
        ROOT,
        config,
        NOW,
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=0,
        cleaned_to=cleaned_to,
    )
    log.check()
    return log
