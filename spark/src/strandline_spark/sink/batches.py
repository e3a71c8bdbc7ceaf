"""The batch that grows for one partition, and what is sent of it.

Invariants:
  - a sealed batch has at most `batch.size` bytes before compression, unless it is a single record
  - what a broker finds too large is split in two, and later batches of that partition are made no larger than that
"""

import os
import time
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from strandline.client.config import ClientConfig
from strandline.client.lanes import Pending
from strandline.wire.batch import HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC, build, read_header
from strandline.wire.compress import Codec, compress
from strandline.wire.record import records
from strandline_spark.sink.layout import I64, Rows

Encode = Callable[..., tuple[int, int, int, int]]
CHOICE = "STRANDLINE_DECODE"  # "python": without numba though it is there, for decoding and encoding
COST = (
    "numba is not installed, so records are encoded in Python: 15 times slower, about 40 MB/s a core for records of 100"
    " bytes and 300 MB/s for records of 1 KiB; `pip install 'strandline[spark]'` installs it"
)
UNSTAMPED = -1  # producer id, epoch and sequence: the producer writes them, and the CRC


class Where(NamedTuple):
    """Which rows of the task a batch has, for messages: `parts` are (rows before this Arrow batch, rows in it)."""

    parts: tuple[tuple[int, I64], ...]
    first: int = 0  # of the rows of all parts, where the batch begins

    def row(self, delta: int) -> int:
        """The number, from 0 on, that the record has among the task's rows."""
        at = self.first + delta
        for before, chosen in self.parts:
            if at < len(chosen):
                return before + int(chosen[at])
            at -= len(chosen)
        return -1


class Growing:
    """Records for one partition."""

    def __init__(self, config: ClientConfig, encode: Encode) -> None:
        self.config = config
        self.encode = encode
        self.limit = min(config.batch_size, config.max_request_size)
        self.release()
        self.begin()

    def release(self) -> None:
        """Memory that is not touched costs nothing: this one is new. What is in the batch is lost."""
        self.out = np.empty(max(self.config.batch_size, self.config.max_request_size), np.uint8)
        self.touched = 0

    def begin(self) -> None:
        self.position = HEADER_SIZE
        self.count = 0
        self.base_timestamp = 0
        self.max_timestamp = 0
        self.parts: list[tuple[int, I64]] = []

    def append(self, rows: Rows, chosen: I64, at: int, before: int) -> tuple[int, int, int]:
        """As many of the rows `chosen[at:]` as fit: (why it ended, next at, size of a record that is too large)."""
        now = time.time_ns() // 1_000_000
        if not self.count:
            self.base_timestamp = now
        now = max(now, self.base_timestamp)
        why, next_at, position, count = self.encode(
            rows,
            chosen,
            at,
            self.out,
            self.position,
            self.count,
            now - self.base_timestamp,
            self.limit,
            self.config.max_request_size,
        )
        if next_at > at:
            self.position, self.count = int(position), int(count)
            self.max_timestamp = now
            self.touched = max(self.touched, self.position)
            self.parts.append((before, chosen[at:next_at]))
        return int(why), int(next_at), int(position)

    def sealed(self) -> tuple[bytearray, Where]:
        """The batch, which is empty again. The CRC is the producer's to write."""
        assert self.count
        plain = memoryview(self.out)[HEADER_SIZE : self.position]  # type: ignore[arg-type]  # a numpy array is a buffer
        codec = self.config.compression
        if codec is Codec.NONE:
            batch = bytearray(memoryview(self.out)[: self.position])  # type: ignore[arg-type]  # a numpy array is a buffer
        else:
            batch = bytearray(HEADER_SIZE) + compress(codec, plain, self.config.level_of(codec))
        HEADER.pack_into(
            batch,
            0,
            0,
            len(batch) - LOG_OVERHEAD,
            -1,
            MAGIC,
            0,
            codec,
            self.count - 1,
            self.base_timestamp,
            self.max_timestamp,
            UNSTAMPED,
            UNSTAMPED,
            UNSTAMPED,
            self.count,
        )
        where = Where(tuple(self.parts))
        self.begin()
        return batch, where

    def shrink(self, batch: bytearray, where: Where) -> Sequence[Pending]:
        """A broker found the batch too large: two halves of it, and smaller ones from now on."""
        self.limit = max(HEADER_SIZE, min(self.limit, len(batch) // 2))
        return split(batch, where, self.shrink)


def split(batch: bytearray, where: Where, again: Callable[[bytearray, Where], Sequence[Pending]]) -> Sequence[Pending]:
    """Two batches with half of the records each. `again` splits these, if need be."""
    header = read_header(batch)
    drafts = [(r.timestamp, r.key, r.value, r.headers) for r in records(header, batch)]
    middle = (len(drafts) + 1) // 2
    parts: list[Pending] = []
    for first, half in ((0, drafts[:middle]), (middle, drafts[middle:])):
        made = bytearray(build(half, codec=Codec(header.codec)))
        place = Where(where.parts, where.first + first)
        parts.append(Pending(made, place, splitter(made, place, again)))
    return parts


def splitter(
    batch: bytearray, where: Where, again: Callable[[bytearray, Where], Sequence[Pending]]
) -> Callable[[], Sequence[Pending]]:
    return lambda: again(batch, where)


class SlowEncoding(UserWarning):
    """Writing works, and is slow."""


@cache
def encoders() -> Any:
    """The kernel, or its twin where numba is not, with a warning that says what that costs."""
    if os.environ.get(CHOICE) != "python":
        try:
            from strandline_spark.sink import kernel

            return kernel
        except ImportError:
            warnings.warn(COST, SlowEncoding, stacklevel=2)
    from strandline_spark.sink import twin

    return twin
