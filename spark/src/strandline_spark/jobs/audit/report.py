"""The result of an audit as a value: what a terminal, a script and a page show of it. Bounded, whatever was found."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from strandline.base.value import Value
from strandline_spark.jobs.audit.rows import ERROR, Key, first_of_each
from strandline_spark.jobs.audit.rules import RULES

if TYPE_CHECKING:
    from strandline_spark.jobs.audit.job import Audited
    from strandline_spark.jobs.audit.ledger import Losses

CLEAN, FINDINGS, INCOMPLETE = 0, 2, 3
REPLICAS_MAX = 60  # that are listed one by one
LEDGER_MAX = 200
TOTALS = ("bytes", "batches", "records")


class AuditReport(Value, frozen=True):
    findings: tuple[dict[str, Any], ...]  # the first of each rule
    counts: dict[str, int]  # of each rule that found something
    replicas: tuple[dict[str, Any], ...]  # those with findings first
    totals: dict[str, int]
    unread: tuple[str, ...]
    losses: tuple[tuple[str, int, int, int, int, str], ...]
    acknowledged: int | None  # how many were looked for; None: for none

    @property
    def status(self) -> int:
        """What could not be read weighs more than what was found: nobody knows what else there is."""
        return INCOMPLETE if self.unread else FINDINGS if self.counts else CLEAN

    @property
    def errors(self) -> int:
        """Findings of rules that found an error."""
        rules = {row["rule"] for row in self.findings if row["severity"] == ERROR}
        return sum(count for rule, count in self.counts.items() if rule in rules)

    @property
    def verdict(self) -> str:
        found = sum(self.counts.values())
        said = f"{found:,} finding{'s' if found != 1 else ''}" if found else "no findings"
        return f"{said}; incomplete: {len(self.unread)} could not be read" if self.unread else said

    def as_json(self) -> dict[str, Any]:
        return {
            "status": {CLEAN: "clean", FINDINGS: "findings", INCOMPLETE: "incomplete"}[self.status],
            "verdict": self.verdict,
            "findings": list(self.findings),
            "counts": self.counts,
            "totals": self.totals,
            "acknowledged": self.acknowledged,
            "unread": list(self.unread),
            "losses": len(self.losses),
        }


def report_of(
    audited: "Audited", limit: int, losses: "Losses", unread: tuple[str, ...], acknowledged: int | None = None
) -> AuditReport:
    found = [row.asDict() for row in first_of_each(audited.findings, limit).collect()]
    order = list(RULES)
    found.sort(key=lambda row: (order.index(row["rule"]), row["topic"], row["partition"], row["offset"]))
    counts = {row["rule"]: row.pop("count") for row in found}
    odd = {(row["topic"], row["partition"]) for row in found}
    known = sorted(audited.replicas, key=lambda one: ((one.key[2], one.key[4]) not in odd, one.partition, one.key))
    totals = {
        "replicas": len(known),
        "partitions": len({one.partition for one in known}),
        "brokers": len({one.key[0] for one in known}),
        **{name: sum(getattr(one, name) for one in known) for name in TOTALS},
    }
    logs = sorted(f"{named(key)}: {one.why}" for key, one in audited.unread.items())
    return AuditReport(
        tuple(found),
        counts,
        tuple(one.row for one in known[:REPLICAS_MAX]),
        totals,
        (*unread, *losses.unread, *logs),
        losses.rows[:LEDGER_MAX],
        acknowledged,
    )


def named(key: Key) -> str:
    broker, directory, topic, _, partition = key
    where = f"in {directory} of" if directory else "on"
    return f"{topic}-{partition} {where} broker {broker}"


def without_replicas(topics: Sequence[str], audited: "Audited") -> tuple[str, ...]:
    """Topics that were to be audited, and of which nothing lies in the log directories."""
    there = dict.fromkeys(key[2] for key in (*(one.key for one in audited.replicas), *audited.unread))
    return tuple(f"topic {name}: no log directory has a replica of it" for name in topics if name not in there)
