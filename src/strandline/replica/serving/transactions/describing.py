"""DescribeProducers: the producers that a replica knows, and their open transactions (KIP-664).

Clients ask the leader, unless an operator names a broker: so a follower answers too.
"""

from strandline.base.effects import Effect, Reply, ReplyTo
from strandline.base.errors import ErrorCode, message_of
from strandline.base.time import Instant
from strandline.replica.hosting.host import Host
from strandline.wire.messages.transactions.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def describe_producers(host: Host, to: ReplyTo, request: DescribeProducersRequest, now: Instant) -> list[Effect]:
    del now
    topics = []
    for topic in request.topics:
        rows = tuple(described(host, topic.name, index) for index in topic.partition_indexes)
        topics.append(TopicResponse(name=topic.name, partitions=rows))
    return [Reply(to, DescribeProducersResponse(topics=tuple(topics)))]


def described(host: Host, topic: str, index: int) -> PartitionResponse:
    hosted = host.partitions.named(topic, index)
    if hosted is None or hosted.role is None:
        error = host.why_not_leader(topic, None, index)
        return PartitionResponse(partition_index=index, error_code=error, error_message=message_of(error))
    opened = hosted.log.transactions.open
    rows = tuple(
        ProducerState(
            producer_id=producer_id,
            producer_epoch=producer.epoch,
            last_sequence=producer.batches[-1].last_sequence if producer.batches else -1,
            last_timestamp=producer.batches[-1].timestamp if producer.batches else producer.seen,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=opened.get(producer_id, -1),
        )
        for producer_id, producer in sorted(hosted.log.producers.known.items())
    )
    return PartitionResponse(partition_index=index, error_code=ErrorCode.NONE, active_producers=rows)
