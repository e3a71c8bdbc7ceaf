"""Deadlines of parked requests and retries: a heap from which entries that are done are swept when they are many."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Protocol

from strandline.base.effects import Effect
from strandline.base.time import NEVER, Instant, after

SWEEP_MIN = 256


class Timed(Protocol):
    done: bool

    def expire(self, now: Instant) -> list[Effect]: ...


class Timers:
    """`entry_done` must be called for each entry that becomes `done` before its time, so that the heap stays small."""

    def __init__(self) -> None:
        self.heap: list[tuple[int, int, Timed]] = []
        self.count = 0
        self.done_count = 0
        self.resumes: Instant = Instant(0)  # with what `expire` has left over

    def push(self, when: int, entry: Timed) -> None:
        assert not entry.done
        self.count += 1
        heappush(self.heap, (when, self.count, entry))

    def entry_done(self) -> None:
        self.done_count += 1
        if self.done_count > SWEEP_MIN and self.done_count * 2 > len(self.heap):
            self.heap = [item for item in self.heap if not item[2].done]
            heapify(self.heap)
            self.done_count = 0
            assert all(not item[2].done for item in self.heap)

    def deadline(self) -> Instant:
        heap = self.heap
        while heap and heap[0][2].done:
            heappop(heap)
        if not heap:
            return NEVER
        when = heap[0][0]
        return Instant(when) if when > self.resumes else self.resumes

    def first(self, now: Instant) -> str | None:
        """What is due first, by name."""
        if self.deadline() > now:
            return None
        entry = self.heap[0][2]
        ring = getattr(getattr(entry, "owner", entry), "ring", None)
        return type(entry).__name__ if ring is None else ring.__qualname__

    def expire(self, now: Instant, entries_max: int | None = None) -> list[Effect]:
        """`entries_max`: of so many entries at most. The others have their turn a millisecond later."""
        effects: list[Effect] = []
        left = -1 if entries_max is None else entries_max
        while self.heap and self.heap[0][0] <= now and left:
            entry = heappop(self.heap)[2]
            if not entry.done:
                left -= 1
                effects += entry.expire(now)
        self.resumes = after(now, 1) if left == 0 else Instant(0)
        return effects


class Alarm:
    """A timer of its owner's own, set again and again: never twice at once, never cancelled. Not set, it is `done`."""

    __slots__ = ("done", "ring", "timers")

    def __init__(self, timers: Timers, ring: Callable[[Instant], list[Effect]]) -> None:
        self.timers = timers
        self.ring = ring
        self.done = True

    def set(self, when: int) -> None:
        """If it is set already, that time stands."""
        if self.done:
            self.done = False
            self.timers.push(when, self)

    def expire(self, now: Instant) -> list[Effect]:
        assert not self.done
        self.done = True
        return self.ring(now)


class Deadline:
    """The time at which its owner must be looked at. A time that moves away again and again costs nothing: only an
    earlier one is noted. So `ring` may come early. It looks what is due, and sets the deadline anew."""

    __slots__ = ("entry", "ring", "timers")

    def __init__(self, timers: Timers, ring: Callable[[Instant], list[Effect]]) -> None:
        self.timers = timers
        self.ring = ring
        self.entry: Turn | None = None

    @property
    def when(self) -> Instant:
        return NEVER if self.entry is None else self.entry.when

    def set(self, when: Instant) -> None:
        """Be looked at by then. If it is set to an earlier time already, that time stands."""
        if self.entry is None or when < self.entry.when:
            self.cancel()
            if when < NEVER:
                self.entry = Turn(self, when)
                self.timers.push(when, self.entry)

    def cancel(self) -> None:
        if self.entry is not None:
            self.entry.done = True
            self.entry = None
            self.timers.entry_done()

    def end(self) -> None:
        """It never rings again, and keeps nobody in memory: its owner and what it looks at often know each other."""
        self.cancel()
        self.ring = nothing


def nothing(now: Instant) -> list[Effect]:
    del now
    return []


class Turn:
    """One time at which a deadline rings, until an earlier one takes its place."""

    __slots__ = ("done", "owner", "when")

    def __init__(self, owner: Deadline, when: Instant) -> None:
        self.owner = owner
        self.when = when
        self.done = False

    def expire(self, now: Instant) -> list[Effect]:
        assert not self.done and self.owner.entry is self and self.when <= now
        self.done = True
        self.owner.entry = None
        return self.owner.ring(now)


class Every:
    """A task that comes again."""

    def __init__(self, span_ms: int, task: Callable[[Instant], list[Effect]]) -> None:
        assert span_ms >= 0  # 0: in every step in which anything is due
        self.span_ms = span_ms
        self.task = task
        self.next = Instant(0)
