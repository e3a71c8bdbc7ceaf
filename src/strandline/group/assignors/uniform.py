"""The assignor `uniform`: members get numbers of partitions that are as equal as their subscriptions permit (KIP-848).

First comes balance, then the present target, then racks: a partition moves only if the group is better balanced then,
and no partition moves for its racks alone. But a partition that must move goes to a member in the rack of a replica, if
one of the members that need partitions is there. (Kafka's server-side assignors ignore racks.)
"""

from strandline.group.assignors.balance import Balance
from strandline.group.assignors.dealing import deal
from strandline.group.assignors.present import Present
from strandline.group.assignors.spec import Assignment, GroupSpec


def assign_uniformly(spec: GroupSpec) -> Assignment:
    """The new target of each member. Every partition of a subscribed topic is in it once, at a subscribed member."""
    present = Present(spec)
    if present.topics:
        known = frozenset(present.topics)
        if len({member.topics & known for member in present.members}) == 1:
            assign_equally(present)
        else:
            assign_by_subscription(present)
        assert not any(present.free.values()), "every partition has a member"
    return dict(zip(present.names, present.held, strict=True))


def assign_equally(present: Present) -> None:
    """All members have the same subscription: each gets `low` partitions or one more. A member that holds more than
    `low` is the first to keep one more, so no other rule leaves more partitions where they are."""
    loads = [sum(map(len, held.values())) for held in present.held]
    total = sum(present.spec.topics[topic].partitions for topic in present.topics)
    low, extras = divmod(total, len(loads))
    for member, load in enumerate(loads):
        quota = low
        if load > low and extras:
            quota += 1
            extras -= 1
        if load > quota:
            for topic, partition in present.surplus(member, present.topics, load - quota):
                present.take(member, topic, [partition])
            loads[member] = quota
    # In rounds over the members with the fewest partitions, so that a topic's partitions are spread over the group.
    room = [(level, member) for member, load in enumerate(loads) for level in range(load, low)]
    room.sort()
    spare = [member for member, load in enumerate(loads) if load <= low] if extras else []
    pool = [(topic, partition) for topic in present.topics for partition in sorted(present.free[topic])]
    present.give(deal(present, pool, [member for _, member in room], spare))
    assert all(low <= sum(map(len, held.values())) <= low + 1 for held in present.held), "as even as it can be"


def assign_by_subscription(present: Present) -> None:
    """How many partitions of each topic each member gets is decided first, and then which."""
    balance = Balance(present)
    balance.assign()
    for number, topic in enumerate(present.topics):
        owned, counts = balance.owned[number], balance.held[number]
        for member in sorted(owned):
            surplus = owned[member] - counts.get(member, 0)
            if surplus > 0:
                taken = present.surplus(member, [topic], surplus)
                present.take(member, topic, [partition for _, partition in taken])
        if present.free[topic]:
            pool = [(topic, partition) for partition in sorted(present.free[topic])]
            room = [m for m in sorted(counts) for _ in range(counts[m] - owned.get(m, 0))]
            present.give(deal(present, pool, room, ()))
        assert not present.free[topic], "each partition has a member"
