"""What is committed in the metadata of one world, as far as some node has applied it. The laws of metadata keep it."""

from strandline.base.ids import TopicIdPartition
from strandline.metadata.image import Image, Partition
from strandline.sim.world.machine import Machine


class Committed:
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
