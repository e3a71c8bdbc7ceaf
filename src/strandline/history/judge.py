"""The judgement over a whole history: every check over every key, and the policy over what they found."""

from collections.abc import Iterable

from strandline.base.value import Value
from strandline.history.anomalies import CHECKS
from strandline.history.anomaly import Anomaly, told
from strandline.history.operation import Key, Operation
from strandline.history.policy import Facts, why_tolerated
from strandline.history.view import View, views


class Judgement(Value, frozen=True):
    violations: tuple[Anomaly, ...]
    tolerated: tuple[tuple[Anomaly, str], ...]  # with the reason

    def report(self) -> str:
        """For people; empty if nothing is wrong."""
        return "\n".join(told(anomaly) for anomaly in self.violations)


def judge(operations: Iterable[Operation], facts: Facts, trimmed: dict[Key, int] | None = None) -> Judgement:
    """`trimmed`: below this offset of a key, records may have been deleted at a user's wish."""
    violations: list[Anomaly] = []
    tolerated: list[tuple[Anomaly, str]] = []
    for view in views(operations, trimmed).values():
        for anomaly in anomalies(view):
            why = why_tolerated(anomaly, facts)
            if why is None:
                violations.append(anomaly)
            else:
                tolerated.append((anomaly, why))
    return Judgement(tuple(violations), tuple(tolerated))


def anomalies(view: View) -> list[Anomaly]:
    return [anomaly for check in CHECKS for anomaly in check(view)]
