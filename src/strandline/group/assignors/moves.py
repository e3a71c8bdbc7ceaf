"""Which exchanges leave a group as balanced as it is, and give partitions back to members that had them.

They are the negative cycles of a network. A member leads to the topics of which it has partitions, and a topic to its
subscribers. The first step costs -1 if the member has more of the topic than before (it gives back a partition that
had to move), else 0; the second one costs 1 if the member then has more than before, else 0. A chain may also end at
another member than it began, if that one has exactly one partition less: the two exchange their numbers. A node for
each number makes cycles of such chains: a member with one less leads to it, and it leads to members with this number.
"""

from collections.abc import Sequence

Steps = list[tuple[int, int, int]]  # topic, giver, taker


def cheaper_cycles(
    topics_of: Sequence[Sequence[int]],
    held: Sequence[dict[int, int]],
    owned: Sequence[dict[int, int]],
    loads: Sequence[int],
    budget: int,
) -> tuple[list[Steps], int]:
    """Exchanges that can all be made at once, and how many edges were looked at. None are left if there are no
    exchanges, or if the budget is used up (Bellman and Ford, with all nodes at distance 0)."""
    edges = network(topics_of, held, owned, loads)
    distance = [0] * len(edges)
    parents = [-1] * len(edges)
    dirty: dict[int, None] = dict.fromkeys(range(len(edges)))
    cost = 0
    while dirty and cost < budget:
        following: dict[int, None] = {}
        for node in dirty:
            base = distance[node]
            cost += len(edges[node])
            for end, price in edges[node]:
                if base + price < distance[end]:
                    distance[end] = base + price
                    parents[end] = node
                    following[end] = None
        found = cycles_of(parents)
        if found:
            return [steps_of(cycle, len(topics_of), len(held)) for cycle in found], cost
        dirty = following
    return [], cost


def network(
    topics_of: Sequence[Sequence[int]],
    held: Sequence[dict[int, int]],
    owned: Sequence[dict[int, int]],
    loads: Sequence[int],
) -> list[list[tuple[int, int]]]:
    """For each node its (following node, cost): members, then topics, then numbers of partitions."""
    members, topics = len(topics_of), len(held)
    top = max(loads) + 2
    edges: list[list[tuple[int, int]]] = [[] for _ in range(members + topics + top)]
    for member, mine in enumerate(topics_of):
        for topic in mine:
            has, had = held[topic].get(member, 0), owned[topic].get(member, 0)
            if has:
                edges[member].append((members + topic, -1 if has > had else 0))
            edges[members + topic].append((member, 0 if has < had else 1))
        number = members + topics + loads[member]
        edges[number].append((member, 0))
        edges[member].append((number + 1, 0))
    return edges


def cycles_of(parents: list[int]) -> list[list[int]]:
    """The cycles that the parents form, each from a node to those before it. No two have a node in common."""
    found: list[list[int]] = []
    visited = [-1] * len(parents)
    for start in range(len(parents)):
        node = start
        while node != -1 and visited[node] == -1:
            visited[node] = start
            node = parents[node]
        if node != -1 and visited[node] == start:
            cycle = [node]
            while (node := parents[node]) != cycle[0]:
                cycle.append(node)
            found.append(cycle)
    return found


def steps_of(cycle: list[int], members: int, topics: int) -> Steps:
    """The moves of a cycle: wherever it goes through a topic, from the member before it to the one after it."""
    steps: Steps = []
    for place, node in enumerate(cycle):
        if members <= node < members + topics:
            giver, taker = cycle[(place + 1) % len(cycle)], cycle[place - 1]
            assert giver < members and taker < members
            steps.append((node - members, giver, taker))
    return steps
