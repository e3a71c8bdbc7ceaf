"""Make a failing plan smaller: fewer faults, less work, plainer surroundings, as long as the same law breaks.

Greedy halving (Zeller's ddmin) over the faults, then one thing after another. Each attempt is a whole run.
"""

import re
from collections.abc import Callable
from typing import Any

import msgspec

from strandline.broker.config import ConfigError
from strandline.sim.runs.plan import Fault, Plan
from strandline.sim.runs.run import RunResult
from strandline.sim.world.network import Weather

Run = Callable[[Plan], RunResult]
Change = Callable[[Plan], Plan]
Progress = Callable[[Plan, int], None]
NAMES = re.compile(r"\bn\d+\b|b'[^']*'|[\d.,()\[\]]+")


def signature(check: str) -> str:
    """What failed, without the names and numbers of this run."""
    return " ".join(NAMES.sub("", check).split())[:80]


class Shrinker:
    def __init__(self, run: Run, plan: Plan, outcome: RunResult, *, runs_max: int, progress: Progress) -> None:
        assert not outcome.is_ok
        self.run = run
        self.best = plan
        self.outcome = outcome
        self.wanted = signature(outcome.check)
        self.left = runs_max
        self.progress = progress

    def shrink(self) -> tuple[Plan, RunResult]:
        before = None
        while self.left and before != self.best:
            before = self.best
            self.fewer_faults()
            for change in plainer(self.best):
                self.attempt(change(self.best))
        return self.best, self.outcome

    def attempt(self, plan: Plan) -> bool:
        if not self.left or plan == self.best:
            return False
        self.left -= 1
        try:
            outcome = self.run(plan)
        except ConfigError:  # the setting that was left out belongs to another one
            return False
        if outcome.is_ok or signature(outcome.check) != self.wanted:
            return False
        self.best, self.outcome = plan, outcome
        self.progress(plan, self.left)
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


def plainer(plan: Plan) -> list[Change]:
    """Ways to take one thing away, to shorten the time, or to leave one option as it is by default."""

    def having(**changes: Any) -> Change:
        return lambda plan: with_options(plan, **changes)

    def without_workload(name: str) -> Change:
        return lambda plan: with_options(plan, workloads=tuple(one for one in plan.options.workloads if one != name))

    def without_setting(key: str) -> Change:
        def change(plan: Plan) -> Plan:
            return with_options(plan, settings={k: v for k, v in plan.options.settings.items() if k != key})

        return change

    return [
        until_after_last_fault(1000),
        until_after_last_fault(5000),
        *[without_workload(name) for name in plan.options.workloads],
        having(weather=Weather()),
        having(drift_ppm=0, clock_step_ms=0),
        having(sync_ms=4, slow_sync_ms=0),
        having(log_dirs=1),
        having(segment_bytes="1048576"),
        *[without_setting(key) for key in plan.options.settings],
    ]


def until_after_last_fault(span_ms: int) -> Change:
    def change(plan: Plan) -> Plan:
        last = max((fault.at_ms for fault in plan.faults), default=0)
        return with_options(plan, span_ms=min(plan.options.span_ms, last + span_ms))

    return change


def with_options(plan: Plan, **changes: Any) -> Plan:
    return msgspec.structs.replace(plan, options=msgspec.structs.replace(plan.options, **changes))
