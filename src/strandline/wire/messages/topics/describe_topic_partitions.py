"""DescribeTopicPartitions (key 75): topics page by page, with their eligible leaders (KIP-966).

Fields of our own lie in tags from 10 000: readers that do not know them skip them.
"""

from typing import Annotated

from strandline.base.ids import ZERO_UUID
from strandline.wire.schema import (
    Bool,
    Group,
    Int8,
    Int16,
    Int32,
    Message,
    Nullable,
    NullableString,
    String,
    Tag,
    UuidField,
    message,
)


class TopicRequest(Group, frozen=True):
    name: String = ""


class Cursor(Group, frozen=True):
    topic_name: String = ""
    partition_index: Int32 = 0


@message(key=75, kind="request", versions="0", flexible="0+")
class DescribeTopicPartitionsRequest(Message, frozen=True):
    topics: tuple[TopicRequest, ...] = ()
    response_partition_limit: Int32 = 2000
    cursor: Annotated[Cursor | None, Nullable()] = None


class DescribeTopicPartitionsResponsePartition(Group, frozen=True):
    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = -1
    replica_nodes: tuple[Int32, ...] = ()
    isr_nodes: tuple[Int32, ...] = ()
    eligible_leader_replicas: Annotated[tuple[Int32, ...] | None, Nullable()] = None
    last_known_elr: Annotated[tuple[Int32, ...] | None, Nullable()] = None
    offline_replicas: tuple[Int32, ...] = ()
    effective_min_isr: Annotated[Int32, Tag(10_000)] = -1
    last_known_leader: Annotated[Int32, Tag(10_001)] = -1  # who led last, while nobody does
    leader_recovery_state: Annotated[Int8, Tag(10_002)] = 0  # 1: the leader was elected uncleanly, and recovers
    partition_epoch: Annotated[Int32, Tag(10_003)] = -1
    adding_replicas: Annotated[tuple[Int32, ...], Tag(10_004)] = ()
    removing_replicas: Annotated[tuple[Int32, ...], Tag(10_005)] = ()
    recovery_strategy: Annotated[String, Tag(10_006)] = ""  # None, Balanced or Aggressive, as it counts for the topic
    is_recovery_managed: Annotated[Bool, Tag(10_007)] = False  # as the file of the node that answers has it


class DescribeTopicPartitionsResponseTopic(Group, frozen=True):
    error_code: Int16 = 0
    name: NullableString = ""
    topic_id: UuidField = ZERO_UUID
    is_internal: Bool = False
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = ()
    topic_authorized_operations: Int32 = -(2**31)


class CursorResponse(Group, frozen=True):
    topic_name: String = ""
    partition_index: Int32 = 0


@message(key=75, kind="response", versions="0", flexible="0+")
class DescribeTopicPartitionsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = ()
    next_cursor: Annotated[CursorResponse | None, Nullable()] = None
