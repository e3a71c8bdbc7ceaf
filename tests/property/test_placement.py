"""Placement is balanced, rack-aware, and never leads from a dead broker."""

from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.base.ids import NodeId
from strandline.controller.topics.placement import Place, place, why_not_placed

racks = st.sampled_from([None, "a", "b", "c"])
brokers = st.lists(st.tuples(racks, st.booleans()), min_size=1, max_size=9).map(
    lambda rows: [Place(NodeId(i), rack, alive) for i, (rack, alive) in enumerate(rows)]
)


@settings(max_examples=150, deadline=None)
@given(brokers, st.integers(1, 30), st.integers(1, 9), st.integers(0, 1 << 32))
def test_replicas_are_distinct_led_by_active_brokers_and_on_many_racks(
    places: list[Place], count: int, factor: int, seed: int
) -> None:
    refused = why_not_placed(factor, places)
    active = {p.node for p in places if p.is_active}
    assert (refused is None) == (factor <= len(places) and bool(active))
    if refused is not None:
        return
    assigned = place(count, factor, places, Random(seed))
    rack_of = {p.node: p.rack for p in places}
    assert len(assigned) == count
    for replicas in assigned:
        assert len(replicas) == len(set(replicas)) == factor
        assert replicas[0] in active
        assert len(set(replicas) & active) == min(factor, len(active)), "an inactive broker only when needed"
        if factor <= len(active):
            assert len({rack_of[n] for n in replicas}) == min(factor, len({rack_of[n] for n in active}))
    leaders = Counter(replicas[0] for replicas in assigned)
    assert max(leaders[n] for n in active) - min(leaders[n] for n in active) <= 1


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 9), st.integers(1, 5), st.integers(1, 9), st.integers(0, 1 << 32))
def test_whole_rounds_without_racks_give_every_broker_the_same_number_of_replicas(
    size: int, rounds: int, factor: int, seed: int
) -> None:
    factor = min(factor, size)
    places = [Place(NodeId(i), None, True) for i in range(size)]
    assigned = place(size * rounds, factor, places, Random(seed))
    load = Counter(node for replicas in assigned for node in replicas)
    assert set(load.values()) == {rounds * factor}


def test_the_followers_of_one_leader_are_spread_over_all_others() -> None:
    places = [Place(NodeId(i), None, True) for i in range(4)]
    assigned = place(12, 2, places, Random(1))
    assert {(a, b) for a, b in assigned} == {(a, b) for a in range(4) for b in range(4) if a != b}
