"""Free partitions go to members that have room, and to a member in the rack of a replica where that is possible.

The number of partitions that find such a member is as large as it can be: racks and the sets of racks that partitions
have form a small network, of which the largest flow is looked for. Partitions and members are counted by them, so the
network does not grow with the group.
"""

from collections import Counter, deque
from collections.abc import Sequence

from strandline.base.ids import Uuid
from strandline.group.assignors.present import Present

Dealt = list[tuple[Uuid, int, int]]  # topic, partition, member
Node = tuple[str, int | str]
SOURCE: Node = ("source", 0)
SINK: Node = ("sink", 0)
SPARE: Node = ("spare", 0)


def deal(present: Present, pool: Sequence[tuple[Uuid, int]], room: Sequence[int], spare: Sequence[int]) -> Dealt:
    """Each partition of `pool` with its new member. `room`: a member once for each partition that it must get.
    `spare`: members of which each may get one more."""
    extras = len(pool) - len(room)
    assert 0 <= extras <= len(spare)
    dealt: Dealt = []
    if any(present.members[member].rack is not None for member in (*room, *spare)):
        racks = sorted({rack for rack in (present.members[member].rack for member in (*room, *spare)) if rack})
        groups = by_racks(present, pool, frozenset(racks))
        if any(groups):
            return deal_by_rack(present, groups, room, spare, extras)
    for (topic, partition), member in zip(pool, (*room, *spare[:extras]), strict=True):
        dealt.append((topic, partition, member))
    return dealt


Groups = dict[frozenset[str], deque[tuple[Uuid, int]]]


def by_racks(present: Present, pool: Sequence[tuple[Uuid, int]], racks: frozenset[str]) -> Groups:
    """The partitions by those of `racks` that have a replica of theirs."""
    groups: Groups = {}
    cuts: dict[frozenset[str], frozenset[str]] = {}
    for topic, partition in pool:
        found = present.spec.topics[topic].racks
        all_of = found[partition] if found else frozenset()
        cut = cuts.get(all_of)
        if cut is None:
            cut = cuts[all_of] = all_of & racks
        groups.setdefault(cut, deque()).append((topic, partition))
    assert sum(map(len, groups.values())) == len(pool), "each partition is in one of them"
    return groups


def deal_by_rack(present: Present, groups: Groups, room: Sequence[int], spare: Sequence[int], extras: int) -> Dealt:
    rooms, spares = queues(present, room), queues(present, spare)
    flows = local_numbers(groups, sizes(rooms), sizes(spares), extras)
    dealt: Dealt = []
    for racks in sorted(groups, key=sorted):
        for rack in sorted(racks):
            for _ in range(flows[racks, rack]):
                if rooms.get(rack):
                    member = rooms[rack].popleft()
                else:
                    member = spares[rack].popleft()
                    extras -= 1
                    assert extras >= 0
                dealt.append((*groups[racks].popleft(), member))
    assert extras >= 0
    left_room = Counter(member for queue in rooms.values() for member in queue)
    left_spare = {member for queue in spares.values() for member in queue}
    members = in_order(room, left_room)
    members += [member for member in spare if member in left_spare][:extras]
    left = sorted(partition for group in groups.values() for partition in group)
    assert len(left) == len(members), "each partition finds a member"
    return dealt + [(*partition, member) for partition, member in zip(left, members, strict=True)]


def in_order(room: Sequence[int], left: Counter[int]) -> list[int]:
    """What is left of the room, in its order."""
    found = []
    for member in reversed(room):
        if left[member]:
            left[member] -= 1
            found.append(member)
    assert not any(left.values()), "what is left was in the room"
    return found[::-1]


def queues(present: Present, members: Sequence[int]) -> dict[str | None, deque[int]]:
    found: dict[str | None, deque[int]] = {}
    for member in members:
        found.setdefault(present.members[member].rack, deque()).append(member)
    assert sum(map(len, found.values())) == len(members)
    return found


def sizes(found: dict[str | None, deque[int]]) -> dict[str, int]:
    return {rack: len(queue) for rack, queue in found.items() if rack is not None}


def local_numbers(
    groups: Groups, room: dict[str, int], spare: dict[str, int], extras: int
) -> dict[tuple[frozenset[str], str], int]:
    """How many partitions of each group go to members of each rack, such that most of them go to one of their racks."""
    order = sorted(groups, key=sorted)
    capacity: dict[Node, dict[Node, int]] = {SOURCE: {}, SINK: {}, SPARE: {SINK: extras}}
    for number, racks in enumerate(order):
        capacity[SOURCE]["group", number] = len(groups[racks])
        capacity["group", number] = {("rack", rack): len(groups[racks]) for rack in sorted(racks)}
    for rack in sorted(room.keys() | spare.keys()):
        capacity["rack", rack] = {SINK: room.get(rack, 0), SPARE: spare.get(rack, 0)}
    fill(capacity)
    return {
        (racks, rack): capacity["rack", rack].get(("group", number), 0)
        for number, racks in enumerate(order)
        for rack in racks
    }


def fill(capacity: dict[Node, dict[Node, int]]) -> None:
    """The largest flow from SOURCE to SINK (Edmonds and Karp). `capacity` becomes what is left of it: the flow of an
    edge is then the capacity of the way back."""
    while True:
        parents: dict[Node, Node] = {SOURCE: SOURCE}
        queue = deque([SOURCE])
        while queue and SINK not in parents:
            node = queue.popleft()
            for following, left in capacity[node].items():
                if left and following not in parents:
                    parents[following] = node
                    queue.append(following)
        if SINK not in parents:
            return
        path = [SINK]
        while path[-1] != SOURCE:
            path.append(parents[path[-1]])
        steps = list(zip(path[1:], path, strict=False))
        amount = min(capacity[start][end] for start, end in steps)
        assert amount > 0, "each way carries something"
        for start, end in steps:
            capacity[start][end] -= amount
            capacity[end][start] = capacity[end].get(start, 0) + amount
