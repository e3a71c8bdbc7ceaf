"""Make a failing plan smaller: fewer faults, less work, plainer surroundings, as long as the same law breaks.

Greedy halving (Zeller's ddmin) over the faults, then one thing after another. Each attempt is a whole run.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from strandline.sim.network import Weather
from strandline.sim.plan import Fault, Plan
from strandline.sim.run import Outcome

Run = Callable[[Plan], Outcome]
Tell = Callable[[Plan, int], None]
NAMES = re.compile(r"\bn\d+\b|b'[^']*'|[\d.,()\[\]]+")
TAIL_MS = 1  # a run ends this long after the violation; what would have come later is left out


def signature(check: str) -> str:
    """What failed, without the names and numbers of this run."""
    return " ".join(NAMES.sub("", check).split())[:80]


class Shrinker:
    def __init__(self, run: Run, plan: Plan, outcome: Outcome, *, runs_max: int, tell: Tell) -> None:
        assert not outcome.is_ok
        self.run = run
        self.best = plan
        self.outcome = outcome
        self.wanted = signature(outcome.check)
        self.left = runs_max
        self.tell = tell

    def shrink(self) -> tuple[Plan, Outcome]:
        before = None
        while self.left and before != self.best:
            before = self.best
            self.fewer_faults()
            for plan in plainer(self.best):
                self.attempt(plan)
        return self.best, self.outcome

    def attempt(self, plan: Plan) -> bool:
        if not self.left or plan == self.best:
            return False
        self.left -= 1
        outcome = self.run(plan)
        if outcome.is_ok or signature(outcome.check) != self.wanted:
            return False
        self.best, self.outcome = plan, outcome
        self.tell(plan, self.left)
        return True

    def fewer_faults(self) -> None:
        pieces = 2
        while self.left and self.best.faults:
            faults = self.best.faults
            size = max(len(faults) // pieces, 1)
            for start in range(0, len(faults), size):
                if self.attempt(with_faults(self.best, faults[:start] + faults[start + size :])):
                    pieces = max(pieces - 1, 2)
                    break
            else:
                if size == 1:
                    return
                pieces = min(pieces * 2, len(faults))


def with_faults(plan: Plan, faults: tuple[Fault, ...]) -> Plan:
    return msgspec.structs.replace(plan, faults=faults)


def plainer(plan: Plan) -> Iterator[Plan]:
    """Plans with one thing less, or a shorter time, or one option as it is by default."""

    def having(**changes: Any) -> Plan:
        return msgspec.structs.replace(plan, options=msgspec.structs.replace(options, **changes))

    options = plan.options
    last = max((fault.at_ms for fault in plan.faults), default=0)
    for span in (last + 1000, last + 5000):
        if span < options.span_ms:
            yield having(span_ms=span)
    for name in options.workloads:
        if len(options.workloads) > 1:
            yield having(workloads=tuple(one for one in options.workloads if one != name))
    yield having(weather=Weather())
    yield having(drift_ppm=0, clock_step_ms=0)
    yield having(sync_ms=4, slow_sync_ms=0)
    yield having(log_dirs=1)
    yield having(segment_bytes="1048576")
    for name in options.settings:
        yield having(settings={key: value for key, value in options.settings.items() if key != name})
