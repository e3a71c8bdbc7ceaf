"""What the cluster itself says that it lost: the ledgers of all brokers, and what elections wrote into the metadata.

With Eligible Leader Replicas every acknowledged record that is gone must be named there, whatever the faults were.
Without them nobody knows: the last member of an ISR leads again as if nothing were missing.
"""

from typing import TYPE_CHECKING

from strandline.base.ids import TopicIdPartition

if TYPE_CHECKING:
    from strandline.sim.simulation import World

Range = tuple[int, int]  # half open; an end of −1 is none


def may_be_asked(world: "World") -> bool:
    """Was the feature on all the time? And what rots is no loss that anybody notices."""
    return world.options.elr and not (world.seen["struck: switch ELR"] or world.seen["struck: bit rot"])


def ranges(world: "World") -> dict[TopicIdPartition, tuple[Range, ...]]:
    found: dict[TopicIdPartition, list[Range]] = {at: [(0, -1)] for at in world.damage.unseen}
    for topic in world.laws.metadata.image.topics.values():
        for index, partition in topic.partitions.items():
            for loss in partition.losses:
                found.setdefault(TopicIdPartition(topic.topic_id, index), []).append((loss.start, loss.end))
    for machine in world.machines.values():
        if machine.node is not None and machine.node.broker is not None:
            for lost in machine.node.broker.replicas.host.ledger.all():
                found.setdefault(lost.at, []).append((lost.event.start, lost.event.end))
    return {at: tuple(rows) for at, rows in found.items()}
