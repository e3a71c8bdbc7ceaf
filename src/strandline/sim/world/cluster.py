"""The machines of one world, and what is known of the cluster that they are."""

from typing import Any

from strandline.base.ids import NodeId, TopicIdPartition, TopicPartition
from strandline.sim.runs.options import Options
from strandline.sim.world.committed import Committed
from strandline.sim.world.machine import Machine, Surroundings
from strandline.sim.world.trace import Trace


class Cluster(Surroundings):
    committed: Committed

    def __init__(self, seed: int, options: Options, trace: Trace | None = None) -> None:
        super().__init__(seed, options, trace)
        self.machines: dict[NodeId, Machine] = {}
        self.names: dict[TopicIdPartition, TopicPartition] = {}  # of partitions that ever had a leader
        self.network.topic_name = self.topic_name

    def topic_name(self, topic: Any) -> str:
        """Of a topic in a message, which may have but its id."""
        name = getattr(topic, "name", "") or getattr(topic, "topic", "") or getattr(topic, "topic_name", "")
        if not name and hasattr(topic, "topic_id"):
            known = self.committed.image.topics.get(topic.topic_id)
            name = known.name if known is not None else ""
        return str(name)

    @property
    def is_recovery_managed(self) -> bool:
        return next(iter(self.machines.values())).config.boolean("unclean.recovery.manager.enabled")
