"""What a planted bug is: one small change of our own source, and what it would cost.

A simulator that finds nothing proves something only if it finds these. Each takes away one guard that the protocol
needs, most of them as a real system once lacked it.
"""

from typing import Literal

from strandline.base.value import Value

SIM: Literal["sim"] = "sim"
MODEL: Literal["model"] = "model"


class Planted(Value, frozen=True):
    """`old` occurs exactly once in the module's source, and is replaced by `new`."""

    name: str
    module: str
    old: str
    new: str
    trap: str  # where the guard is known from: a KIP, a Kafka issue, a mark of KIP-966's formal model
    harm: str  # what goes wrong, in one sentence
    found_by: Literal["sim", "model"] = SIM
    seeds: tuple[int, int] | None = None  # simulated seeds, first to last, one of which at least fails


def table(*rows: Planted) -> dict[str, Planted]:
    named = {row.name: row for row in rows}
    assert len(named) == len(rows), "a name is used twice"
    return named
