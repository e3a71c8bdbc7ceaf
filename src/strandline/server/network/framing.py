"""Kafka's frames out of a byte stream: four bytes of size, then the frame.

Reads land in one scratch buffer shared by all connections of the process (a read and its parsing are one callback, so
nobody else sees it in between). Small frames are copied out of it into memory of their own, because the log may keep
them; the rest of a large frame is received straight into its final place, without a copy.

Invariants:
  - a frame is a writable memoryview over exactly its bytes, owned by nobody else (the log patches headers in place);
  - a size prefix alone never makes us allocate more than `AHEAD_BYTES_MAX`: beyond it, memory grows only fourfold with
    what really arrived;
  - while stopped, no frame is delivered, and at most one scratch buffer of received bytes waits;
  - the memory of all large frames that are not complete is bounded (`RequestMemory`): a connection waits before it
    begins one, or before its frame gets more memory.
"""

import asyncio
from struct import Struct

from strandline.server.network.request_memory import RequestMemory

SCRATCH_BYTES = 256 * 1024
LARGE_BYTES_MIN = 16 * 1024
AHEAD_BYTES_MAX = 1024 * 1024

SIZE = Struct(">i")
SCRATCH = memoryview(bytearray(SCRATCH_BYTES))


class Framed(asyncio.BufferedProtocol):
    """Subclasses say what a frame means (`frame_received`), what to do about a size that cannot be (`size_refused`),
    and how to stop reading while there is no memory (`wait_for_memory`)."""

    def __init__(self, frame_bytes_max: int, memory: RequestMemory) -> None:
        self.frame_bytes_max = frame_bytes_max
        self.memory = memory
        self.rest = b""  # received and not yet parsed: part of a small frame, or anything while stopped
        self.large: bytearray | None = None
        self.large_size = 0
        self.filled = 0
        self.stopped = False  # no more frames for now (or, after a refused size, for ever)

    def frame_received(self, frame: memoryview) -> None:
        raise NotImplementedError

    def size_refused(self, size: int) -> None:
        raise NotImplementedError

    def wait_for_memory(self) -> None:
        """Stop, until `parse_rest` is called."""
        raise NotImplementedError

    def get_buffer(self, sizehint: int) -> memoryview:
        if self.large is not None:
            assert self.filled < len(self.large), "what is full was handed over"
            return memoryview(self.large)[self.filled :]
        return SCRATCH

    def buffer_updated(self, nbytes: int) -> None:
        if self.large is not None:
            self.filled += nbytes
            assert self.filled <= len(self.large)
            if self.filled == len(self.large):
                self.large_filled(self.large)
        elif self.rest or self.stopped:
            # Copied, because the scratch buffer belongs to the next read of any connection.
            self.rest += bytes(SCRATCH[:nbytes])
            self.parse_rest()
        else:
            done = self.parse(SCRATCH, nbytes)
            if done < nbytes:
                self.rest = bytes(SCRATCH[done:nbytes])

    def parse_rest(self) -> None:
        """Go on with what was received while stopped, or with the beginning of a small frame."""
        if self.large is not None and self.filled == len(self.large):
            self.large_filled(self.large)
        if not self.stopped and self.rest:
            received = self.rest
            self.rest = b""
            done = self.parse(memoryview(received), len(received))
            self.rest = received[done:] + self.rest

    def parse(self, received: memoryview, end: int) -> int:
        """Deliver the whole frames; returns how many bytes were used."""
        assert 0 <= end <= len(received)
        position = 0
        while end - position >= 4 and not self.stopped:
            (size,) = SIZE.unpack_from(received, position)
            if not 0 <= size <= self.frame_bytes_max:
                self.stopped = True
                self.size_refused(size)
                return end
            start = position + 4
            if start + size <= end:
                position = start + size
                self.frame_received(memoryview(bytearray(received[start:position])))
            elif size > LARGE_BYTES_MIN:
                if not self.memory.may_begin:
                    self.wait_for_memory()
                    break
                self.large_begun(received[start:end], size)
                return end
            else:
                break
        return position

    def large_begun(self, first: memoryview, size: int) -> None:
        assert self.large is None, "one large frame at a time"
        assert LARGE_BYTES_MIN < size <= self.frame_bytes_max
        assert len(first) < size
        self.large = bytearray(max(min(size, AHEAD_BYTES_MAX), len(first)))
        self.memory.parts += len(self.large)
        self.large[: len(first)] = first
        self.large_size = size
        self.filled = len(first)
        if self.filled == len(self.large):
            self.large_filled(self.large)

    def large_filled(self, large: bytearray) -> None:
        """The memory allocated so far is full: the frame is complete, or it earned more memory."""
        assert self.filled == len(large) <= self.large_size
        if len(large) == self.large_size:
            self.large = None
            memory = self.memory
            if memory.waiting or memory.favoured is not None:
                memory.large_over(self, len(large))
            else:
                memory.parts -= len(large)
            self.frame_received(memoryview(large))
            return
        if not self.memory.may_grow(self):
            self.wait_for_memory()
            return
        # A copy instead of a resize: the transport may still hold a view of the old memory.
        larger = bytearray(min(self.large_size, 4 * len(large)))
        larger[: len(large)] = large
        assert len(large) < len(larger) <= self.large_size
        self.memory.parts += len(larger) - len(large)
        self.large = larger

    def forget_large(self) -> None:
        """Its connection has ended."""
        if self.large is not None:
            size = len(self.large)
            self.large = None
            self.memory.large_over(self, size)
