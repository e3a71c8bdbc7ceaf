"""A campaign as one page: what failed and how to see it again, and which faults were met how often."""

from strandline_spark.jobs.simulate.summary import Coverage, Summary
from strandline_spark.report import Verdict, bars, page, section, table


def campaign_page(summary: Summary) -> str:
    """The markup of the whole page."""
    campaign = summary.campaign
    facts = (
        ("seeds", summary.seeds),
        ("failed", summary.failed),
        ("run again", summary.again),
        ("not deterministic", len(summary.differences)),
        ("virtual hours", summary.virtual_ms / 3_600_000),
        ("events", summary.events),
        ("seconds of single seeds", summary.ms / 1000),
    )
    return page(
        f"Simulator campaign, seeds {summary.first}..{summary.last}",
        *failures(summary),
        coverage(summary.coverage),
        section(
            "What happened",
            bars("events in the life of the clusters", [(what, count) for what, count in summary.seen.items()]),
        ),
        verdict=verdict(summary),
        facts=facts,
        lead=f"Code {campaign.code_version}, Python {campaign.python}"
        + (f", {campaign.eligible} seeds with Eligible Leader Replicas" if campaign.eligible else "")
        + (f", prepared by {campaign.prepare}" if campaign.prepare else ""),
    )


def verdict(summary: Summary) -> Verdict:
    left = "" if summary.is_complete else "Not all seeds have run yet, or not all of the repeated ones."
    if summary.failed or summary.differences:
        count = summary.failed + len(summary.differences)
        return Verdict("bad", f"{count} of {summary.seeds} seeds failed or were not deterministic", left)
    if left:
        return Verdict("warning", f"{summary.seeds} seeds are ok so far", left)
    return Verdict("good", f"all {summary.seeds} seeds are ok")


def failures(summary: Summary) -> list[str]:
    sections = []
    if summary.failures:
        rows = [(row.seed, row.verdict, row.check, row.replay) for row in summary.failures]
        listed = table(("seed", "verdict", "what was broken", "shown again by"), rows, levels=["bad"] * len(rows))
        sections.append(section("Failures", listed))
    if summary.differences:
        differing = [(row.seed, row.digest, row.other, row.replay) for row in summary.differences]
        listed = table(("seed", "digest", "and again", "shown again by"), differing, levels=["bad"] * len(differing))
        sections.append(section("Not deterministic", listed, note="These had another result in another process."))
    return sections


def coverage(kinds: tuple[Coverage, ...]) -> str:
    never = [row for row in kinds if not row.strikes]
    rows = [(row.kind, row.drawn, row.seeds, row.strikes) for row in kinds]
    return section(
        "Faults",
        bars(
            "strikes by kind of fault",
            [(row.kind, row.strikes) for row in kinds],
            note=f"{len(never)} of {len(kinds)} kinds never struck",
            levels=["" if row.strikes else "warning" for row in kinds],
        ),
        table(
            ("kind", "drawn by seeds", "seeds", "strikes"),
            rows,
            caption="kinds of faults",
            levels=["" if row.strikes else "warning" for row in kinds],
        ),
        note="A strike may have no effect; the effects are counted below.",
    )
