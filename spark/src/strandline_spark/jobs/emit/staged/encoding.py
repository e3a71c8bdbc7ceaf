"""Staged rows as record batches, without an object per record where numba is."""

from typing import Any

import numpy as np

from strandline.client.config import ClientConfig
from strandline.wire.batch import HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC, append_record
from strandline.wire.compress import Codec, compress
from strandline_spark.decode import backend
from strandline_spark.jobs.emit.plan import Lane
from strandline_spark.jobs.emit.staged.rows import I64, Chosen
from strandline_spark.sink import twin

UNSIGNED = 0  # the CRC: the producer writes it, when it has stamped the batch


def encode(chosen: Chosen, lane: Lane, sequence: int, config: ClientConfig, now_ms: int) -> bytearray:
    """The rows as one batch of `lane`. Rows without a time of their own get `now_ms`.

    Its CRC is 0 yet: `Producer.send` stamps it."""
    times = chosen.times(now_ms)
    base = int(times[0])
    records = compiled(chosen, times - base) if backend() == "numba" else in_python(chosen, times - base)
    codec = config.compression
    packed = records if codec is Codec.NONE else compress(codec, records, config.level_of(codec))
    batch = bytearray(HEADER_SIZE + len(packed))
    batch[HEADER_SIZE:] = packed
    count = chosen.length
    epoch, length = -1, len(batch) - LOG_OVERHEAD
    producer = (lane.producer_id, lane.producer_epoch, sequence)
    HEADER.pack_into(
        batch, 0, 0, length, epoch, MAGIC, UNSIGNED, codec, count - 1, base, int(times.max()), *producer, count
    )
    return batch


def compiled(chosen: Chosen, deltas: I64) -> Any:
    from strandline_spark.jobs.emit.staged import kernel

    out = np.empty(chosen.size, np.uint8)
    end = kernel.encode(chosen.rows, chosen.indices, deltas, out, 0)
    assert end <= len(out), f"{end} bytes were written to {len(out)}"
    return memoryview(out)[:end]  # type: ignore[arg-type]  # a numpy array is a buffer


def in_python(chosen: Chosen, deltas: I64) -> bytes:
    out = bytearray()
    for at, (row, delta) in enumerate(zip(chosen.indices.tolist(), deltas.tolist(), strict=True)):
        draft = twin.draft_of(chosen.rows, row, delta)
        assert draft is not None, "a header has a key"
        append_record(out, at, 0, draft)
    return bytes(out)
