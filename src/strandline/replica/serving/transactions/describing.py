"""DescribeProducers: the producers that a partition's leader knows, and their open transactions (KIP-664)."""

from strandline.base.effects import Effect, Reply, ReplyTo
from strandline.base.errors import ErrorCode, message_of
from strandline.base.time import Instant
from strandline.replica.hosting.host import Host
from strandline.replica.hosting.leader import Leader
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
    leader = None if hosted is None else hosted.role
    if type(leader) is not Leader:
        error = host.why_not_leader(topic, None, index)
        return PartitionResponse(partition_index=index, error_code=error, error_message=message_of(error))
    opened = leader.log.transactions.open
    rows = tuple(
        ProducerState(
            producer_id=producer_id,
            producer_epoch=producer.epoch,
            last_sequence=producer.batches[-1].last_sequence if producer.batches else -1,
            last_timestamp=producer.batches[-1].timestamp if producer.batches else producer.seen,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=opened.get(producer_id, -1),
        )
        for producer_id, producer in sorted(leader.log.producers.known.items())
    )
    return PartitionResponse(partition_index=index, error_code=ErrorCode.NONE, active_producers=rows)
