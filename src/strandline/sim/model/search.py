"""Breadth first through all states that can be reached, up to the first violation of a law.

A model says what may happen in a state (`expand`), and how a path reads (`explain`). The path to a violation is a
shortest one, since all states of one depth are expanded before any that is deeper.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from strandline.base.value import Value

Progress = Callable[[int, int, int], None]  # states, those of the frontier still to do, depth
PROGRESS_EVERY = 500

S = TypeVar("S", bound=Hashable)  # a state
E = TypeVar("E")  # what leads from one to the next


class Exploration(Value, frozen=True):
    """What was found. Without a counterexample, `states` is the number of all reachable states."""

    states: int
    transitions: int  # events that were tried in a state
    depth: int  # of the state farthest from the first
    seconds: float
    counterexample: list[str] | None = None


class BreadthFirst(ABC, Generic[S, E]):
    def __init__(self, first: S, progress: Progress | None = None) -> None:
        self.progress = progress
        self.transitions = 0
        self.depth = 0
        self.reached: dict[S, tuple[S, E] | None] = {first: None}  # how each was reached first
        self.frontier = [first]

    @abstractmethod
    def expand(self, state: S) -> list[str] | None:
        """Try everything that may happen in a state; a counterexample ends the search."""

    def run(self) -> Exploration:
        began = time.perf_counter()  # shown, and nothing depends on it
        counterexample = None
        while self.frontier and counterexample is None:
            layer, self.frontier = self.frontier, []
            for done, state in enumerate(layer):
                counterexample = self.expand(state)
                if counterexample is not None:
                    break
                if self.progress is not None and done % PROGRESS_EVERY == 0:
                    self.progress(len(self.reached), len(layer) - done + len(self.frontier), self.depth)
            self.depth += bool(self.frontier)
        seconds = time.perf_counter() - began
        return Exploration(len(self.reached), self.transitions, self.depth, seconds, counterexample)

    def arrive(self, state: S, parent: S, event: E) -> None:
        """At a state for the first time."""
        assert state not in self.reached
        self.reached[state] = parent, event
        self.frontier.append(state)

    def path(self, state: S) -> list[tuple[S, E]]:
        """From the first state to this one: each state on the way, and what happened there."""
        path: list[tuple[S, E]] = []
        while (reached := self.reached[state]) is not None:
            path.append(reached)
            state = reached[0]
        path.reverse()
        return path
