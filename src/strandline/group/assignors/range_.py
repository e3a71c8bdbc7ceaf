"""The assignor `range`: each member gets a contiguous range of each topic's partitions (KIP-848).

Topics with the same subscribers and the same number of partitions are co-partitioned: whoever has partition 7 of one of
them has partition 7 of all. As in Kafka 4, ranges follow from the members' order and not from the present target.
Static members come first, by instance id, then the others by member id. So a static member that comes back with another
member id has the same ranges.

Racks choose which of the members gets which range, where racks of replicas differ: a range goes to a rack in which most
of its partitions have replicas. The ranges themselves stay as they are. (Kafka's server-side assignors ignore racks.)
"""

from itertools import pairwise

from strandline.base.ids import Uuid
from strandline.group.assignors.spec import Assignment, GroupSpec, TopicSpec


def assign_ranges(spec: GroupSpec) -> Assignment:
    """The new target of each member. Every partition of a subscribed topic is in it once, at a subscribed member."""
    target: Assignment = {name: {} for name in sorted(spec.members)}
    for (subscribers, partitions), topics in co_partitioned(spec).items():
        ranges = cut(partitions, len(subscribers))
        assert len(ranges) == len(subscribers), "a range for each"
        for name, (start, end) in zip(by_rack(spec, subscribers, ranges, topics), ranges, strict=True):
            if start < end:
                share = frozenset(range(start, end))
                target[name].update(dict.fromkeys(topics, share))
    return target


def in_order(spec: GroupSpec) -> list[str]:
    def key(name: str) -> tuple[bool, str, str]:
        instance = spec.members[name].instance_id
        return (instance is None, instance or "", name)

    return sorted(spec.members, key=key)


def co_partitioned(spec: GroupSpec) -> dict[tuple[tuple[str, ...], int], list[Uuid]]:
    """Topics by their subscribers, in the members' order, and their number of partitions."""
    subscribers: dict[Uuid, list[str]] = {}
    for name in in_order(spec):
        for topic in spec.members[name].topics:
            if topic in spec.topics:
                subscribers.setdefault(topic, []).append(name)
    groups: dict[tuple[tuple[str, ...], int], list[Uuid]] = {}
    for topic in sorted(subscribers):
        groups.setdefault((tuple(subscribers[topic]), spec.topics[topic].partitions), []).append(topic)
    return groups


def cut(partitions: int, members: int) -> list[tuple[int, int]]:
    """(start, end) of one range for each member; the first ones are longer by one."""
    size, longer = divmod(partitions, members)
    starts = [number * size + min(number, longer) for number in range(members + 1)]
    assert starts[0] == 0 and starts[-1] == partitions, "each partition is in one range"
    return list(pairwise(starts))


def by_rack(
    spec: GroupSpec, subscribers: tuple[str, ...], ranges: list[tuple[int, int]], topics: list[Uuid]
) -> list[str]:
    """The subscribers in the order of the ranges that they get. It is their own order if racks make no difference."""
    assert len(subscribers) == len(ranges)
    waiting: dict[str, list[str]] = {}  # by rack, the last one first
    for name in reversed(subscribers):
        waiting.setdefault(spec.members[name].rack or "", []).append(name)
    wishes: list[tuple[int, int, str]] = []
    for place, (start, end) in enumerate(ranges):
        found = replicas_by_rack([spec.topics[topic] for topic in topics], start, end)
        local = {rack: number for rack, number in found.items() if rack in waiting}
        if len(set(local.values())) > 1 or 0 < len(local) < len(waiting):
            wishes += [(-number, place, rack) for rack, number in local.items()]
    taken: dict[int, str] = {}
    for _, place, rack in sorted(wishes):
        if place not in taken and waiting[rack]:
            taken[place] = waiting[rack].pop()
    chosen = set(taken.values())
    assert len(chosen) == len(taken), "no member gets two ranges"
    others = (name for name in subscribers if name not in chosen)
    return [taken[place] if place in taken else next(others) for place in range(len(ranges))]


def replicas_by_rack(topics: list[TopicSpec], start: int, end: int) -> dict[str, int]:
    """How many partitions of these ranges have a replica in each rack."""
    assert 0 <= start <= end
    found: dict[str, int] = {}
    for topic in topics:
        for racks in topic.racks[start:end]:
            for rack in racks:
                found[rack] = found.get(rack, 0) + 1
    return found
