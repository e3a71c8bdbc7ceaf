"""DescribeProducers (key 61): the producers that a partition's leader knows, and their open transactions (KIP-664)."""

from strandline.wire.schema import Group, Int16, Int32, Int64, Message, NullableString, String, message


class TopicRequest(Group, frozen=True):
    name: String = ""
    partition_indexes: tuple[Int32, ...] = ()


@message(key=61, kind="request", versions="0", flexible="0+")
class DescribeProducersRequest(Message, frozen=True):
    topics: tuple[TopicRequest, ...] = ()


class ProducerState(Group, frozen=True):
    """`current_txn_start_offset`: -1 if no transaction is open."""

    producer_id: Int64 = 0
    producer_epoch: Int32 = 0
    last_sequence: Int32 = -1
    last_timestamp: Int64 = -1
    coordinator_epoch: Int32 = 0
    current_txn_start_offset: Int64 = -1


class PartitionResponse(Group, frozen=True):
    partition_index: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = None
    active_producers: tuple[ProducerState, ...] = ()


class TopicResponse(Group, frozen=True):
    name: String = ""
    partitions: tuple[PartitionResponse, ...] = ()


@message(key=61, kind="response", versions="0", flexible="0+")
class DescribeProducersResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    topics: tuple[TopicResponse, ...] = ()
