"""The result of an audit as a value: what a terminal, a script and a page show of it. Bounded, whatever was found."""

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812

from strandline.base.value import Value
from strandline.pipeline.jobs.audit.rows import ERROR, PARTITION, first_of_each
from strandline.pipeline.jobs.audit.rules import RULES

if TYPE_CHECKING:
    from strandline.pipeline.jobs.audit.job import Audited
    from strandline.pipeline.jobs.audit.ledger import Losses

CLEAN, FINDINGS, INCOMPLETE = 0, 2, 3
REPLICAS_MAX = 60  # that are told one by one
LEDGER_MAX = 200
TOTALS = ("bytes", "batches", "records")


class Told(Value, frozen=True):
    findings: tuple[dict[str, Any], ...]  # the first of each rule
    counts: dict[str, int]  # of each rule that found something
    replicas: tuple[dict[str, Any], ...]  # those with findings first
    totals: dict[str, int]
    unread: tuple[str, ...]
    losses: tuple[tuple[str, int, int, int, int, str], ...]
    acknowledged: int | None  # how many were looked for; None: nobody was asked

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
            "findings": list(self.findings),
            "counts": self.counts,
            "totals": self.totals,
            "acknowledged": self.acknowledged,
            "unread": list(self.unread),
            "losses": len(self.losses),
        }


def told(
    audited: "Audited", limit: int, losses: "Losses", unread: tuple[str, ...], acknowledged: int | None = None
) -> Told:
    found = [row.asDict() for row in first_of_each(audited.findings, limit).collect()]
    order = list(RULES)
    found.sort(key=lambda row: (order.index(row["rule"]), row["topic"], row["partition"], row["offset"]))
    counts = {row["rule"]: row.pop("count") for row in found}
    replicas = audited.replicas
    places = audited.findings.selectExpr("topic", "partition", "true as is_odd").distinct()
    marked = replicas.join(places, ["topic", "partition"], "left").orderBy(
        F.expr("is_odd is null"), *PARTITION, "broker"
    )
    shown = marked.limit(REPLICAS_MAX).select(*replicas.columns)
    sums = [f"coalesce(sum({name}), 0) as {name}" for name in TOTALS]
    keys = "count(*) as replicas", f"count(distinct {', '.join(PARTITION)}) as partitions"
    totals = replicas.selectExpr(*keys, "count(distinct broker) as brokers", *sums).first()
    assert totals is not None
    changed = tuple(f"{name}: it changed while it was read, twice" for name in audited.changed)
    return Told(
        tuple(found),
        counts,
        tuple(row.asDict() for row in shown.collect()),
        totals.asDict(),
        (*unread, *losses.unread, *changed),
        losses.rows[:LEDGER_MAX],
        acknowledged,
    )
