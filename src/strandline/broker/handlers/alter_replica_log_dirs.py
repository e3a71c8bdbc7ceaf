"""AlterReplicaLogDirs: this broker's replicas move to other log directories of its own (KIP-113)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strandline.base.effects import Effect, Received, Reply
from strandline.base.ids import TopicPartition
from strandline.base.time import Instant
from strandline.wire.messages.cluster.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)

if TYPE_CHECKING:
    from strandline.broker.node import Node


def answer(node: Node, received: Received, now: Instant) -> list[Effect]:
    """A move has begun when it is answered; DescribeLogDirs tells how far it is."""
    assert node.broker is not None, "a node without the broker role has no broker listener"
    request: AlterReplicaLogDirsRequest = received.message
    futures = node.broker.replicas.futures
    rows: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for wanted in request.dirs:
        for topic in wanted.topics:
            for index in topic.partitions:
                error = futures.alter(TopicPartition(topic.name, index), wanted.path, now)
                row = AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error)
                rows.setdefault(topic.name, []).append(row)
    results = tuple(
        AlterReplicaLogDirTopicResult(topic_name=name, partitions=tuple(found)) for name, found in rows.items()
    )
    return [Reply(received.to, AlterReplicaLogDirsResponse(results=results))]
