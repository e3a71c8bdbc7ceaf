"""The judgement over histories as one page."""

from typing import TYPE_CHECKING, Any

from strandline_spark.report import Verdict, page, section, table

if TYPE_CHECKING:
    from strandline_spark.jobs.histories.job import Summary


def histories_page(summary: "Summary") -> str:
    """The markup of the whole page."""
    facts = (
        ("runs", summary.runs),
        ("keys", summary.keys),
        ("operations", summary.operations),
        ("writes", summary.writes),
        ("reads", summary.reads),
        ("anomalies", sum(summary.violations.values())),
        ("tolerated", sum(count for names in summary.tolerated.values() for count in names.values())),
    )
    found = [(name, count) for name, count in summary.violations.items()]
    excused = [(name, count, why) for why, names in summary.tolerated.items() for name, count in names.items()]
    sections = []
    if found:
        sections.append(section("Anomalies", table(("anomaly", "found"), found, levels=["bad"] * len(found))))
        rows = [(*place(row), row["name"], row["text"], evidence(row)) for row in summary.first]
        columns = ("run", "partition", "anomaly", "what", "evidence")
        sections.append(section("The first of them", table(columns, rows), note="--out writes all of them."))
    if excused:
        sections.append(section("Tolerated", table(("anomaly", "found", "because"), excused)))
    if summary.problems:
        bad = [(*place(row), row["problem"], row["lines"]) for row in summary.problems]
        listed = table(("run", "partition", "what", "lines"), bad, levels=["warning"] * len(bad))
        sections.append(section("Not judged", listed))
    return page("Histories", *sections, verdict=verdict(summary), facts=facts)


def verdict(summary: "Summary") -> Verdict:
    left = f"{summary.bad_lines} lines could not be judged." if summary.bad_lines else ""
    if summary.violations:
        return Verdict("bad", f"{sum(summary.violations.values())} anomalies", left)
    if left or not summary.keys:
        return Verdict("warning", "no anomaly in what could be judged", left or "There was nothing to judge.")
    return Verdict("good", "no anomaly")


def place(row: dict[str, Any]) -> tuple[str, str]:
    return row["run"], f"{row['topic']}-{row['partition']}" if row["topic"] else ""


def evidence(row: dict[str, Any]) -> str:
    return "; ".join(f"{verb} {shown}" for what, verb in VERBS.items() for shown in row[what])


VERBS = {"writers": "written by", "readers": "read by"}
