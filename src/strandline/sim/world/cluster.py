"""The machines of one world, and what is known of the cluster that they are."""

from typing import Any

from strandline.base.ids import NodeId, TopicIdPartition, TopicPartition
from strandline.metadata.image import Image, Partition
from strandline.sim.world.machine import Machine, Surroundings
from strandline.sim.world.options import Options
from strandline.sim.world.trace import Trace


class Committed:
    """What is committed in the metadata, as far as some node has applied it. The laws of metadata keep it."""

    def __init__(self) -> None:
        self.leaders: dict[int, str] = {}  # by epoch of the quorum
        self.batches: dict[int, tuple[int, bytes]] = {}  # base offset -> (next offset, the batch)
        self.end = 0  # how much of the log is known to be committed
        self.image = Image()  # the newest committed one, as some node has applied it
        self.history: dict[TopicIdPartition, dict[int, Partition]] = {}  # by partition epoch

    def partition_at(self, at: TopicIdPartition, partition_epoch: int) -> Partition | None:
        return self.history.get(at, {}).get(partition_epoch)

    def is_registered(self, machine: Machine) -> bool:
        """Is the incarnation that runs there the one that the committed metadata knows, and let in?"""
        node = machine.node
        broker = self.image.brokers.get(machine.node_id)
        if node is None or node.broker is None or broker is None or broker.fenced:
            return False
        return node.broker.lifecycle.identity.incarnation_id == broker.incarnation_id


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
