"""Replicas of new partitions: the ones that a request names, checked, and the records that create partitions.

A new partition's ISR is its active replicas, and its leader is the first of them; a partition none of whose replicas is
active is refused, because it would be born without a leader.
"""

from collections.abc import Sequence

from strandline.base.ids import LeaderEpoch, NodeId, PartitionEpoch, TopicIdPartition, Uuid
from strandline.controller.basis import Basis
from strandline.controller.topics.placement import Place
from strandline.metadata.image import Partition, partition_record
from strandline.metadata.records import PartitionRecord

Replicas = tuple[NodeId, ...]
MANUAL = "The manual partition assignment includes"


def places(basis: Basis) -> list[Place]:
    """Brokers all of whose log directories are cordoned get no new replicas (KIP-1066)."""
    return [Place(b.node_id, b.rack, b.is_active) for b in basis.image.brokers.values() if b.takes_replicas]


def why_not_registered(replicas: Sequence[int], basis: Basis) -> str | None:
    """Why are these no replicas at all?"""
    if not replicas:
        return f"{MANUAL} an empty replica list."
    for node in sorted(replicas):
        if node not in basis.image.brokers:
            return f"{MANUAL} broker {node}, but no such broker is registered."
        if not basis.image.brokers[NodeId(node)].takes_replicas:
            return f"{MANUAL} broker {node}, but all its log directories are cordoned."
        if list(replicas).count(node) > 1:
            return f"{MANUAL} the broker {node} more than once."
    return None


def why_not_assigned(replicas: Sequence[int], factor: int | None, partition: int, basis: Basis) -> str | None:
    """Why may a new partition not have these replicas? `factor` is what the topic's other partitions have."""
    why = why_not_registered(replicas, basis)
    if why is not None:
        return why
    if factor is not None and len(replicas) != factor:
        return (
            f"{MANUAL} a partition with {len(replicas)} replica(s), but this is not consistent with previous "
            f"partitions, which have {factor} replica(s)."
        )
    if not any(basis.image.is_active(NodeId(node)) for node in replicas):
        return (
            f"All brokers specified in the manual partition assignment for partition {partition} "
            "are fenced or in controlled shutdown."
        )
    return None


def new_partitions(topic_id: Uuid, first: int, assignments: Sequence[Replicas], basis: Basis) -> list[PartitionRecord]:
    """The records of partitions `first`, `first + 1`, …"""
    assert first >= 0
    assert assignments
    return [
        partition_record(TopicIdPartition(topic_id, index), new_partition(replicas, basis))
        for index, replicas in enumerate(assignments, first)
    ]


def new_partition(replicas: Replicas, basis: Basis) -> Partition:
    assert len(set(replicas)) == len(replicas)
    isr = tuple(node for node in replicas if basis.image.is_active(node))
    assert isr, "a partition must not be born without a leader"
    return Partition(
        replicas=replicas,
        directories=basis.directories(replicas),
        isr=isr,
        leader=isr[0],
        leader_epoch=LeaderEpoch(0),
        partition_epoch=PartitionEpoch(0),
    )
