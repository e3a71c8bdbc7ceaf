"""Reads off the event loop: `Warm` effects, performed by a few threads and answered by `Warmed`.

A thread reads into a buffer that it throws away: what counts is that the kernel has it afterwards. Then the kernel is
asked to read on, since who reads old records mostly reads all that follow; so the next request finds much of it there.
"""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from strandline.base.effects import Warm, Warmed

THREADS = 4
PIECE_BYTES = 256 << 10
AHEAD_BYTES = 8 << 20


class Warmer:
    def __init__(self, loop: asyncio.AbstractEventLoop, on_event: Callable[[Warmed], None]) -> None:
        self.loop = loop
        self.on_event = on_event
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="warmer")

    def submit(self, effect: Warm) -> None:
        future = self.threads.submit(warm, effect.path, effect.position, effect.size)
        future.add_done_callback(lambda done: self.hand_over(effect, done))

    def hand_over(self, effect: Warm, done: "Future[None]") -> None:
        """Runs in a thread: back to the loop, unless the loop is gone."""
        if not done.cancelled() and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.on_event, Warmed(effect.token))

    def close(self) -> None:
        self.threads.shutdown(wait=True, cancel_futures=True)


def warm(path: str, position: int, size: int) -> None:
    """What goes wrong here goes wrong again for whoever reads it, and is reported there."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        piece = bytearray(PIECE_BYTES)
        end = position + size
        while position < end and (read := os.preadv(fd, (memoryview(piece)[: end - position],), position)):
            position += read
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(fd, end, AHEAD_BYTES, os.POSIX_FADV_WILLNEED)
    except OSError:
        pass
    finally:
        os.close(fd)
