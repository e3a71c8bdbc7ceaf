"""How many partitions of each topic each member gets, if members have different subscriptions.

It is a flow from topics to members. Two things are made as small as possible, in this order: the sum of the squares
of the members' numbers of partitions (which is smallest exactly where no chain of moves makes the group more even), and
the number of partitions that change their member. The flow begins with the present target and is improved step by step.

The subscriptions are the clients' choice, and bad ones could cost much time. So there is a budget of steps; when it is
used up, the flow stays as it is: valid, and perhaps not the best.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush, heapreplace

from strandline.base.ids import Uuid
from strandline.group.assignors.moves import Exchanges
from strandline.group.assignors.present import Present

BUDGET = 150_000  # looks at an edge between a member and a topic; some tens of milliseconds
PASSES = 4  # over all topics, with single moves; chains do the rest


class Balance:
    """Topics and members are numbers, in the order of `Present`.

    Invariants:
      - for each topic, the numbers in `held` add up to its partitions;
      - `loads` are the sums over topics.
    """

    def __init__(self, present: Present, budget: int = BUDGET) -> None:
        numbers = {topic: number for number, topic in enumerate(present.topics)}
        self.partitions = [present.spec.topics[topic].partitions for topic in present.topics]
        self.topics_of: list[list[int]] = []
        sorted_topics: dict[frozenset[Uuid], list[int]] = {}  # many members have the same subscription
        self.subscribers: list[list[int]] = [[] for _ in numbers]
        self.owned: list[dict[int, int]] = [{} for _ in numbers]  # of the present target
        for member, spec in enumerate(present.members):
            topics = sorted_topics.get(spec.topics)
            if topics is None:
                topics = sorted_topics[spec.topics] = sorted(
                    numbers[topic] for topic in spec.topics if topic in numbers
                )
            self.topics_of.append(topics)
            for topic in topics:
                self.subscribers[topic].append(member)
            for topic_id, partitions in present.held[member].items():
                self.owned[numbers[topic_id]][member] = len(partitions)
        self.held = [dict(owned) for owned in self.owned]
        self.loads = [sum(map(len, held.values())) for held in present.held]
        self.budget = budget

    def assign(self) -> None:
        self.place()
        if max(self.loads) - min(self.loads) < 2:
            return  # no chain of moves could make it more even, and no partition has moved
        for _ in range(PASSES):
            if sum(self.level(topic) for topic in range(len(self.held))) == 0:
                break
        self.follow_chains()
        self.keep_more()
        self.check()

    def check(self) -> None:
        assert all(sum(held.values()) == n for held, n in zip(self.held, self.partitions, strict=True))
        assert sum(self.loads) == sum(self.partitions)

    def move(self, topic: int, giver: int, taker: int) -> None:
        """One partition, from a member that has one. Loads are for the caller to change."""
        held = self.held[topic]
        assert held[giver] > 0
        held[giver] -= 1
        held[taker] = held.get(taker, 0) + 1

    def place(self) -> None:
        """Free partitions go to the subscriber with the fewest. Topics with the fewest subscribers come first, since
        they have the least choice."""
        for topic in sorted(range(len(self.held)), key=lambda t: (len(self.subscribers[t]), t)):
            free = self.partitions[topic] - sum(self.held[topic].values())
            if not free:
                continue
            heap = [(self.loads[member], member) for member in self.subscribers[topic]]
            heapify(heap)
            held = self.held[topic]
            for _ in range(free):
                load, member = heap[0]
                heapreplace(heap, (load + 1, member))
                held[member] = held.get(member, 0) + 1
                self.loads[member] += 1
            assert sum(held.values()) == self.partitions[topic], "each partition has a place"

    def level(self, topic: int) -> bool:
        """Single moves, from the member with the most partitions to the one with the fewest. Was there one?"""
        held, loads = self.held[topic], self.loads
        least = min(loads[member] for member in self.subscribers[topic])
        if max(loads[member] for member, number in held.items() if number) - least < 2:
            return False
        givers = [(-loads[member], member) for member, number in held.items() if number]
        takers = [(loads[member], member) for member in self.subscribers[topic]]
        heapify(givers)
        heapify(takers)
        moved = False
        while givers:
            (most, giver), (fewest, taker) = givers[0], takers[0]
            if -most != loads[giver]:
                heapreplace(givers, (-loads[giver], giver))
            elif fewest != loads[taker]:
                heapreplace(takers, (loads[taker], taker))
            elif not held[giver]:
                heappop(givers)
            elif loads[giver] - loads[taker] < 2:
                break
            else:
                if not held.get(taker):
                    heappush(givers, (-loads[taker], taker))
                self.move(topic, giver, taker)
                loads[giver] -= 1
                loads[taker] += 1
                moved = True
        return moved

    def follow_chains(self) -> None:
        """Chains of moves, from a member with the most partitions to one that has at least two fewer.

        If none can be reached from the members with the most, all that they reach is final: nothing leaves it, and no
        later chain ends there. So each round finds a chain, or sets members aside."""
        open_members = set(range(len(self.loads)))
        while open_members and self.budget > 0:
            top = max(self.loads[member] for member in open_members)
            parents = self.reach(top, open_members)
            ends = [member for member in parents if self.loads[member] <= top - 2]
            if not ends:
                open_members -= parents.keys()
            for end in ends:
                self.follow(end, top, parents)

    def reach(self, top: int, among: set[int]) -> dict[int, tuple[int, int] | None]:
        """The members that chains from those with `top` partitions reach: (member before, topic), nearest first."""
        parents: dict[int, tuple[int, int] | None] = {m: None for m in sorted(among) if self.loads[m] == top}
        assert parents, "somebody has the most"
        queue, seen = list(parents), set[int]()
        for member in queue:
            self.budget -= len(self.topics_of[member])
            for topic in self.topics_of[member]:
                if topic in seen or not self.held[topic].get(member):
                    continue
                seen.add(topic)
                self.budget -= len(self.subscribers[topic])
                for following in self.subscribers[topic]:
                    if following not in parents and following in among:
                        parents[following] = (member, topic)
                        queue.append(following)
        return parents

    def follow(self, end: int, top: int, parents: dict[int, tuple[int, int] | None]) -> None:
        """Moves along the chain to `end`, if the chains before it have left what it needs."""
        steps: list[tuple[int, int, int]] = []
        member = end
        while (step := parents[member]) is not None:
            steps.append((step[1], step[0], member))
            member = step[0]
        if self.loads[member] != top or self.loads[end] > top - 2:
            return
        if all(self.held[topic][giver] for topic, giver, _ in steps):
            for topic, giver, taker in steps:
                self.move(topic, giver, taker)
            self.loads[member] -= 1
            self.loads[end] += 1

    def keep_more(self) -> None:
        """Exchanges that leave the balance as it is, and more partitions at the members that had them."""
        if not self.is_deprived():
            return
        exchanges = Exchanges(self.topics_of, self.subscribers, self.held, self.owned, self.loads)
        while self.budget > 0:
            cycles, cost = exchanges.find(self.budget)
            self.budget -= cost
            if not cycles:
                return
            steps = [step for cycle in cycles for step in cycle]
            before = {member: self.loads[member] for _, giver, taker in steps for member in (giver, taker)}
            for topic, giver, taker in steps:
                self.move(topic, giver, taker)
                self.loads[giver] -= 1
                self.loads[taker] += 1
            exchanges.renew(steps, before, self.loads)

    def is_deprived(self) -> bool:
        """Has a member fewer partitions of a topic than before? If not, nothing can be given back."""
        return any(held[m] < number for held, owned in self.pairs() for m, number in owned.items())

    def pairs(self) -> Iterator[tuple[dict[int, int], dict[int, int]]]:
        return zip(self.held, self.owned, strict=True)
