"""Runs in which nodes apply metadata in very small steps."""

from msgspec import structs

from strandline.sim.runs.drawn import FIRST_STEPS
from strandline.sim.runs.plan import draw_plan
from strandline.sim.runs.run import run_plan


def test_half_of_the_later_seeds_apply_metadata_in_small_steps_and_no_earlier_one() -> None:
    later = [draw_plan(seed).options.step_records for seed in range(FIRST_STEPS, FIRST_STEPS + 100)]
    assert 35 <= sum(limit > 0 for limit in later) <= 65
    assert set(later) == {0, 1, 2, 5}
    assert not any(draw_plan(seed).options.step_records for seed in (1, 101, 20_000_001, 50_000_001, FIRST_STEPS - 1))


def test_nodes_that_apply_record_by_record_come_to_the_same_image() -> None:
    plan = draw_plan(9)
    short = structs.replace(plan.options, span_ms=2_500, step_records=1)
    outcome = run_plan(structs.replace(plan, options=short))
    assert outcome.is_ok, "\n".join([outcome.check, outcome.evidence, *outcome.story])
