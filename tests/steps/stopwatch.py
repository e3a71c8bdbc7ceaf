"""Processor time of steps: what a step keeps a node's loop from doing anything else.

Python's collector of cycles may run within a step, and counts: the loop waits for it, too. What it had of the longest
step is told, and how long the longest step was without it.
"""

import gc
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Collector:
    """How long its runs took, in seconds, and the longest of them with the generation that it looked at."""

    def __init__(self) -> None:
        self.begun = 0.0
        self.total = 0.0
        self.longest = (0.0, 0)
        gc.callbacks.append(self.note)

    def note(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start":
            self.begun = time.thread_time()
        else:
            took = time.thread_time() - self.begun
            self.total += took
            self.longest = max(self.longest, (took, info["generation"]))


COLLECTOR = Collector()


class Stopwatch:
    def __init__(self, name: str) -> None:
        self.name = name
        self.steps: list[tuple[float, float]] = []  # seconds, and those of the collector in them
        self.collected = (0.0, 0)

    def step(self, work: Callable[[], T]) -> T:
        before, COLLECTOR.longest = COLLECTOR.total, (0.0, 0)
        begun = time.thread_time()
        found = work()
        self.steps.append((time.thread_time() - begun, COLLECTOR.total - before))
        self.collected = max(self.collected, COLLECTOR.longest)
        return found

    def __str__(self) -> str:
        ordered = sorted(self.steps)
        (longest, of_collector), (middle, _) = ordered[-1], ordered[len(ordered) // 2]
        own = max(step - collected for step, collected in ordered)
        text = f"{self.name}: {len(ordered):,} steps, longest {1000 * longest:.1f} ms"
        if of_collector:
            text += f" ({1000 * of_collector:.1f} ms the collector's; without it {1000 * own:.1f} ms)"
        if self.collected[0]:
            took, generation = self.collected
            text += f", longest run of the collector {1000 * took:.1f} ms (generation {generation})"
        return f"{text}, median {1000 * middle:.3f} ms, total {sum(step for step, _ in ordered):.2f} s"
