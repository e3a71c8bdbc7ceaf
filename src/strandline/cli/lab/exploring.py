"""Explorations one after the other, with what is found of each, for people or as JSON."""

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from rich.console import Console

from strandline.cli.connect import fail
from strandline.sim.model.search import Exploration, Progress


class Explored(Protocol):
    """What is explored: a model's setup."""

    @property
    def title(self) -> str: ...

    def limits(self) -> str: ...


S = TypeVar("S", bound=Explored)
Explore = Callable[[S, Progress | None], Exploration]


def explored(
    setups: Sequence[S], explore: Explore[S], as_json: Callable[[S, Exploration], dict[str, Any]], *, json_output: bool
) -> None:
    """Explore each, and fail if there is a counterexample."""
    results = [run(setup, explore, json_output) for setup in setups]
    if json_output:
        print(json.dumps([as_json(*pair) for pair in zip(setups, results, strict=True)]))
    broken = [s.title for s, r in zip(setups, results, strict=True) if r.counterexample is not None]
    if broken:
        shown = "its steps are in the field counterexample" if json_output else "its steps are above"
        fail(f"there is a counterexample for {', '.join(broken)}", f"a law is broken: {shown}")


def run(setup: S, explore: Explore[S], json_output: bool) -> Exploration:
    console = Console(stderr=True)
    if not json_output:
        print(f"{setup.title}: {setup.limits()}", flush=True)
    with console.status(f"{setup.title}") as status:

        def progress(states: int, frontier: int, depth: int) -> None:
            status.update(f"{setup.title}: {states:,} states, {frontier:,} to expand, depth {depth}")

        result = explore(setup, progress if sys.stderr.isatty() else None)
    if not json_output:
        verdict = "no violation" if result.counterexample is None else "VIOLATION"
        print(
            f"  {result.states:,} states, {result.transitions:,} transitions, depth {result.depth}, "
            f"{result.seconds:.1f} s: {verdict}",
            flush=True,
        )
        for line in result.counterexample or ():
            print(f"  {line}")
    return result
