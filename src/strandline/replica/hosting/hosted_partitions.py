"""The partitions that this broker hosts, found by topic name and by topic id.

Two logs of one name may lie in two directories after a start: of different topics, until metadata says which one is
there. Then the one that was found last has the name.

Invariant (executed by `check`): what is found here is under its own name or id, and is not gone.
"""

from collections.abc import Iterator
from typing import TypeVar

from strandline.base.ids import TopicIdPartition, Uuid
from strandline.replica.counters import TopicCounters
from strandline.replica.hosting.hosted import Hosted
from strandline.replica.hosting.leader import Leader

Key = TypeVar("Key")


class HostedPartitions:
    def __init__(self) -> None:
        self.by_name: dict[str, dict[int, Hosted]] = {}
        self.by_id: dict[Uuid, dict[int, Hosted]] = {}
        self.counters: dict[str, TopicCounters] = {}

    def put(self, hosted: Hosted) -> None:
        assert not hosted.gone, hosted.name
        hosted.share(self.counters.setdefault(hosted.name.topic, hosted.counters))
        self.by_name.setdefault(hosted.name.topic, {})[hosted.name.partition] = hosted
        self.by_id.setdefault(hosted.at.topic_id, {})[hosted.at.partition] = hosted

    def remove(self, hosted: Hosted) -> None:
        """Another log may have its name, or its id, by now: that one stays."""
        take_out(self.by_name, hosted.name.topic, hosted)
        take_out(self.by_id, hosted.at.topic_id, hosted)
        if hosted.name.topic not in self.by_name:
            self.counters.pop(hosted.name.topic, None)

    def find(self, at: TopicIdPartition) -> Hosted | None:
        group = self.by_id.get(at.topic_id)
        return None if group is None else group.get(at.partition)

    def named(self, topic: str, partition: int) -> Hosted | None:
        group = self.by_name.get(topic)
        return None if group is None else group.get(partition)

    @property
    def count(self) -> int:
        return sum(map(len, self.by_id.values()))

    def all(self) -> Iterator[Hosted]:
        for group in self.by_id.values():
            yield from group.values()

    def leaders(self) -> Iterator[tuple[Hosted, Leader]]:
        for group in self.by_id.values():
            for hosted in group.values():
                role = hosted.role
                if type(role) is Leader:
                    yield hosted, role

    def check(self) -> None:
        for topic, group in self.by_name.items():
            assert group, topic
            for index, hosted in group.items():
                assert hosted.name == (topic, index)
                assert not hosted.gone, hosted.name
        for topic_id, by_partition in self.by_id.items():
            assert by_partition, topic_id
            for index, hosted in by_partition.items():
                assert hosted.at == (topic_id, index)
                assert not hosted.gone, hosted.name


def take_out(index: dict[Key, dict[int, Hosted]], key: Key, hosted: Hosted) -> None:
    group = index.get(key, {})
    if group.get(hosted.at.partition) is hosted:
        del group[hosted.at.partition]
        if not group:
            del index[key]
