"""What of a group's present target can stay, before anything is balanced."""

from strandline.base.ids import Uuid
from strandline.group.assignors.spec import GroupSpec


class Present:
    """A working copy of the target. Members are numbers, in the order of their ids.

    Invariants:
      - each partition of a subscribed topic is in `free`, or in `held` of exactly one member;
      - a member holds only partitions of topics that it is subscribed to.
    """

    def __init__(self, spec: GroupSpec) -> None:
        self.spec = spec
        self.names = sorted(spec.members)
        self.members = [spec.members[name] for name in self.names]
        subscribed: set[Uuid] = set()
        for topics in dict.fromkeys(member.topics for member in self.members):
            subscribed |= topics
        self.topics = sorted(topic for topic in subscribed if topic in spec.topics and spec.topics[topic].partitions)
        self.free = {topic: set(range(spec.topics[topic].partitions)) for topic in self.topics}
        self.held: list[dict[Uuid, frozenset[int]]] = []
        for member in self.members:
            kept: dict[Uuid, frozenset[int]] = {}
            for topic, partitions in member.assigned.items():
                free = self.free.get(topic)
                if free is None or topic not in member.topics:
                    continue
                stays = partitions if free.issuperset(partitions) else partitions & free
                if stays:
                    free -= stays
                    kept[topic] = stays
            self.held.append(kept)

    def take(self, member: int, topic: Uuid, partitions: list[int]) -> None:
        """The member loses these partitions, and they are free."""
        left = self.held[member][topic].difference(partitions)
        assert len(left) == len(self.held[member][topic]) - len(partitions)
        if left:
            self.held[member][topic] = left
        else:
            del self.held[member][topic]
        self.free[topic].update(partitions)

    def give(self, dealt: list[tuple[Uuid, int, int]]) -> None:
        """(topic, partition, member): each of them was free."""
        gains: dict[tuple[int, Uuid], list[int]] = {}
        for topic, partition, member in dealt:
            gains.setdefault((member, topic), []).append(partition)
        for (member, topic), partitions in gains.items():
            assert self.free[topic].issuperset(partitions)
            self.free[topic].difference_update(partitions)
            self.held[member][topic] = self.held[member].get(topic, frozenset()).union(partitions)

    def is_local(self, member: int, topic: Uuid, partition: int) -> bool:
        """Is a replica of the partition in the member's rack?"""
        racks = self.spec.topics[topic].racks
        return bool(racks) and self.members[member].rack in racks[partition]

    def surplus(self, member: int, topics: list[Uuid], number: int) -> list[tuple[Uuid, int]]:
        """The partitions of these topics to take from the member, if it must give that many: those without a replica
        in its rack first, then the last ones."""
        held = [(topic, partition) for topic in topics for partition in self.held[member].get(topic, ())]
        assert number <= len(held)
        held.sort(key=lambda found: (not self.is_local(member, *found), found), reverse=True)
        return held[:number]
