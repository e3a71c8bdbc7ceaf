"""What must hold of ISR and ELR in committed metadata while Eligible Leader Replicas are switched on (KIP-966).

- an ISR of min ISR has no ELR, and no last known ELR, beside it
- below min ISR nobody leaves ISR and ELR together without a reason: a new registration, or none any more; another
  directory; records that it lost, by its own word; a reassignment; another min ISR; an unclean election
- who begins anew in another directory leaves them
- only registered brokers are eligible, and while nobody leads it is known who led last
- an unclean election writes its entry of the loss ledger
- who leaves them so is in the last known ELR, so that |ISR| + |ELR| + those who lost their tails stay at least min ISR

That the sets are disjoint, and replicas, is asserted by `Image.check`; that their running members have all that was
committed, by `partitions`.
"""

from typing import Any

from strandline.base.effects import Received
from strandline.base.ids import NOBODY, NodeId, TopicIdPartition
from strandline.metadata.configs.topic_configs import MIN_ISR_KEY
from strandline.metadata.features import ELR_FEATURE
from strandline.metadata.image import (
    BROKER_RESOURCE,
    CLUSTER_DEFAULT,
    RECOVERING,
    TOPIC_RESOURCE,
    Broker,
    Image,
    Partition,
    directory_of,
)
from strandline.sim.laws.partitions.standing import Standing
from strandline.sim.laws.subject import Subject
from strandline.sim.world.machine import Machine
from strandline.wire.messages.cluster.unregister_broker import UnregisterBrokerRequest

Said = tuple[str | None, str | None]


class Eligible:
    """`look` at each change in order. What was so before it is kept here: a node's image moves on."""

    HEARS = ((Received, UnregisterBrokerRequest),)

    def __init__(self, world: Subject, standing: Standing) -> None:
        self.world = world
        self.standing = standing
        self.registered: dict[NodeId, int] = {}  # broker epochs, and
        self.min_isr: dict[str, Said] = {}  # what was set for min ISR, and
        self.was_on = False  # the feature, when metadata was last looked at
        self.given_up: dict[NodeId, int] = {}  # by request, in this broker epoch

    def received(self, machine: Machine, event: Any) -> None:
        """A broker that is unregistered, and registers again before anybody looks, lost nothing by its own word."""
        node = NodeId(event.message.broker_id)
        self.given_up[node] = self.registered.get(node, -1)

    def look(self, name: str, at: TopicIdPartition, image: Image, last: Partition | None, new: Partition) -> None:
        topic = image.topics[at.topic_id]
        if last is not None and new.leader not in (NOBODY, last.leader):
            how = "in sync" if new.leader in last.isr else "eligible" if new.leader in last.elr else "neither"
            self.world.seen[f"elected: {how}"] += 1
            self.world.seen["elected: neither, and nothing lost"] += new.lossless_epoch > last.lossless_epoch
        is_on = image.features.get(ELR_FEATURE, 0) > 0
        min_isr = image.effective_min_isr(topic, new)
        if not (is_on and self.was_on):
            return
        strangers = [node for node in new.elr if node not in image.brokers]
        assert not strangers, f"{name}: {strangers} are eligible, and no longer registered"
        if last is not None and new.partition_epoch == last.partition_epoch + 1:
            remembers_leader(name, last, new)
            is_where_it_was(name, image, last, new)
        stands_alone(name, new, min_isr)
        if len(new.isr) >= min_isr:
            return
        if last is None or new.partition_epoch != last.partition_epoch + 1:
            return  # what was between nobody saw
        if is_unclean(name, last, new):
            return
        if self.min_isr.get(topic.name) != said(image, topic.name):
            return
        for node in (*last.isr, *last.elr):
            if node in new.isr or node in new.elr or node not in new.replicas:
                continue
            broker = image.brokers.get(node)
            is_as_it_was = broker is not None and self.has_lost_nothing(node, broker)
            where = f"{name}: {node} is no longer in ISR {new.isr} or ELR {new.elr}, below min ISR {min_isr}"
            has_withdrawn = any(
                event.replica == node for event in new.withdrawals
            )  # an equal one is not reported again
            has_moved = directory_of(new, node) != directory_of(last, node)
            assert not is_as_it_was or has_moved or has_withdrawn, f"{where}, for no reason"
            assert node in new.last_known_elr, f"{where}, and not remembered: {new.last_known_elr}"

    def has_lost_nothing(self, node: NodeId, broker: Broker) -> bool:
        """It is the incarnation that it was, or the next one after a stop in order."""
        epoch = self.registered.get(node)
        if epoch is None or broker.epoch == epoch:
            return epoch is not None
        return self.given_up.get(node) != epoch and self.standing.is_clean(node, broker, epoch)

    def looked(self, image: Image) -> None:
        """All changes up to this image were looked at."""
        self.was_on = self.was_on and image.features.get(ELR_FEATURE, 0) > 0
        before, self.min_isr = self.min_isr, {topic.name: said(image, topic.name) for topic in image.topics.values()}
        if self.was_on and self.min_isr != before:
            for topic in image.topics.values():
                for index, partition in topic.partitions.items():
                    stands_alone(f"{topic.name}-{index}", partition, image.effective_min_isr(topic, partition))
        self.registered = {node: broker.epoch for node, broker in image.brokers.items()}
        self.was_on = image.features.get(ELR_FEATURE, 0) > 0


def stands_alone(name: str, partition: Partition, min_isr: int) -> None:
    """An ISR of min ISR, for nobody knows what it commits from then on."""
    beside = (*partition.elr, *partition.last_known_elr)
    assert len(partition.isr) < min_isr or not beside, (
        f"{name}: the ISR {partition.isr} has min ISR {min_isr}, and {beside} are eligible, or were"
    )


def is_where_it_was(name: str, image: Image, last: Partition, new: Partition) -> None:
    """Being in sync or eligible is being so with a log: who is in another directory, and whose former one is gone, has
    begun anew (L5)."""
    for node in (*new.isr, *new.elr):
        broker = image.brokers.get(node)
        if node not in last.replicas or broker is None:
            continue
        former = directory_of(last, node)
        assert directory_of(new, node) == former or broker.is_online(former), (
            f"{name}: {node} stays in ISR {new.isr} or ELR {new.elr}, and its directory is another one"
        )


def remembers_leader(name: str, last: Partition, new: Partition) -> None:
    """Nobody leads: then it is known who led last, unless that replica is none any more, or began anew elsewhere."""
    who = last.leader if last.leader != NOBODY else last.last_known_leader
    if new.leader != NOBODY or who == NOBODY or who not in new.replicas:
        return
    has_moved = directory_of(new, who) != directory_of(last, who)
    assert new.last_known_leader == who or has_moved, (
        f"{name}: {who} led last, and {new.last_known_leader} is remembered"
    )


def is_unclean(name: str, last: Partition, new: Partition) -> bool:
    """Has somebody been elected who was neither in sync nor eligible? The same record says so in the loss ledger, or
    that nothing is lost by it."""
    is_entered = new.losses != last.losses or new.lossless_epoch != last.lossless_epoch
    turns = new.leader_recovery_state == RECOVERING != last.leader_recovery_state
    is_stranger = new.leader not in (NOBODY, last.leader) and new.leader not in last.isr + last.elr
    assert is_entered or not (turns or (is_stranger and new.leader_recovery_state == RECOVERING)), (
        f"{name}: {new.leader} was elected uncleanly, and the loss ledger does not say so"
    )
    assert not is_entered or new.leader_recovery_state == RECOVERING, f"{name}: the loss ledger tells of no election"
    return is_entered


def said(image: Image, topic: str) -> Said:
    """What is set for it and for all topics. Even where that says what was so already, it clears the ELR."""
    levels = ((TOPIC_RESOURCE, topic), (BROKER_RESOURCE, CLUSTER_DEFAULT))
    own, all_topics = (image.configs.get(level, {}).get(MIN_ISR_KEY) for level in levels)
    return own, all_topics
