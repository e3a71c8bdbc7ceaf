"""The judgement over a whole history: every check over every key, and the policy over what they found."""

from collections.abc import Iterable

from strandline.base.value import Value
from strandline.history.anomalies import CHECKS
from strandline.history.anomaly import Anomaly, described
from strandline.history.operation import Key, Operation
from strandline.history.policy import Facts, why_tolerated
from strandline.history.view import View, views

LISTED_MAX = 10  # anomalies of one name in one key that a report lists in full


class Judgement(Value, frozen=True):
    violations: tuple[Anomaly, ...]
    tolerated: tuple[tuple[Anomaly, str], ...]  # with the reason

    def report(self) -> str:
        """For people; empty if nothing is wrong."""
        return report(self.violations)

    def excused(self) -> dict[tuple[str, str], int]:
        """How many anomalies of each name were tolerated for each reason."""
        counts: dict[tuple[str, str], int] = {}
        for anomaly, why in self.tolerated:
            counts[anomaly.name, why] = counts.get((anomaly.name, why), 0) + 1
        return counts


def report(violations: Iterable[Anomaly]) -> str:
    groups: dict[tuple[str, Key], list[Anomaly]] = {}
    for anomaly in violations:
        groups.setdefault((anomaly.name, anomaly.key), []).append(anomaly)
    lines = []
    for (name, key), group in groups.items():
        lines += [described(anomaly) for anomaly in group[:LISTED_MAX]]
        if len(group) > LISTED_MAX:
            lines.append(f"and {len(group) - LISTED_MAX} more: {name} in {key}")
    return "\n".join(lines)


def judge(
    operations: Iterable[Operation],
    facts: Facts,
    trimmed: dict[Key, int] | None = None,
    finals: dict[Key, str] | None = None,
) -> Judgement:
    """`trimmed`: below this offset of a key, records may have been deleted at a user's wish.

    `finals`: the process that has read all of a key, from the log's start to its end, after everything else was over.
    Only where there is one, records that vanished from the log's end can be missed.
    """
    violations: list[Anomaly] = []
    tolerated: list[tuple[Anomaly, str]] = []
    for view in views(operations, trimmed, finals):
        for anomaly in anomalies(view):
            why = why_tolerated(anomaly, facts)
            if why is None:
                violations.append(anomaly)
            else:
                tolerated.append((anomaly, why))
    return Judgement(tuple(violations), tuple(tolerated))


def anomalies(view: View) -> list[Anomaly]:
    return [anomaly for check in CHECKS for anomaly in check(view)]
