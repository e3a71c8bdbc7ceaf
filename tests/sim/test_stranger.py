"""Hostile numbers against real nodes: a sample of every run, and whole clusters that a stranger troubles.

All of them: `python -m tests.sim.extremes`.
"""

from random import Random

import pytest
from msgspec import structs

from strandline.sim.runs.plan import draw_plan, with_stranger
from strandline.sim.runs.run import run_plan
from strandline.sim.stranger.probing import alterations, cases, probe

SAMPLE, ALTERED = 150, 8


def test_requests_with_one_value_at_an_extreme_crash_nobody() -> None:
    probe(Random(1).sample(list(cases()), SAMPLE))


def test_messages_between_nodes_that_arrive_with_one_value_at_an_extreme_crash_nobody() -> None:
    often = [one for one in alterations() if one.cls.__name__.startswith(("Fetch", "BrokerHeartbeat"))]
    probe(Random(1).sample(often, ALTERED))


@pytest.mark.parametrize("seed", [104, 112])
def test_a_cluster_heals_when_the_stranger_is_gone(seed: int) -> None:
    plan = with_stranger(draw_plan(seed))
    short = structs.replace(plan, options=structs.replace(plan.options, span_ms=4_000, stranger_ms=5))
    outcome = run_plan(short)
    assert outcome.is_ok, "\n".join([outcome.check, outcome.evidence, *outcome.story])


def test_same_seed_same_messages() -> None:
    plan = with_stranger(draw_plan(104))
    short = structs.replace(plan, options=structs.replace(plan.options, span_ms=2_000, stranger_ms=5))
    assert run_plan(short).digest == run_plan(short).digest
