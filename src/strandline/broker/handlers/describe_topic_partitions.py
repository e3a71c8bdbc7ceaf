"""DescribeTopicPartitions (KIP-966): topics page by page, sorted by name, with their eligible leader replicas."""

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.ids import INTERNAL_TOPICS
from strandline.base.operations import ON_TOPIC
from strandline.base.time import Instant
from strandline.broker.handlers.metadata import offline_replicas
from strandline.broker.handlers.port import NodePort
from strandline.metadata.image import Topic
from strandline.metadata.strategy import strategy_of
from strandline.metadata.topic_names import why_illegal
from strandline.wire.messages.topics.describe_topic_partitions import (
    Cursor,
    CursorResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)


def answer(node: NodePort, received: Received, now: Instant) -> list[Effect]:
    del now
    request: DescribeTopicPartitionsRequest = received.message
    names = sorted({t.name for t in request.topics}) or sorted(node.image.topic_ids)
    why = cursor_error(request.cursor, names, named=bool(request.topics))
    if why is not None:
        failed = DescribeTopicPartitionsResponseTopic(
            error_code=why, name=request.cursor.topic_name if request.cursor else ""
        )
        return [Reply(received.to, DescribeTopicPartitionsResponse(topics=(failed,)))]
    first = 0
    if request.cursor is not None:
        names = [n for n in names if n >= request.cursor.topic_name]
        first = request.cursor.partition_index if names and names[0] == request.cursor.topic_name else 0
    most = node.config.integer("max.request.partition.size.limit")
    limit = max(1, min(most, request.response_partition_limit))
    topics, cursor = page(node, names, first, limit)
    assert topics or cursor is None, "each page gets on"
    return [Reply(received.to, DescribeTopicPartitionsResponse(topics=tuple(topics), next_cursor=cursor))]


def cursor_error(cursor: Cursor | None, names: list[str], *, named: bool) -> ErrorCode | None:
    if cursor is None:
        return None
    if cursor.partition_index < 0 or (named and cursor.topic_name not in names):
        return ErrorCode.INVALID_REQUEST
    return None


def page(
    node: NodePort, names: list[str], first: int, limit: int
) -> tuple[list[DescribeTopicPartitionsResponseTopic], CursorResponse | None]:
    """At most `limit` partitions, and where to go on, if anything is left."""
    assert limit > 0
    assert first >= 0
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        if limit == 0:
            return topics, CursorResponse(topic_name=name, partition_index=0)
        topic = node.image.topic_named(name)
        if topic is None:
            error = ErrorCode.INVALID_TOPIC_EXCEPTION if why_illegal(name) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            topics.append(
                DescribeTopicPartitionsResponseTopic(error_code=error, name=name, topic_authorized_operations=ON_TOPIC)
            )
            first = 0  # the cursor's topic is gone; the next one is wanted whole
            continue
        indexes = [i for i in sorted(topic.partitions) if i >= first]
        first = 0
        taken, rest = indexes[:limit], indexes[limit:]
        topics.append(describe(node, topic, taken))
        limit -= len(taken)
        assert limit >= 0
        if rest:
            return topics, CursorResponse(topic_name=name, partition_index=rest[0])
    return topics, None


def describe(node: NodePort, topic: Topic, indexes: list[int]) -> DescribeTopicPartitionsResponseTopic:
    """Eligible replicas are empty arrays, never null: the Java client fails on null. A partition without a leader has
    no error, as in Kafka: it is described all the same."""
    assert indexes == sorted(set(indexes))
    strategy = strategy_of(node.image, topic.name, node.config.explicit).value
    is_managed = node.config.boolean("unclean.recovery.manager.enabled")
    return DescribeTopicPartitionsResponseTopic(
        topic_authorized_operations=ON_TOPIC,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=tuple(
            DescribeTopicPartitionsResponsePartition(
                partition_index=index,
                leader_id=p.leader,
                leader_epoch=p.leader_epoch,
                replica_nodes=p.replicas,
                isr_nodes=p.isr,
                eligible_leader_replicas=p.elr,
                last_known_elr=p.last_known_elr,
                offline_replicas=offline_replicas(node.image, p),
                effective_min_isr=node.image.effective_min_isr(topic, p),
                last_known_leader=p.last_known_leader,
                leader_recovery_state=p.leader_recovery_state,
                partition_epoch=p.partition_epoch,
                adding_replicas=p.adding_replicas,
                removing_replicas=p.removing_replicas,
                recovery_strategy=strategy,
                is_recovery_managed=is_managed,
            )
            for index in indexes
            for p in (topic.partitions[index],)
        ),
    )
