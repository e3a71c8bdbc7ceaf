"""What the faults have taken, and where that is more than the configuration promises to survive.

Without Eligible Leader Replicas the promise is: while one member of a partition's committed ISR has lost nothing, no
acknowledged record is lost. A machine is *lossy* for a partition from the moment it lost what it had not synced (power,
a replaced or restored disk) until it has left the ISR and caught up again; with a bit that rots, until its disk is
replaced. When all members of ISR and ELR are lossy, or an unclean leader was elected where the topic allows that, the
promise is exceeded: what that partition holds from then on is whatever its leader has, and only its replicas'
agreement is asked for.

With Eligible Leader Replicas it is KIP-966's: any min ISR − 1 shutdowns at a time that lose data lose nothing, and move
no high watermark back. Every stop that is not in order is such a shutdown, for the controller cannot know what it
cost: until it has seen the next registration, the machine is *suspect*.

A gentle run chooses its faults so that this hardly happens (`faults/injector.py`); a ruthless one does not care.
"""

from strandline.base.ids import NodeId, TopicIdPartition
from strandline.base.value import Value
from strandline.metadata.features import ELR_FEATURE
from strandline.metadata.image import RECOVERING, Partition
from strandline.metadata.strategy import Strategy, strategy_of
from strandline.sim.hostile import TOPIC as STRANGE_TOPIC
from strandline.sim.world.cluster import Cluster
from strandline.sim.world.trace import Kind


class Loss:
    """One machine's, of one partition."""

    def __init__(self, broker_epoch: int, has_left: bool) -> None:
        self.broker_epoch = broker_epoch  # of the incarnation that was registered when it happened
        self.has_left = has_left  # has it been out of the ISR since?


class Exceeded(Value, frozen=True):
    why: str
    since_ms: int


class Damage:
    def __init__(self, world: Cluster) -> None:
        self.world = world
        self.lossy: dict[TopicIdPartition, dict[NodeId, Loss]] = {}
        self.exceeded: dict[TopicIdPartition, Exceeded] = {}
        self.stopped: dict[NodeId, int] = {}  # the broker epoch in which it stopped, and not in order
        # The files of these differ from those that the killed process left. No start can see that in the same
        # run of the system (docs/losses.md), so the ledger need not know.
        self.unseen: dict[TopicIdPartition, None] = {}

    def stops(self, node: NodeId) -> None:
        """This machine's process is gone, or will be, and leaves no marker of a clean stop."""
        broker = self.world.committed.image.brokers.get(node)
        if broker is not None:
            self.stopped[node] = broker.epoch

    def is_suspect(self, node: NodeId) -> bool:
        """May it lack what it had, and the controller has not heard of it?"""
        broker = self.world.committed.image.brokers.get(node)
        return broker is not None and self.stopped.get(node) == broker.epoch

    def lost(self, node: NodeId, why: str) -> None:
        """This machine lost data that it had not synced, or more."""
        for topic in self.world.committed.image.topics.values():
            for index in topic.partitions:
                self.lost_of(TopicIdPartition(topic.topic_id, index), node, why)

    def lost_of(self, at: TopicIdPartition, node: NodeId, why: str) -> None:
        """The same of one partition."""
        image = self.world.committed.image
        broker, partition = image.brokers.get(node), image.partition(at)
        if partition is None or node not in partition.replicas:
            return
        epoch = -1 if broker is None else broker.epoch
        members = (*partition.isr, *partition.elr)
        self.lossy.setdefault(at, {})[node] = Loss(epoch, node not in members)
        self.judge(at, partition, f"{image.topics[at.topic_id].name}-{at.partition}: node {node} {why}")

    def is_lossy(self, at: TopicIdPartition, node: NodeId) -> bool:
        return node in self.lossy.get(at, ())

    def metadata_changed(self, at: TopicIdPartition, name: str, partition: Partition) -> None:
        lossy = self.lossy.get(at)
        if lossy:
            members = (*partition.isr, *partition.elr)
            for node, loss in list(lossy.items()):
                if node not in members:
                    loss.has_left = True
                elif loss.has_left and self.is_back(node, loss):
                    del lossy[node]
                else:
                    loss.has_left = False  # what was proposed before the loss: it must leave once more
            self.judge(at, partition, f"the ISR of {name} shrank to replicas that lost data")
        is_lossless = partition.lossless_epoch == partition.leader_epoch and at not in self.unseen
        if partition.leader_recovery_state == RECOVERING and not is_lossless:
            if not (self.has_elr and at in self.exceeded):  # what allowed it may be over by now
                assert self.may_be_unclean(at), (
                    f"{name} has an unclean leader, {partition.leader}, which its topic does not allow"
                )
            self.exceed(at, f"an unclean leader of {name} was elected")

    def may_be_unclean(self, at: TopicIdPartition) -> bool:
        """Aggressive: anybody may lead. Balanced: with ELR, who led last. The stranger elects anybody in its own."""
        image = self.world.committed.image
        machine = next(iter(self.world.machines.values()))
        name = image.topics[at.topic_id].name
        strategy = strategy_of(image, name, machine.config.explicit)
        if strategy is Strategy.AGGRESSIVE or name == STRANGE_TOPIC:
            return True
        return self.has_elr and strategy is Strategy.BALANCED

    @property
    def has_elr(self) -> bool:
        """It may have been switched off a moment ago, or on."""
        return self.world.options.elr or self.world.committed.image.features.get(ELR_FEATURE, 0) > 0

    def is_back(self, node: NodeId, loss: Loss) -> bool:
        """Is it a later incarnation that entered the ISR? An earlier one may have been proposed before the loss."""
        broker = self.world.committed.image.brokers.get(node)
        return broker is not None and broker.epoch > loss.broker_epoch and not self.world.machines[node].is_rotten

    def judge(self, at: TopicIdPartition, partition: Partition, why: str) -> None:
        members = (*partition.isr, *partition.elr)
        if members and all(self.is_lossy(at, node) for node in members):
            self.exceed(at, why)

    def exceed(self, at: TopicIdPartition, why: str) -> None:
        if at not in self.exceeded:
            self.exceeded[at] = Exceeded(why, self.world.time.now)
            self.world.note(Kind.FAULT, f"more is lost than was promised to survive: {why}")

    def is_exceeded(self, topic: str) -> bool:
        """In any partition of a topic of this name."""
        topics = self.world.names
        return any(at in topics and topics[at].topic == topic for at in self.exceeded)
