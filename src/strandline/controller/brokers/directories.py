"""AssignReplicasToDirs: a broker says in which of its log directories a replica lies (KIP-858).

A replica in a directory that the broker has not registered, or has called offline, is offline: it leaves the ISR and
leads no longer, as if the directory had failed after it was known.
"""

from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId, TopicIdPartition, Uuid
from strandline.controller.basis import Basis, Plan
from strandline.controller.partition import Wish, plan_change
from strandline.metadata.image import Partition, directory_of, merged
from strandline.metadata.records import PartitionChangeRecord
from strandline.wire.messages.brokers.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryDataResponse,
    PartitionDataResponse,
    TopicDataResponse,
)

E = ErrorCode


def plan_assign_replicas(request: AssignReplicasToDirsRequest, basis: Basis) -> Plan:
    why = basis.why_stale(request.broker_id, request.broker_epoch)
    if why is not None:
        return Plan((), AssignReplicasToDirsResponse(error_code=why))
    node = NodeId(request.broker_id)
    records: list[PartitionChangeRecord] = []
    # A request may name a replica twice: the later row is judged by what the earlier made of the partition.
    ahead: dict[TopicIdPartition, Partition] = {}
    directories: list[DirectoryDataResponse] = []
    for directory in request.directories:
        topics: list[TopicDataResponse] = []
        for topic in directory.topics:
            rows: list[PartitionDataResponse] = []
            for asked in topic.partitions:
                at = TopicIdPartition(topic.topic_id, asked.partition_index)
                known = ahead.get(at) or basis.image.partition(at)
                error = why_not_assigned(at, known, node, basis)
                rows.append(PartitionDataResponse(partition_index=asked.partition_index, error_code=error))
                if error is not E.NONE:
                    continue
                assert known is not None
                change = plan_located(at, known, node, directory.id, basis)
                if change is not None:
                    records.append(change)
                    ahead[at] = merged(known, change)
            topics.append(TopicDataResponse(topic_id=topic.topic_id, partitions=tuple(rows)))
        directories.append(DirectoryDataResponse(id=directory.id, topics=tuple(topics)))
    assert len(directories) == len(request.directories)
    return Plan(tuple(records), AssignReplicasToDirsResponse(directories=tuple(directories)))


def why_not_assigned(at: TopicIdPartition, known: Partition | None, node: NodeId, basis: Basis) -> ErrorCode:
    if at.topic_id not in basis.image.topics:
        return E.UNKNOWN_TOPIC_ID
    if known is None:
        return E.UNKNOWN_TOPIC_OR_PARTITION
    return E.NONE if node in known.replicas else E.NOT_LEADER_OR_FOLLOWER


def plan_located(
    at: TopicIdPartition, old: Partition, node: NodeId, directory: Uuid, basis: Basis
) -> PartitionChangeRecord | None:
    assert node in old.replicas
    located = tuple(
        directory if replica == node else known for replica, known in zip(old.replicas, old.directories, strict=True)
    )
    topic, broker, former = basis.image.topics[at.topic_id], basis.image.brokers[node], directory_of(old, node)
    isr = tuple(member for member in old.isr if member != node)
    rules = basis.rules(topic, leaving=node)
    # guard: begins-in-an-empty-directory
    if former != directory and not broker.is_online(former) and rules.is_elr_enabled:
        # No log was moved: the former directory is gone, and in another one the replica begins empty. Being eligible
        # is being so with a directory (L5). Without ELR the last member of an ISR stays, whatever it has lost.
        return plan_change(at, old, Wish(isr=isr, located=located, lost_tail=(node,)), rules)
    if broker.is_online(directory):
        return plan_change(at, old, Wish(located=located), basis.rules(topic))  # guard: moves-between-directories
    return plan_change(at, old, Wish(isr=isr, located=located), rules)
