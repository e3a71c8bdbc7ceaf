"""What a planted bug is: one small change of our own source, and what it would cost.

A simulator that finds nothing proves something only if it finds these. Each takes away one guard that the protocol
needs, most of them as a real system once lacked it. A row names the guard and what becomes of it. The source has a mark
where the guard is (`guards`), so a row survives a refactoring that keeps the mark at the line that guards.
"""

from pathlib import Path
from typing import Literal

from tests.planted.changes import How

from strandline.base.value import Value

UNKNOWN_WITHIN = 40  # seeds that are tried for a bug without any recorded
SPARE = 5  # and behind the recorded ones
SIM: Literal["sim"] = "sim"
MODEL: Literal["model"] = "model"


class Change(Value, frozen=True):
    """What becomes of one guard."""

    guard: str
    how: How


class Planted(Value, frozen=True):
    """One change, and where two guards stand one behind the other, a second: each alone would do no harm."""

    name: str
    how: How
    trap: str  # where the guard is known from: a KIP, a Kafka issue, a mark of KIP-966's formal model
    harm: str  # what goes wrong, in one sentence
    guard: str = ""  # its mark; empty: the bug's name. Bugs share a mark that stands at the same line
    found_by: Literal["sim", "model"] = SIM
    seeds: tuple[int, int] | None = None  # simulated seeds, first to last, one of which at least fails
    plan: str = ""  # a file in plans/ that is run with these seeds, for what no drawn plan meets soon
    also: Change | None = None  # the second guard
    workload: str = ""  # the seeds run this one alone
    secured: str = ""  # and are secured so (see `sim/runs/alone`)

    @property
    def changes(self) -> tuple[Change, ...]:
        first = Change(self.guard or self.name, self.how)
        return (first,) if self.also is None else (first, self.also)

    @property
    def tries(self) -> range:
        """The seeds to look for it with. The code around it may have changed what the recorded ones meet."""
        first, last = self.seeds or (1, UNKNOWN_WITHIN)
        return range(first, last + 1 + SPARE)

    @property
    def path(self) -> Path | None:
        return Path(__file__).parent / "plans" / self.plan if self.plan else None


def table(*rows: Planted) -> dict[str, Planted]:
    named = {row.name: row for row in rows}
    assert len(named) == len(rows), "a name is used twice"
    return named
