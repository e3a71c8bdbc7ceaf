"""Which exchanges leave a group as balanced as it is, and give partitions back to members that had them.

They are the negative cycles of a network. A member leads to the topics of which it has partitions, and a topic to its
subscribers. The first step costs -1 if the member has more of the topic than before (it gives back a partition that
had to move), else 0; the second one costs 1 if the member then has more than before, else 0. A chain may also end at
another member than it began, if that one has exactly one partition less: the two exchange their numbers. A node for
each number makes cycles of such chains: a member with one less leads to it, and it leads to members with this number.

Cycles are found as Bellman and Ford do it. What is known of distances stays when a cycle has been used, so the search
goes on where the network has changed.
"""

from collections.abc import Iterable, Sequence

Steps = list[tuple[int, int, int]]  # topic, giver, taker


class Exchanges:
    """The network. Its nodes are members, then topics, then numbers of partitions.

    Invariant: where the distance of an edge's end is above that of its start and the edge, the start is in `dirty`.
    """

    def __init__(
        self,
        topics_of: Sequence[Sequence[int]],
        subscribers: Sequence[Sequence[int]],
        held: Sequence[dict[int, int]],
        owned: Sequence[dict[int, int]],
        loads: Sequence[int],
    ) -> None:
        self.topics_of, self.subscribers, self.held, self.owned = topics_of, subscribers, held, owned
        self.first_topic = len(topics_of)
        self.first_number = self.first_topic + len(held)
        numbers = max(loads) + 2
        self.having: list[dict[int, None]] = [{} for _ in range(numbers)]  # the members with each number
        for member, load in enumerate(loads):
            self.having[load][member] = None
        self.edges: list[list[tuple[int, int]]] = [  # of each node: the following node, cost
            *(self.from_member(member, load) for member, load in enumerate(loads)),
            *(self.from_topic(topic) for topic in range(len(held))),
            *(self.from_number(number) for number in range(numbers)),
        ]
        self.distance = [0] * len(self.edges)
        self.parents = [-1] * len(self.edges)
        assert self.first_number <= len(self.edges) == self.first_number + numbers
        self.dirty: dict[int, None] = dict.fromkeys(range(len(self.edges)))

    def from_member(self, member: int, load: int) -> list[tuple[int, int]]:
        found = []
        for topic in self.topics_of[member]:
            has = self.held[topic].get(member, 0)
            if has:
                found.append((self.first_topic + topic, -1 if has > self.owned[topic].get(member, 0) else 0))
        found.append((self.first_number + load + 1, 0))
        return found

    def from_topic(self, topic: int) -> list[tuple[int, int]]:
        held, owned = self.held[topic], self.owned[topic]
        return [(member, 0 if held.get(member, 0) < owned.get(member, 0) else 1) for member in self.subscribers[topic]]

    def from_number(self, number: int) -> list[tuple[int, int]]:
        return [(member, 0) for member in self.having[number]]

    def find(self, budget: int) -> tuple[list[Steps], int]:
        """Exchanges that can all be made at once, and how many edges were looked at. None are left if there are no
        exchanges, or if the budget is used up. `renew` comes next."""
        edges, distance, parents = self.edges, self.distance, self.parents
        cost = 0
        assert budget > 0 and all(parent == -1 for parent in parents), "a search begins anew"
        while self.dirty and cost < budget:
            following: dict[int, None] = {}
            for node in self.dirty:
                base = distance[node]
                cost += len(edges[node])
                for end, price in edges[node]:
                    if base + price < distance[end]:
                        distance[end] = base + price
                        parents[end] = node
                        following[end] = None
            self.dirty = following
            found = cycles_of(parents, following)
            if found:
                return [self.steps_of(cycle) for cycle in found], cost
        return [], cost

    def renew(self, steps: Steps, before: dict[int, int], loads: Sequence[int]) -> None:
        """These exchanges were made. `before`: the members of them, and the numbers of partitions that they had."""
        assert {member for _, giver, taker in steps for member in (giver, taker)} == before.keys()
        changed = {self.first_topic + topic for topic, _, _ in steps}
        for member, load in before.items():
            if loads[member] != load:
                del self.having[load][member]
                self.having[loads[member]][member] = None
                changed.update((self.first_number + load, self.first_number + loads[member]))
            self.edges[member] = self.from_member(member, loads[member])
        for node in sorted(changed):
            is_number = node >= self.first_number
            self.edges[node] = (
                self.from_number(node - self.first_number) if is_number else self.from_topic(node - self.first_topic)
            )
        self.parents = [-1] * len(self.parents)  # an edge of them may be gone
        self.dirty.update(dict.fromkeys([*before, *sorted(changed)]))

    def steps_of(self, cycle: list[int]) -> Steps:
        """The moves: wherever the cycle goes through a topic, from the member before it to the one after it."""
        steps: Steps = []
        for place, node in enumerate(cycle):
            if self.first_topic <= node < self.first_number:
                giver, taker = cycle[(place + 1) % len(cycle)], cycle[place - 1]
                assert giver < self.first_topic and taker < self.first_topic
                steps.append((node - self.first_topic, giver, taker))
        return steps


def cycles_of(parents: list[int], ends: Iterable[int]) -> list[list[int]]:
    """The cycles that the parents form before these nodes, each from a node to those before it. No two have a node in
    common."""
    found: list[list[int]] = []
    visited: dict[int, int] = {}
    for start in ends:
        node = start
        while node != -1 and node not in visited:
            visited[node] = start
            node = parents[node]
        if node != -1 and visited[node] == start:
            cycle = [node]
            while (node := parents[node]) != cycle[0]:
                cycle.append(node)
            found.append(cycle)
            assert len(set(cycle)) == len(cycle), "each node once"
    return found
