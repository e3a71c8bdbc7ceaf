"""Logs in memory and batches for them."""

from strandline.base.ids import OFFSET_MAX
from strandline.base.time import Instant
from strandline.log.config import LogConfig
from strandline.log.log import Appended, Log
from strandline.log.reading import Read
from strandline.sim.world.disk import SimDisk
from strandline.wire.batch import HEADER_SIZE, batches, build

ROOT = "/d/t-0"
NOW = Instant(1_000_000)


def open_log(
    disk: SimDisk,
    config: LogConfig | None = None,
    *,
    clean: bool = True,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    high_watermark: int = OFFSET_MAX,
    tail_bytes: int = 4 << 20,
) -> Log:
    log = Log.open(
        disk,
        ROOT,
        config or LogConfig(),
        NOW,
        clean=clean,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        high_watermark=high_watermark,
        tail_bytes=tail_bytes,
    )
    log.check()
    return log


def small(**settings: object) -> LogConfig:
    """Segments of a few batches, with an index entry for nearly each."""
    return LogConfig(**{"segment_bytes": 500, "index_interval_bytes": 100, **settings})  # type: ignore[arg-type]


def produced(
    count: int = 1, *, timestamp: int = NOW, size: int = 10, producer: tuple[int, int, int] | None = None
) -> bytes:
    producer_id, epoch, sequence = producer or (-1, -1, -1)
    return build(
        [(timestamp + i, None, b"v" * size, ()) for i in range(count)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


def append(log: Log, batch: bytes, epoch: int = 0, now: int = NOW) -> Appended:
    done = log.append_as_leader(bytearray(batch), epoch, Instant(now))
    assert isinstance(done, Appended), done
    log.check()
    return done


def fill(log: Log, batches_count: int, *, records: int = 2, epoch: int = 0) -> None:
    for _ in range(batches_count):
        append(log, produced(records), epoch)


def content(log: Log, start: int | None = None) -> bytes:
    """All bytes from an offset to the end, read in pieces."""
    offset = log.log_start_offset if start is None else start
    out = b""
    while offset < log.log_end_offset:
        read = log.read(offset, 1 << 20, upto=log.log_end_offset, min_one=True)
        assert isinstance(read, Read), read
        piece = b"".join(bytes(b) for b in read.buffers)
        assert len(piece) == read.size >= HEADER_SIZE
        out += piece
        offset = list(batches(piece))[-1].next_offset
    return out


def ranges(piece: bytes) -> list[tuple[int, int]]:
    """(base offset, next offset) of each batch."""
    return [(h.base_offset, h.next_offset) for h in batches(piece)]
