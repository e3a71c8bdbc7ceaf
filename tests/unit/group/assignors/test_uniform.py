"""The uniform assignor against a search through all assignments of small groups."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.group.assignors.groups import (
    best,
    candidates,
    groups,
    groups_with_target,
    held_by,
    local,
    most_local,
    moved,
    owners,
    topic_id,
    turned,
    unevenness,
)

from strandline.group.assignors.balance import Balance
from strandline.group.assignors.present import Present
from strandline.group.assignors.spec import GroupSpec, MemberSpec, TopicSpec
from strandline.group.assignors.uniform import assign_uniformly


@settings(max_examples=150, deadline=None)
@given(st.booleans().flatmap(lambda is_equal: groups_with_target(is_equal=is_equal)))
def test_it_is_as_even_as_can_be_and_then_moves_as_little_as_can_be(spec: GroupSpec) -> None:
    target = assign_uniformly(spec)
    found = owners(target)
    assert target.keys() == spec.members.keys()
    assert found.keys() == candidates(spec).keys()
    assert all(name in candidates(spec)[partition] for partition, name in found.items())
    assert (unevenness(spec, found), moved(spec, found)) == best(spec)
    assert assign_uniformly(turned(spec)) == target
    assert assign_uniformly(held_by(spec, target)) == target


@settings(max_examples=40, deadline=None)
@given(groups(is_equal=True, size=5, has_racks=True))
def test_a_new_group_has_as_many_partitions_in_their_racks_as_balance_permits(spec: GroupSpec) -> None:
    found = owners(assign_uniformly(spec))
    assert unevenness(spec, found) == best(spec)[0]
    assert local(spec, found) == most_local(spec)


@settings(max_examples=40, deadline=None)
@given(st.booleans().flatmap(lambda is_equal: groups_with_target(is_equal=is_equal, has_racks=True)))
def test_racks_cost_neither_balance_nor_moves(spec: GroupSpec) -> None:
    target = assign_uniformly(spec)
    found = owners(target)
    assert (unevenness(spec, found), moved(spec, found)) == best(spec)
    assert assign_uniformly(turned(spec)) == target


def test_a_chain_of_moves_makes_a_group_even_where_no_single_move_can() -> None:
    """Ends of the chain have no topic in common, and each neighbour has only one partition more."""
    topics = {topic_id(number): TopicSpec(3) for number in (1, 2)}
    one, two = topics
    members = {
        "a": MemberSpec(frozenset([one]), None, None, {one: frozenset([0, 1, 2])}),
        "b": MemberSpec(frozenset([one, two]), None, None, {two: frozenset([0, 1])}),
        "c": MemberSpec(frozenset([two]), None, None, {two: frozenset([2])}),
    }
    target = assign_uniformly(GroupSpec(members, topics))
    assert target == {
        "a": {one: frozenset([0, 1])},
        "b": {one: frozenset([2]), two: frozenset([0])},
        "c": {two: frozenset([1, 2])},
    }


def test_balance_does_not_move_a_partition_that_another_choice_leaves_where_it_is() -> None:
    """Once `a` has one of the first topic's partitions, `b` has two, `a` has two and `c` has none: the second topic
    moves too. It would have been enough by itself."""
    topics = {topic_id(1): TopicSpec(3), topic_id(2): TopicSpec(1)}
    one, two = topics
    members = {
        "a": MemberSpec(frozenset([one]), None, None, {one: frozenset([1])}),
        "b": MemberSpec(frozenset(topics), None, None, {one: frozenset([0, 2]), two: frozenset([0])}),
        "c": MemberSpec(frozenset([two])),
    }
    target = assign_uniformly(GroupSpec(members, topics))
    assert target == {"a": {one: frozenset([1])}, "b": {one: frozenset([0, 2])}, "c": {two: frozenset([0])}}


def test_a_member_gives_away_what_is_far_from_it() -> None:
    racks = tuple(frozenset([rack]) for rack in "xyxy")
    everything = MemberSpec(frozenset([topic_id(1)]), "y", None, {topic_id(1): frozenset(range(4))})
    spec = GroupSpec({"a": everything, "b": MemberSpec(everything.topics, "x")}, {topic_id(1): TopicSpec(4, racks)})
    assert assign_uniformly(spec) == {"a": {topic_id(1): frozenset([1, 3])}, "b": {topic_id(1): frozenset([0, 2])}}


def test_what_does_not_change_is_the_same_object() -> None:
    share = {topic_id(1): frozenset([0, 1])}
    spec = GroupSpec({"a": MemberSpec(frozenset(share), None, None, share)}, {topic_id(1): TopicSpec(2)})
    assert assign_uniformly(spec)["a"][topic_id(1)] is share[topic_id(1)]


def test_a_topic_is_spread_over_a_new_group() -> None:
    topics = {topic_id(number): TopicSpec(4) for number in (1, 2)}
    spec = GroupSpec({name: MemberSpec(frozenset(topics)) for name in "abcd"}, topics)
    assert all(held.keys() == topics.keys() for held in assign_uniformly(spec).values())


@settings(max_examples=40, deadline=None)
@given(groups_with_target(is_equal=False), st.integers(0, 40))
def test_without_budget_the_flow_is_still_whole(spec: GroupSpec, budget: int) -> None:
    balance = Balance(Present(spec), budget)
    balance.assign()
    pairs = zip(balance.held, balance.subscribers, strict=True)
    assert all(held[m] == 0 or m in subscribers for held, subscribers in pairs for m in held)
