"""Runs in which old records are not in the page cache."""

from msgspec import structs

from strandline.sim.runs.drawn import FIRST_COLD
from strandline.sim.runs.plan import draw_plan
from strandline.sim.runs.run import run_plan


def test_half_of_the_later_seeds_read_from_a_slow_medium_and_no_earlier_one() -> None:
    later = [draw_plan(seed).options.cold_percent for seed in range(FIRST_COLD, FIRST_COLD + 100)]
    assert 35 <= sum(percent > 0 for percent in later) <= 65
    assert set(later) == {0, 5, 30, 100}
    assert not any(draw_plan(seed).options.cold_percent for seed in (1, 101, 20_000_001, 40_000_001, FIRST_COLD - 1))


def test_consumers_and_followers_get_records_that_come_late() -> None:
    plan = draw_plan(9)
    short = structs.replace(plan.options, span_ms=2_500, cold_percent=100, cold_ms=300)
    outcome = run_plan(structs.replace(plan, options=short))
    assert outcome.is_ok, "\n".join([outcome.check, outcome.evidence, *outcome.story])
    assert outcome.seen.get("cold read", 0) > 10
