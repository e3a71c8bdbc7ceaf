"""What the answers of one connection hold in memory because they cannot be sent yet.

It is counted only once a connection is slow: when its transport has more than `WRITE_BUFFER_BYTES`, or when large
answers wait for an earlier one. Others pay nothing for it. If there are many connections, `Watch` counts what the
others have too, from time to time.

Invariants:
  - `kept` and `unsent` are this connection's part of `AnswerMemory.held`;
  - what was written counts as a whole until all of it is sent, since a buffer is free only then;
  - a connection that has more than `WRITE_BUFFER_BYTES` is not read from.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from strandline.base.answer_memory import AnswerMemory
from strandline.base.ports import Buffer
from strandline.server.network.framing import Framed

WRITE_BUFFER_BYTES = 1024 * 1024
SMALL_BYTES = 1024  # answers up to here are not counted while they wait for an earlier one
POLL_S, POLL_S_MAX = 0.05, 5.0

Slot = Sequence[Buffer] | None  # None until the node has replied


class OwnerOfAnswers(Protocol):
    """What a slow connection needs of all connections."""

    loop: asyncio.AbstractEventLoop
    answers: AnswerMemory

    def answers_grew(self) -> None:
        """There may be more than the bound."""
        ...


class Unsent(Framed):
    transport: asyncio.Transport
    owner: OwnerOfAnswers
    first: int  # sequence of slots[0]
    slots: deque[Slot]  # of requests that were read, the oldest first
    closed: bool
    resume: Callable[[], None]

    writable = True
    kept = 0  # bytes of answers in slots
    unsent = 0  # bytes of answers in the transport, at their most
    seen_unsent = 0  # at the last look of `Watch`
    stalled_looks = 0  # since when nothing was sent
    is_polling = False

    @property
    def held(self) -> int:
        return self.kept + self.unsent

    def fill(self, sequence: int, answer: Sequence[Buffer]) -> None:
        """Put an answer into its slot, and send all answers that no earlier request holds up."""
        raise NotImplementedError

    # --- answers that wait for an earlier one

    def keep(self, answer: Sequence[Buffer]) -> None:
        if len(answer) > 1 or (answer and len(answer[0]) > SMALL_BYTES):
            size = sum(map(len, answer))
            self.kept += size
            self.owner.answers.hold(size)
            self.owner.answers_grew()
            if self.kept > WRITE_BUFFER_BYTES:
                self.stop()

    def recount_kept(self) -> None:
        """Some have been sent."""
        sizes = (sum(map(len, slot)) for slot in self.slots if slot)
        kept = min(sum(size for size in sizes if size > SMALL_BYTES), self.kept)
        self.owner.answers.release(self.kept - kept)
        self.kept = kept

    # --- answers that the other side does not take

    def pause_writing(self) -> None:
        self.writable = False
        self.stop()

    def unsent_grew(self) -> None:
        size = self.transport.get_write_buffer_size()
        if size > self.unsent:
            self.owner.answers.hold(size - self.unsent)
            self.unsent = size
            self.owner.answers_grew()

    def resume_writing(self) -> None:
        self.writable = True
        self.owner.loop.call_soon(self.resume)
        self.release_sent()

    def release_sent(self, pause_s: float = POLL_S) -> None:
        """Nothing is counted any more once all is sent: looks for that, if more may be written."""
        if self.unsent and self.writable and not self.is_polling:
            if self.transport.get_write_buffer_size() == 0:
                self.owner.answers.release(self.unsent)
                self.unsent = 0
            else:
                self.is_polling = True
                self.owner.loop.call_later(pause_s, self.release_sent_again, min(2 * pause_s, POLL_S_MAX))

    def release_sent_again(self, pause_s: float) -> None:
        self.is_polling = False
        self.release_sent(pause_s)

    def count_unsent(self) -> None:
        """Although more may be written."""
        self.unsent_grew()
        self.release_sent()

    def stop(self) -> None:
        """Read nothing more for now."""
        if not self.stopped:
            self.stopped = True
            self.transport.pause_reading()

    def forget_answers(self) -> None:
        """The connection has ended."""
        self.slots.clear()
        self.owner.answers.release(self.held)
        self.kept = self.unsent = 0

    def look(self) -> None:
        """Has the other side taken anything since the last look?"""
        size = self.transport.get_write_buffer_size()
        self.stalled_looks = self.stalled_looks + 1 if 0 < self.seen_unsent <= size else 0
        self.seen_unsent = size
