"""Small groups for tests of assignors: drawn ones, and the naive search for the best assignment."""

from collections.abc import Iterator
from itertools import product
from operator import add

from hypothesis import strategies as st

from strandline.base.ids import Uuid
from strandline.group.assignors.spec import Assignment, GroupSpec, MemberSpec, TopicSpec

Partition = tuple[Uuid, int]


def topic_id(number: int) -> Uuid:
    return Uuid(number.to_bytes(16, "big"))


def owners(assignment: Assignment) -> dict[Partition, str]:
    """Who has what; a partition at two members fails."""
    found: dict[Partition, str] = {}
    for name, topics in assignment.items():
        for topic, partitions in topics.items():
            assert partitions, "no empty entries"
            for partition in partitions:
                assert (topic, partition) not in found
                found[topic, partition] = name
    return found


def present(spec: GroupSpec) -> dict[Partition, str]:
    """Who has what now, as far as it may keep it."""
    return {
        (topic, partition): name
        for name in sorted(spec.members, reverse=True)  # of two that claim the same, the first one counts
        for topic, partitions in spec.members[name].assigned.items()
        if topic in spec.members[name].topics and topic in spec.topics
        for partition in partitions
        if partition < spec.topics[topic].partitions
    }


def candidates(spec: GroupSpec) -> dict[Partition, list[str]]:
    """Who may have each partition that somebody must have."""
    found = {
        (topic, partition): [name for name in sorted(spec.members) if topic in spec.members[name].topics]
        for topic in sorted(spec.topics)
        for partition in range(spec.topics[topic].partitions)
    }
    return {partition: names for partition, names in found.items() if names}


def unevenness(spec: GroupSpec, found: dict[Partition, str]) -> int:
    """The smaller, the more even; the smallest where no chain of moves improves it."""
    counts = dict.fromkeys(spec.members, 0)
    for name in found.values():
        counts[name] += 1
    return sum(number**2 for number in counts.values())


def moved(spec: GroupSpec, found: dict[Partition, str]) -> int:
    return sum(found[partition] != name for partition, name in present(spec).items())


def local(spec: GroupSpec, found: dict[Partition, str]) -> int:
    """How many partitions are at a member in the rack of a replica."""
    return sum(
        spec.members[name].rack in spec.topics[topic].racks[partition]
        for (topic, partition), name in found.items()
        if spec.topics[topic].racks
    )


def best(spec: GroupSpec) -> tuple[int, int]:
    """Unevenness and moves of the best assignment: all ways to share each topic, and all ways to combine them."""
    names, choices, now = sorted(spec.members), candidates(spec), present(spec)
    sums = {tuple(0 for _ in names): 0}  # by the members' numbers of partitions: the fewest moves
    for topic in {topic for topic, _ in choices}:
        owned = [sum(found[0] == topic and owner == name for found, owner in now.items()) for name in names]
        ways = list(shares(spec.topics[topic].partitions, [topic in spec.members[name].topics for name in names]))
        longer: dict[tuple[int, ...], int] = {}
        for counts, moves in sums.items():
            for way in ways:
                total = tuple(map(add, counts, way))
                more = moves + sum(max(0, had - has) for had, has in zip(owned, way, strict=True))
                longer[total] = min(more, longer.get(total, more))
        sums = longer
    return min((sum(number**2 for number in counts), moves) for counts, moves in sums.items())


def shares(number: int, may: list[bool]) -> Iterator[tuple[int, ...]]:
    """All ways to give that many partitions to the members that may have them."""
    if len(may) == 1:
        if may[0] or not number:
            yield (number,)
        return
    for first in range(number + 1 if may[0] else 1):
        for rest in shares(number - first, may[1:]):
            yield (first, *rest)


def most_local(spec: GroupSpec) -> int:
    """How many partitions can be at a member in the rack of a replica, in an assignment that is as even as can be."""
    choices = candidates(spec)
    tried = [dict(zip(choices, names, strict=True)) for names in product(*choices.values())]
    least = min(unevenness(spec, found) for found in tried)
    return max(local(spec, found) for found in tried if unevenness(spec, found) == least)


@st.composite
def groups(draw: st.DrawFn, *, is_equal: bool, size: int = 12, has_racks: bool = False) -> GroupSpec:
    """A group without a present target, of which all assignments can be tried."""
    ids = [topic_id(number) for number in draw(st.permutations(range(1, draw(st.integers(1, 3)) + 1)))]
    topics: dict[Uuid, TopicSpec] = {}
    for topic in ids:
        count = draw(st.integers(0, min(6, size)))
        size -= count
        racks = st.lists(st.sets(st.sampled_from("xyz"), max_size=2).map(frozenset), min_size=count, max_size=count)
        topics[topic] = TopicSpec(count, tuple(draw(racks)) if has_racks else ())
    names = draw(st.permutations(["a", "b", "c", "d"][: draw(st.integers(1, 4))]))
    subscription = st.sets(st.sampled_from([*ids, topic_id(9)]), min_size=1).map(frozenset)
    first = draw(subscription)
    members = {
        name: MemberSpec(
            topics=first if is_equal else draw(subscription),
            rack=draw(st.sampled_from(["x", "y", "z", None])) if has_racks else None,
            instance_id=draw(st.sampled_from([None, f"i-{name}"])),
        )
        for name in names
    }
    return GroupSpec(members, topics)


@st.composite
def groups_with_target(draw: st.DrawFn, *, is_equal: bool, has_racks: bool = False) -> GroupSpec:
    """Most partitions have an owner that may have them; some targets have no partition or no subscription behind them,
    and some claim a partition of another member."""
    spec = draw(groups(is_equal=is_equal, has_racks=has_racks))
    assigned: dict[str, dict[Uuid, set[int]]] = {name: {} for name in spec.members}
    for (topic, partition), names in candidates(spec).items():
        if draw(st.integers(0, 9)):
            assigned[draw(st.sampled_from(names))].setdefault(topic, set()).add(partition)
    claims = st.tuples(st.sampled_from(sorted(spec.members)), st.sampled_from(sorted(spec.topics)), st.integers(0, 7))
    for name, topic, partition in draw(st.lists(claims, max_size=2)):
        assigned[name].setdefault(topic, set()).add(partition)
    return held_by(
        spec,
        {name: {topic: frozenset(found) for topic, found in topics.items()} for name, topics in assigned.items()},
    )


def turned(spec: GroupSpec) -> GroupSpec:
    """The same group, with everything in the other order."""
    members = {
        name: MemberSpec(member.topics, member.rack, member.instance_id, dict(reversed(list(member.assigned.items()))))
        for name, member in reversed(list(spec.members.items()))
    }
    return GroupSpec(members, dict(reversed(list(spec.topics.items()))))


def held_by(spec: GroupSpec, target: Assignment) -> GroupSpec:
    """The group once its members have this target."""
    members = {
        name: MemberSpec(member.topics, member.rack, member.instance_id, target[name])
        for name, member in spec.members.items()
    }
    return GroupSpec(members, spec.topics)
