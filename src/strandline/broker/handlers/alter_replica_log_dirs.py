"""AlterReplicaLogDirs: this broker's replicas move to other log directories of its own (KIP-113)."""

from strandline.base.effects import Effect, Received, Reply
from strandline.base.ids import TopicPartition
from strandline.base.time import Instant
from strandline.broker.handlers.port import NodePort, broker_of
from strandline.wire.messages.cluster.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def answer(node: NodePort, received: Received, now: Instant) -> list[Effect]:
    """A move has begun when it is answered; DescribeLogDirs shows how far it is."""
    broker = broker_of(node)
    request: AlterReplicaLogDirsRequest = received.message
    futures = broker.replicas.futures
    rows: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for wanted in request.dirs:
        for topic in wanted.topics:
            for index in topic.partitions:
                error = futures.alter(TopicPartition(topic.name, index), wanted.path, now)
                row = AlterReplicaLogDirPartitionResult(partition_index=index, error_code=error)
                rows.setdefault(topic.name, []).append(row)
    asked = sum(len(topic.partitions) for wanted in request.dirs for topic in wanted.topics)
    assert sum(map(len, rows.values())) == asked, "each replica has its row"
    results = tuple(
        AlterReplicaLogDirTopicResult(topic_name=name, partitions=tuple(found)) for name, found in rows.items()
    )
    return [Reply(received.to, AlterReplicaLogDirsResponse(results=results))]
