"""Virtual time: tasks run in the order of their instants, then of their making; nothing else makes time pass.

The world has one true time, in whole milliseconds since the run began. Every machine reads a clock of its own, which
may drift, and which may stand elsewhere after each start of the process. Like the clock of the real driver it never
runs backwards within one process.
"""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush

from strandline.base.time import Instant

START = 1_700_000_000_000  # what a clock without fault shows when the run begins
PPM = 1_000_000
Task = Callable[[], None]


class Timeline:
    """Invariant: `instants` is a heap of the keys of `tasks`. Most of them have many tasks, mainly timeouts."""

    def __init__(self) -> None:
        self.now = 0
        self.instants: list[int] = []
        self.tasks: dict[int, deque[Task]] = {}  # in the order of their making

    def later(self, span_ms: int, task: Task) -> None:
        at = self.now + span_ms if span_ms > 0 else self.now
        if at in self.tasks:
            self.tasks[at].append(task)
        else:
            self.tasks[at] = deque((task,))
            heappush(self.instants, at)

    def run(self, span_ms: int) -> None:
        end = self.now + span_ms
        instants = self.instants
        while instants and instants[0] <= end:
            self.now = instants[0]
            tasks = self.tasks[self.now]
            while tasks:
                tasks.popleft()()  # which may add to them
            del self.tasks[self.now]
            assert heappop(instants) == self.now, "nothing is added to the past"
        self.now = end


class Clock:
    """What one machine believes: since `since`, when it showed `shown`, it has run `drift_ppm` too fast."""

    def __init__(self, time: Timeline, offset_ms: int = 0, drift_ppm: int = 0) -> None:
        assert abs(drift_ppm) < PPM // 2
        self.time = time
        self.drift_ppm = drift_ppm
        self.since = time.now
        self.shown = START + time.now + offset_ms

    def now(self) -> Instant:
        passed = self.time.now - self.since
        shown = self.shown + passed
        return Instant(shown + passed * self.drift_ppm // PPM if self.drift_ppm else shown)

    def span_until(self, instant: int) -> int:
        """True milliseconds until this clock shows `instant` (at least); 0 if it does already."""
        missing = instant - self.now()
        if missing <= 0:
            return 0
        if not self.drift_ppm:
            return missing
        rate = PPM + self.drift_ppm
        span = (missing * PPM + rate - 1) // rate
        passed = self.time.now + span - self.since
        while self.shown + passed + passed * self.drift_ppm // PPM < instant:
            passed, span = passed + 1, span + 1
        return span

    def jump(self, span_ms: int) -> None:
        """Forward, as after a suspended machine; from here on it goes on from there."""
        assert span_ms >= 0, "the driver's clock never runs backwards"
        self.shown, self.since = self.now() + span_ms, self.time.now

    def step(self, span_ms: int) -> None:
        """Either way: what the next process on this machine finds."""
        self.shown, self.since = self.now() + span_ms, self.time.now
