"""What the faults have taken, and where that is more than the configuration promises to survive.

Without Eligible Leader Replicas the promise is: while one member of a partition's committed ISR has lost nothing, no
acknowledged record is lost. A machine is *lossy* for a partition from the moment it lost what it had not synced (power,
a replaced or restored disk) until it has left the ISR and caught up again; with a bit that rots, until its disk is
replaced. When all members of ISR and ELR are lossy, or an unclean leader was elected where the topic allows that, the
promise is exceeded: what that partition holds from then on is whatever its leader has, and only its replicas'
agreement is asked for.

In a gentle run faults are chosen so that this cannot happen, and nothing is excused.
"""

from typing import TYPE_CHECKING

from strandline.base.ids import NodeId, TopicIdPartition
from strandline.metadata.image import RECOVERING, Partition
from strandline.sim.trace import Kind

if TYPE_CHECKING:
    from strandline.sim.world import World


class Damage:
    def __init__(self, world: "World") -> None:
        self.world = world
        self.lossy: dict[TopicIdPartition, dict[NodeId, bool]] = {}  # node -> has it been out of the ISR since?
        self.exceeded: dict[TopicIdPartition, str] = {}

    def lost(self, node: NodeId, why: str) -> None:
        """This machine lost data that it had not synced, or more."""
        for topic in self.world.laws.metadata.image.topics.values():
            for index, partition in topic.partitions.items():
                if node in partition.replicas:
                    at = TopicIdPartition(topic.topic_id, index)
                    self.lossy.setdefault(at, {})[node] = node not in (*partition.isr, *partition.elr)
                    self.judge(at, partition, f"{topic.name}-{index}: node {node} {why}")

    def metadata_changed(self, at: TopicIdPartition, partition: Partition) -> None:
        lossy = self.lossy.get(at)
        if lossy:
            members = (*partition.isr, *partition.elr)
            for node, has_left in list(lossy.items()):
                if node not in members:
                    lossy[node] = True
                elif has_left and not self.world.machines[node].is_rotten:
                    del lossy[node]
            self.judge(at, partition, "the ISR shrank to replicas that lost data")
        if partition.leader_recovery_state == RECOVERING:
            self.exceed(at, "an unclean leader was elected", is_wished=True)

    def judge(self, at: TopicIdPartition, partition: Partition, why: str) -> None:
        members = (*partition.isr, *partition.elr)
        if members and all(node in self.lossy.get(at, {}) for node in members):
            self.exceed(at, why)

    def exceed(self, at: TopicIdPartition, why: str, *, is_wished: bool = False) -> None:
        if (is_wished or self.world.options.is_ruthless) and at not in self.exceeded:
            self.exceeded[at] = why
            self.world.tell(Kind.FAULT, f"more is lost than was promised to survive: {why}")

    def is_exceeded(self, topic: str) -> bool:
        """In any partition of a topic of this name."""
        topics = self.world.laws.partitions.names
        return any(at in topics and topics[at].topic == topic for at in self.exceeded)
