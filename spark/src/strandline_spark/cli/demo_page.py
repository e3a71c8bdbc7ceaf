"""What the pipeline's demonstration showed, as one page."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from strandline_spark.report import Series, Verdict, bars, lines, section, table
from strandline_spark.report import page as page_of

if TYPE_CHECKING:
    from strandline_spark.cli.demo import Outcome


def page(outcome: "Outcome", rate: int) -> str:
    return page_of(
        "Events into a table, through failures",
        section(
            "What happened",
            lines(
                "Acknowledged events and rows of the table",
                [of_topic(outcome.written), of_table(outcome.batches)],
                y="events so far",
                note="The table's line moves in batches; where ingest was killed it stands still, and catches up.",
            ),
            table(["when (UTC)", "what"], [(instant(m.at_s), m.what) for m in outcome.moments]),
        ),
        section("Rows by kind", bars("Rows of the table", list(outcome.by_kind.items()), x="rows")),
        section("The audit", *audit(outcome.audit)),
        verdict=verdict(outcome),
        facts=(
            ("acknowledged", outcome.acknowledged),
            ("rows", outcome.rows),
            ("quarantined", outcome.quarantined),
            ("duplicates", outcome.duplicates),
            ("missing", outcome.missing),
            ("longest silence, s", round(outcome.interruption_s, 2)),
        ),
        lead=f"{rate:,} events a second for a topic of three replicas, and a pipeline that makes a table of them.",
    )


def verdict(outcome: "Outcome") -> Verdict:
    audited = f"The audit of all replicas: {outcome.audit['verdict']}."
    if outcome.holds:
        return Verdict("good", "Every acknowledged event is in the table or in quarantine, once.", audited)
    if not outcome.acknowledged:
        return Verdict("bad", "No event was acknowledged: nothing is shown.", audited)
    if outcome.missing or outcome.duplicates:
        counts = f"{outcome.missing:,} events are missing, {outcome.duplicates:,} are there twice."
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


def of_table(batches: tuple[tuple[float, int], ...]) -> Series:
    total, counts = 0, list[float | None]()
    for _, rows in batches:
        total += rows
        counts.append(total)
    return Series("rows in the table", [instant(at) for at, _ in batches], counts)


def audit(told: Mapping[str, Any]) -> list[str]:
    plain = [(name, fact) for name, fact in told.items() if isinstance(fact, str | int | float)]
    columns = ("rule", "severity", "topic", "partition", "offset", "what")
    found = [tuple(row[name] for name in columns) for row in told["findings"]]
    return [table(["", ""], plain), *([table(columns, found)] if found else [])]
