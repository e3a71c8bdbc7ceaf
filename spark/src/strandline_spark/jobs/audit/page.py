"""The result of an audit as one page."""

from collections import Counter
from typing import Any

from strandline_spark.jobs.audit.report import CLEAN, AuditReport
from strandline_spark.jobs.audit.rows import ERROR
from strandline_spark.jobs.audit.rules import RULES
from strandline_spark.report import Span, Verdict, bars, page, section, spans, stacked, table

CERTAINTIES = ("nothing is known", "at most", "exactly")
MEGA = 1e6


def audit_page(report: AuditReport, where: str) -> str:
    """`where`: what was audited, in words."""
    level = "good" if report.status == CLEAN else "bad" if report.errors else "warning"
    looked_for = [("acknowledged records sought", report.acknowledged)] if report.acknowledged is not None else []
    totals = report.totals
    facts = [
        ("replicas", totals["replicas"]),
        ("partitions", totals["partitions"]),
        ("megabytes", round(totals["bytes"] / MEGA, 1)),
        ("batches", totals["batches"]),
        ("records, each copy counted", totals["records"]),
        *looked_for,
    ]
    return page(
        "Audit of a cluster's replicas",
        *(unread(report) if report.unread else ()),
        *(findings(report) if report.counts else ()),
        replicas(report),
        *(ledger(report) if report.losses else ()),
        rules(report),
        verdict=Verdict(level, report.verdict, "" if report.status != CLEAN else "All that was checked holds."),
        facts=facts,
        lead=where,
    )


def unread(report: AuditReport) -> tuple[str, ...]:
    rows = ((one,) for one in report.unread)
    note = "The audit is incomplete: the following could not be read, so findings about it may be missing."
    return (section("Not read", table(["what, and why"], rows), note=note),)


def findings(report: AuditReport) -> tuple[str, ...]:
    severe = {row["rule"] for row in report.findings if row["severity"] == ERROR}
    counted = [(rule, float(count)) for rule, count in report.counts.items()]
    levels = ["bad" if rule in severe else "warning" for rule, _ in counted]
    columns = ["rule", "severity", "topic", "partition", "broker", "from", "to", "what"]
    rows = [
        (
            *(row[name] for name in ("rule", "severity", "topic")),
            str(row["partition"]),
            "several" if row["broker"] is None else str(row["broker"]),
            row["offset"],
            row["end"] - 1,
            row["what"],
        )
        for row in report.findings
    ]
    edges = ["bad" if row["severity"] == ERROR else "warning" for row in report.findings]
    return (
        section("Findings", bars("Findings of each rule", counted, x="findings", levels=levels)),
        section(
            "The first of each rule",
            table(columns, rows, levels=edges),
            note="Both offsets are inclusive. Neighbours without a gap between them are one finding.",
        ),
    )


def replicas(report: AuditReport) -> str:
    rows = report.replicas
    sizes = Counter[int]()
    batches = Counter[int]()
    for row in rows:
        sizes[row["broker"]] += row["bytes"]
        batches[row["broker"]] += row["batches"]
    brokers = sorted(sizes)
    more = report.totals["replicas"] - len(rows)
    note = f"Of {report.totals['replicas']:,} replicas these, those with findings first." if more > 0 else ""
    parts = {"megabytes": [round(sizes[broker] / MEGA, 3) for broker in brokers]}
    drawn = [Span(name_of(row), row["start"], row["end"], row["high_watermark"], *marks(report, row)) for row in rows]
    title = "What each replica has, from its log's start to its end"
    return section(
        "Replicas",
        spans(title, drawn, mark="high watermark, as saved", note="Crosses: errors. Triangles: warnings."),
        stacked("Bytes of each broker", [f"broker {broker}" for broker in brokers], parts, x="megabytes"),
        note=note,
    )


def name_of(row: dict[str, Any]) -> str:
    return f"{row['topic']}-{row['partition']} on {row['broker']}"


def marks(report: AuditReport, replica: dict[str, Any]) -> tuple[list[int], list[int]]:
    own = [
        row
        for row in report.findings
        if (row["topic"], row["partition"]) == (replica["topic"], replica["partition"])
        and row["broker"] in (None, replica["broker"])
    ]
    errors = [row["offset"] for row in own if row["severity"] == ERROR]
    return errors, [row["offset"] for row in own if row["severity"] != ERROR]


def ledger(report: AuditReport) -> tuple[str, ...]:
    rows = [
        (topic, str(partition), start, "not known" if end < 0 else f"{end - 1:,}", CERTAINTIES[certainty], cause)
        for topic, partition, start, end, certainty, cause in report.losses
    ]
    columns = ["topic", "partition", "from", "to", "certainty", "cause"]
    note = "What the cluster itself recorded as lost, or perhaps lost."
    return (section("The loss ledger", table(columns, rows), note=note),)


def rules(report: AuditReport) -> str:
    asked = report.acknowledged is not None
    rows = [
        (rule, what, report.counts.get(rule, 0))
        for rule, what in RULES.items()
        if asked or not rule.startswith("acknowledged")
    ]
    return section("What was checked", table(["rule", "what it finds", "findings"], rows))
