"""The page of a campaign."""

from strandline_spark.jobs.simulate.definition import Campaign
from strandline_spark.jobs.simulate.report import campaign_page
from strandline_spark.jobs.simulate.seed_row import SeedRow
from strandline_spark.jobs.simulate.summary import Summary, Tally


def summary(*rows: SeedRow, is_complete: bool = True) -> Summary:
    tally = Tally(Campaign("code", "3.11", prepare="tests.planted:votes-twice"), range(1, 10))
    for row in rows:
        tally.take(row)
    return tally.summary(is_complete=is_complete)


GOOD = SeedRow(1, "first", "ok", digest="d", faults={"kill": 2}, seen={"leads": 3})
BAD = SeedRow(2, "first", "failed", "a <law>", replay="strandline sim --seed 2")
OTHER = SeedRow(1, "again", "ok", digest="e")


def test_a_page_names_what_failed_with_its_command_and_what_never_struck() -> None:
    html = campaign_page(summary(OTHER, GOOD, BAD))
    assert "2 of 2 seeds failed or were not deterministic" in html
    assert "a &lt;law&gt;" in html
    assert "strandline sim --seed 2" in html
    assert "strandline sim --seeds 1..1 --twice" in html
    assert "prepared by tests.planted:votes-twice" in html
    assert "kinds never struck" in html


def test_a_good_campaign_and_one_that_is_not_over_say_so() -> None:
    assert "all 1 seeds are ok" in campaign_page(summary(GOOD))
    assert "1 seeds are ok so far" in campaign_page(summary(GOOD, is_complete=False))
