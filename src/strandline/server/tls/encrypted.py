"""A transport with TLS that encrypts only what the other side takes.

uvloop encrypts a whole answer at once, and does not count what it has passed on to the socket's transport: each client
that reads nothing would hold tens of megabytes that nobody knows of. So an answer is encrypted a piece at a time, and
the rest waits here, as it is, and counted. Small buffers are joined, since each one would be a record of its own.

Invariants:
  - bytes leave in the order in which they were written;
  - below this there are at most two pieces, encrypted;
  - `on_pause` and `on_resume` are called in turn, as asyncio's transports do.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from strandline.base.ports import Buffer

PIECE_BYTES = 256 * 1024
JOINED_BYTES_MAX = 64 * 1024


def nothing() -> None:
    """The connection has ended: nobody is to be told."""


class Encrypted(asyncio.Transport):
    def __init__(
        self,
        inner: asyncio.Transport,
        high: int,
        on_pause: Callable[[], None] = nothing,
        on_resume: Callable[[], None] = nothing,
    ) -> None:
        """`inner` must call `block` and `unblock` in the place of the protocol's `pause_writing` and
        `resume_writing`. Above `high` bytes `on_pause` is called, and below a quarter of them `on_resume`."""
        super().__init__()
        self.inner = inner
        self.high = high
        self.on_pause = on_pause
        self.on_resume = on_resume
        self.waiting: deque[memoryview] = deque()
        self.waiting_bytes = 0
        self.is_blocked = False  # the inner transport takes nothing more for now
        self.is_paused = False
        self.is_ending = False  # it closes when nothing waits any more
        inner.set_write_buffer_limits(high=PIECE_BYTES)

    # --- writing

    def write(self, data: Any) -> None:
        self.writelines((data,))

    def writelines(self, buffers: Iterable[Buffer]) -> None:
        whole = buffers if isinstance(buffers, list | tuple) else list(buffers)
        size = sum(map(len, whole))
        if size <= PIECE_BYTES and not self.waiting and not self.is_blocked:
            self.pass_on(whole, size)
            return
        self.waiting.extend(memoryview(buffer) for buffer in whole if len(buffer))
        self.waiting_bytes += size
        self.feed()
        if not self.is_paused and self.get_write_buffer_size() > self.high:
            self.is_paused = True
            self.on_pause()

    def feed(self) -> None:
        while self.waiting and not self.is_blocked:
            parts, size = self.next_piece()
            self.waiting_bytes -= size
            assert self.waiting_bytes >= 0
            self.pass_on(parts, size)
        if self.is_ending and not self.waiting:
            self.inner.close()

    def next_piece(self) -> tuple[list[memoryview], int]:
        parts, size = [], 0
        while self.waiting and size < PIECE_BYTES:
            part = self.waiting.popleft()
            room = PIECE_BYTES - size
            if len(part) > room:
                self.waiting.appendleft(part[room:])
                part = part[:room]
            parts.append(part)
            size += len(part)
        return parts, size

    def pass_on(self, parts: Sequence[Buffer], size: int) -> None:
        assert size <= PIECE_BYTES
        if size <= JOINED_BYTES_MAX:
            self.inner.write(parts[0] if len(parts) == 1 else b"".join(parts))
        else:
            self.inner.writelines(parts)

    def block(self) -> None:
        self.is_blocked = True

    def unblock(self) -> None:
        self.is_blocked = False
        self.feed()
        if self.is_paused and self.get_write_buffer_size() <= self.high // 4:
            self.is_paused = False
            self.on_resume()

    def get_write_buffer_size(self) -> int:
        return self.waiting_bytes + self.inner.get_write_buffer_size()

    # --- the end

    def close(self) -> None:
        """What is already written still goes out."""
        self.is_ending = True
        if not self.waiting:
            self.inner.close()

    def abort(self) -> None:
        self.ended()
        self.inner.abort()

    def ended(self) -> None:
        """Nothing is sent any more."""
        self.waiting.clear()
        self.waiting_bytes = 0
        self.on_pause = self.on_resume = nothing

    def is_closing(self) -> bool:
        return self.is_ending or self.inner.is_closing()

    # --- the rest is the inner transport's

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.inner.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self.inner.pause_reading()

    def resume_reading(self) -> None:
        self.inner.resume_reading()
