"""What the pipeline's demonstration showed, as one page."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from strandline_spark.demo.result import Batch, DemoResult
from strandline_spark.report import Series, Verdict, bars, lines, section, table
from strandline_spark.report import page as page_of


def page(result: DemoResult, rate: int) -> str:
    return page_of(
        "Events into a table, through failures",
        section(
            "What happened",
            lines(
                "Acknowledged events and rows of the table",
                [of_topic(result.written), of_table(result.batches)],
                y="events so far",
                note="The table's line moves in batches. It stands still after ingest was killed, and then catches up.",
            ),
            table(["when (UTC)", "what"], [(instant(m.at_s), m.what) for m in result.moments]),
        ),
        section("Rows by kind", bars("Rows of the table", list(result.counts.by_kind.items()), x="rows")),
        section("The audit", *audit(result.audit)),
        verdict=verdict(result),
        facts=(
            ("acknowledged", result.counts.acknowledged),
            ("rows", result.counts.rows),
            ("quarantined", result.counts.quarantined),
            ("duplicates", result.counts.duplicates),
            ("missing", result.counts.missing),
            ("longest silence, s", round(result.interruption_s, 2)),
        ),
        lead=f"{rate:,} events a second for a topic with three replicas, and a pipeline that makes a table of them.",
    )


def verdict(result: DemoResult) -> Verdict:
    audited = f"The audit of all replicas: {result.audit['verdict']}."
    if result.holds:
        return Verdict("good", "Every acknowledged event is in the table or in quarantine, once.", audited)
    if not result.counts.acknowledged:
        return Verdict("bad", "No event was acknowledged: this proves nothing.", audited)
    if result.counts.missing or result.counts.duplicates:
        counts = f"{result.counts.missing:,} events are missing, {result.counts.duplicates:,} are there twice."
        return Verdict("bad", counts, audited)
    return Verdict("bad", "The table is whole, but the audit is not clean.", audited)


def instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def of_topic(written: Mapping[int, int]) -> Series:
    total, counts = 0, list[float | None]()
    for second in sorted(written):
        total += written[second]
        counts.append(total)
    return Series("acknowledged", [instant(second + 1) for second in sorted(written)], counts)


def of_table(batches: tuple[Batch, ...]) -> Series:
    total, counts = 0, list[float | None]()
    for batch in batches:
        total += batch.rows
        counts.append(total)
    return Series("rows in the table", [instant(batch.at_s) for batch in batches], counts)


def audit(found: Mapping[str, Any]) -> list[str]:
    plain = [(name, fact) for name, fact in found.items() if isinstance(fact, str | int | float)]
    columns = ("rule", "severity", "topic", "partition", "offset", "what")
    findings = [tuple(row[name] for name in columns) for row in found["findings"]]
    return [table(["", ""], plain), *([table(columns, findings)] if findings else [])]
