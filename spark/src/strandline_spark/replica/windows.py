"""A file of batches, read in windows of whole batches, up to the size that it had in the snapshot.

A broker may go on with the log meanwhile. What it may do, and what is made of it:
  - append: what was not part of the snapshot is not read;
  - delete (retention): an open file goes on, and one that has its name of a deleted one is still found;
  - truncate, compact, recreate: `LogChanged`, as soon as it is seen, and at the latest after the last window.
"""

import os
from collections.abc import Iterator
from types import TracebackType
from typing import NamedTuple, Self

from strandline.wire.batch import HEADER_SIZE, Tail, read_header
from strandline.wire.compress import DECOMPRESSED_SIZE_MAX
from strandline_spark.decode import Heads, walk
from strandline_spark.decode.heads import BASE, DELTA
from strandline_spark.replica.errors import LogChanged, naming
from strandline_spark.replica.located import SegmentFile

WINDOW_BYTES = 4 << 20
BATCH_BYTES_MAX = DECOMPRESSED_SIZE_MAX + HEADER_SIZE
DELETED = ".deleted"


class Window(NamedTuple):
    """Whole batches of a file, in memory until the next window is read. `position`: in the file."""

    buffer: memoryview
    position: int
    heads: Heads  # positions in `buffer`
    why_ended: Tail | None  # what lies behind the batches; None: more of the file, or its end


class File:
    """An open segment that is still the one of the snapshot. Raises `LogChanged`, `UnreadableLog`."""

    def __init__(self, file: SegmentFile) -> None:
        self.file = file
        self.fd = -1

    def __enter__(self) -> Self:
        for path in (self.file.path, self.file.path + DELETED):
            try:
                with naming(path):
                    self.fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                self.check()
            except BaseException:
                self.close()
                raise
            return self
        raise LogChanged(f"{self.file.path} is gone: retention, compaction or the topic's deletion took it")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        os.close(fd)

    def check(self) -> None:
        """Is it the same file, and as long as it was?"""
        status, then = self.status(), self.file
        if status.st_ino != then.inode:
            raise LogChanged(f"{then.path} is another file now: compaction, or a recreated topic")
        if status.st_size < then.size:
            raise LogChanged(f"{then.path} was cut from {then.size} to {status.st_size} bytes")
        if not then.is_active and (status.st_size, status.st_mtime_ns) != (then.size, then.modified_ns):
            raise LogChanged(f"{then.path} was written to, though it was not the active segment")

    def status(self) -> os.stat_result:
        with naming(self.file.path):
            return os.fstat(self.fd)

    def size(self) -> int:
        return self.status().st_size

    def read_into(self, buffer: memoryview, position: int) -> memoryview:
        """As much as fits, and as there is."""
        done = 0
        while done < len(buffer):
            with naming(self.file.path):
                count = os.preadv(self.fd, [buffer[done:]], position + done)
            if count == 0:
                break
            done += count
        return buffer[:done]

    def read(self, position: int, size: int) -> memoryview:
        return self.read_into(memoryview(bytearray(size)), position)


def windows(file: File, start: int, end: int) -> Iterator[Window]:
    """Whole batches from `start` on, none beyond `end`. The last window says why there are no more, if that is not
    because `end` is reached; it may be without batches."""
    room = memoryview(bytearray(min(WINDOW_BYTES, max(end - start, 1))))
    position = start
    while position < end:
        buffer = file.read_into(room[: end - position], position)
        if len(buffer) < min(len(room), end - position):
            file.check()  # somebody cuts it just now; or has written it again meanwhile
            continue
        heads = walk(buffer)
        if heads.end == 0 and len(buffer) < end - position and heads.tail is Tail.TRUNCATED:
            needed = read_header(buffer).size if len(buffer) >= HEADER_SIZE else HEADER_SIZE
            if len(buffer) < needed <= min(end - position, BATCH_BYTES_MAX):
                room = memoryview(bytearray(needed))
                continue
        is_last = heads.end == 0 or heads.tail is Tail.CORRUPT or position + len(buffer) >= end
        why = heads.tail if is_last and heads.tail is not Tail.COMPLETE else None
        yield Window(buffer, position, heads, why)
        position += heads.end
        if why is not None:
            return


def end_offset_of(path: str, base: int, start: int = 0) -> int:
    """The offset after the last batch of a file; `start` is where a batch begins."""
    file = SegmentFile.of(path, base, None)
    end = base
    with File(file) as opened:
        for window in windows(opened, start, file.size):
            table = window.heads.table
            if len(table):
                end = int(table[-1, BASE] + table[-1, DELTA]) + 1
            if window.why_ended is not None:
                break
    return end
