"""The range assignor: Kafka's ranges, and racks."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.group.assignors.groups import candidates, groups, held_by, owners, topic_id, turned

from strandline.group.assignors.range_ import assign_ranges
from strandline.group.assignors.spec import GroupSpec, MemberSpec, TopicSpec
from strandline.group.assignors.table import ASSIGNORS


@settings(max_examples=80, deadline=None)
@given(st.booleans().flatmap(lambda has_racks: groups(is_equal=False, has_racks=has_racks)))
def test_each_topic_is_cut_into_contiguous_ranges_that_differ_by_one(spec: GroupSpec) -> None:
    target = assign_ranges(spec)
    found = owners(target)
    assert found.keys() == candidates(spec).keys()
    assert all(name in candidates(spec)[partition] for partition, name in found.items())
    for topic in spec.topics:
        names = [name for name, member in spec.members.items() if topic in member.topics]
        shares = [sorted(target[name].get(topic, ())) for name in names]
        assert all(share == list(range(share[0], share[-1] + 1)) for share in shares if share)
        assert not names or max(map(len, shares)) - min(map(len, shares)) <= 1
    assert assign_ranges(turned(spec)) == target == assign_ranges(held_by(spec, target))


@settings(max_examples=40, deadline=None)
@given(groups(is_equal=True))
def test_without_racks_ranges_follow_the_order_of_members_with_static_ones_first(spec: GroupSpec) -> None:
    order = sorted(spec.members, key=lambda name: (spec.members[name].instance_id is None, name))
    target = assign_ranges(spec)
    for topic in spec.topics:
        assert [p for name in order for p in sorted(target[name].get(topic, ()))] == sorted(
            partition for found, partition in candidates(spec) if found == topic
        )
        sizes = [len(target[name].get(topic, ())) for name in order]
        assert sizes == sorted(sizes, reverse=True)


def test_a_static_member_has_its_ranges_under_another_member_id() -> None:
    topics = {topic_id(1): TopicSpec(5)}

    def ranges(member_id: str) -> set[int]:
        names = {"m": None, "n": None, member_id: "static"}
        members = {name: MemberSpec(frozenset(topics), None, instance) for name, instance in names.items()}
        return set(assign_ranges(GroupSpec(members, topics))[member_id][topic_id(1)])

    assert ranges("a") == ranges("z") == {0, 1}


def test_topics_with_the_same_partitions_and_subscribers_are_cut_alike_whatever_their_racks() -> None:
    racks = [tuple(frozenset([rack]) for rack in order) for order in ("xxyy", "yyyy")]
    topics = {topic_id(number): TopicSpec(4, found) for number, found in enumerate(racks, 1)}
    members = {"a": MemberSpec(frozenset(topics), "x"), "b": MemberSpec(frozenset(topics), "y")}
    target = assign_ranges(GroupSpec(members, topics))
    assert all(held[topic_id(1)] == held[topic_id(2)] for held in target.values())


def test_a_range_goes_to_the_rack_of_its_replicas_and_no_range_changes() -> None:
    topics = {topic_id(1): TopicSpec(5, tuple(frozenset([rack]) for rack in "yyxxz"))}
    members = {name: MemberSpec(frozenset(topics), rack) for name, rack in zip("abc", ["x", "y", None], strict=True)}
    target = assign_ranges(GroupSpec(members, topics))
    assert {name: set(held[topic_id(1)]) for name, held in target.items()} == {"a": {2, 3}, "b": {0, 1}, "c": {4}}


def test_kafkas_names() -> None:
    assert list(ASSIGNORS) == ["uniform", "range"]
