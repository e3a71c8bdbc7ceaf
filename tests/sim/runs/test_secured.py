"""Runs with permissions that change under way, and with somebody who forges what nodes send."""

from msgspec import structs

from strandline.sim.runs.alone import secured
from strandline.sim.runs.drawn import FIRST_SECURED, has_authorizer, meets_intruder
from strandline.sim.runs.plan import draw_plan
from strandline.sim.runs.run import run_plan


def test_a_fifth_of_the_later_seeds_has_an_authorizer_and_no_earlier_one() -> None:
    later = range(FIRST_SECURED, FIRST_SECURED + 1000)
    assert 170 <= sum(map(has_authorizer, later)) <= 230
    assert 290 <= sum(map(meets_intruder, later)) <= 380
    for seed in (1, 101, 301, 100_001, 20_000_001, 22_000_001, FIRST_SECURED - 1):
        options = draw_plan(seed).options
        assert not options.authorizer
        assert not options.intruder_ms


def test_what_is_drawn_is_in_the_plan() -> None:
    for seed in range(FIRST_SECURED, FIRST_SECURED + 20):
        options = draw_plan(seed).options
        assert options.authorizer is has_authorizer(seed)
        assert bool(options.permissions_ms) is has_authorizer(seed)
        assert bool(options.intruder_ms) is meets_intruder(seed)


def test_a_cluster_heals_when_all_is_permitted_again_and_the_same_seed_does_the_same() -> None:
    plan = secured(draw_plan(3), "both")
    short = structs.replace(plan, options=structs.replace(plan.options, span_ms=2_500, permissions_ms=20))
    outcome = run_plan(short)
    assert outcome.is_ok, "\n".join([outcome.check, outcome.evidence, *outcome.story])
    for what in ("answers judged by the ACLs", "refused for lack of a right", "forged"):
        assert outcome.seen.get(what, 0) > 20, what
    assert run_plan(short) == outcome
