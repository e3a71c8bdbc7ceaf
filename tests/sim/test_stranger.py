"""Hostile numbers against real nodes: a sample of every run, and whole clusters that a stranger troubles.

All of them: `python -m tests.sim.extremes`.
"""

from collections.abc import Iterator
from random import Random

import pytest
from msgspec import structs

from strandline.sim.hostile import TEXT, message, places, request_layout, served
from strandline.sim.runs.plan import draw_plan, with_stranger
from strandline.sim.runs.run import run_plan
from strandline.sim.stranger.probing import Case, Probe, alterations, cases, probe
from strandline.wire.api import Api

SAMPLE, ALTERED, TEXTS = 150, 8, 60


def test_requests_with_one_value_at_an_extreme_crash_nobody() -> None:
    probe(Random(1).sample(list(cases()), SAMPLE))


def test_messages_between_nodes_that_arrive_with_one_value_at_an_extreme_crash_nobody() -> None:
    often = [one for one in alterations() if one.cls.__name__.startswith(("Fetch", "BrokerHeartbeat"))]
    probe(Random(1).sample(often, ALTERED))


def test_texts_as_long_as_a_version_can_have_crash_nobody() -> None:
    """In an old version, whose answers can say no more, and in the newest one, whose texts no record can have."""
    one = Probe(1)
    for api, version, listener, at, size in Random(1).sample(list(long_texts()), TEXTS):
        for machine in one.world.machines.values():
            asked = message(api, version, one.known(machine, Case(api, listener, {})), {at: "z" * size})
            one.prober.send(machine, listener, asked, version)
        one.world.run(30)
    one.world.run(10_000)


def long_texts() -> Iterator[tuple[Api, int, str, tuple[str, ...], int]]:
    for listener in ("PLAINTEXT", "CONTROLLER"):
        for api in served(on_controller=listener == "CONTROLLER"):
            old = [version for version in api.request.versions if version not in api.request.flexible]
            for version, size in ((max(old, default=-1), 0x7FFF), (max(api.request.flexible, default=-1), 40_000)):
                if version >= 0:
                    for at, letter in places(request_layout(api, version)):
                        if letter == TEXT:
                            yield api, version, listener, at, size


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
