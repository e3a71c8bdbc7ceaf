"""Deadlines of parked requests and retries: a heap from which entries that are done are swept when they are many."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Protocol

from strandline.base.effects import Effect
from strandline.base.time import NEVER, Instant

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
        return Instant(heap[0][0]) if heap else NEVER

    def expire(self, now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        while self.heap and self.heap[0][0] <= now:
            entry = heappop(self.heap)[2]
            if not entry.done:
                effects += entry.expire(now)
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


class Every:
    """A task that comes again."""

    def __init__(self, span_ms: int, task: Callable[[Instant], list[Effect]]) -> None:
        assert span_ms >= 0  # 0: in every step in which anything is due
        self.span_ms = span_ms
        self.task = task
        self.next = Instant(0)
