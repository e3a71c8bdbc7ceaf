"""Faults by chance, one after another, from a seed that brings the same ones again.

What is drawn is the order of faults, their nodes and how long each lasts. When clients act is not: a run that failed is
likely to fail again with its seed, not certain.
"""

import random
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import NamedTuple, Self

from strandline.testing.faults.fault import Fault

SPAN_S = (0.2, 3.0)
SLOW_S = 0.1
Break = Callable[[int], Fault]  # by node


class Stroke(NamedTuple):
    pause_s: float  # before it
    name: str
    node: int
    span_s: float  # until it is repaired


def strokes(seed: int, names: Sequence[str], nodes: int, pause_s: float) -> Iterator[Stroke]:
    """Endless, and the same for the same arguments."""
    assert names
    rng = random.Random(seed)
    while True:
        yield Stroke(rng.uniform(0, 2 * pause_s), rng.choice(names), rng.randint(1, nodes), rng.uniform(*SPAN_S))


class Chaos:
    """Breaks one thing at a time, from the beginning of a block to its end."""

    def __init__(self, seed: int | None, breaks: Mapping[str, Break], nodes: int, pause_s: float) -> None:
        self.seed = random.SystemRandom().randrange(1 << 32) if seed is None else seed
        self.breaks = breaks
        self.strokes = strokes(self.seed, list(breaks), nodes, pause_s)
        self.story: list[Stroke] = []  # what was done
        self.over = threading.Event()
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self.strike, name="chaos", daemon=True)

    def strike(self) -> None:
        try:
            for stroke in self.strokes:
                if self.over.wait(stroke.pause_s):
                    return
                self.story.append(stroke)
                with self.breaks[stroke.name](stroke.node):
                    self.over.wait(stroke.span_s)
        except BaseException as error:
            self.error = error

    def __enter__(self) -> Self:
        print(f"chaos(seed={self.seed})", file=sys.stderr, flush=True)
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for the repair. Raises what went wrong with the faults themselves."""
        self.over.set()
        self.thread.join()
        if kind is not None:
            done = ", ".join(f"{stroke.name} node {stroke.node}" for stroke in self.story)
            print(f"failed under chaos(seed={self.seed}): {done}", file=sys.stderr, flush=True)
        if self.error is not None and kind is None:
            raise self.error
