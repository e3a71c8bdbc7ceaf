"""The records of consumer groups in `__consumer_offsets` (KIP-848), by the version that their keys are prefixed with.

  3   the group: its epoch, and a hash of the topics that it is subscribed to (KIP-1101)
  4   what Kafka before 4.1 wrote instead of the hash; it is only deleted
  5   a member: who it is, and what it is subscribed to
  6   the epoch of the target assignment
  7   what the target assignment gives a member
  8   what a member has, and what it must give back
  16  a regular expression of a subscription, with the topics that match it

A null value removes what the key is about. All values are of version 0.
"""

from typing import Annotated

from strandline.base.ids import ZERO_UUID
from strandline.wire.schema import (
    Bytes,
    Group,
    Int8,
    Int32,
    Int64,
    Message,
    Nullable,
    NullableString,
    String,
    Tag,
    UuidField,
    V,
    message,
)


@message(key=3, versions="3")
class ConsumerGroupMetadataKey(Message, frozen=True):
    group: String = ""


@message(key=3, versions="0", flexible="0+")
class ConsumerGroupMetadataValue(Message, frozen=True):
    epoch: Int32 = 0
    metadata_hash: Annotated[Int64, V("0+"), Tag(0)] = 0


@message(key=4, versions="4")
class ConsumerGroupPartitionMetadataKey(Message, frozen=True):
    group: String = ""


class RacksOfPartition(Group, frozen=True):
    partition: Int32 = 0
    racks: tuple[String, ...] = ()


class TopicMetadata(Group, frozen=True):
    topic_id: UuidField = ZERO_UUID
    topic_name: String = ""
    num_partitions: Int32 = 0
    partition_metadata: tuple[RacksOfPartition, ...] = ()


@message(key=4, versions="0", flexible="0+")
class ConsumerGroupPartitionMetadataValue(Message, frozen=True):
    topics: tuple[TopicMetadata, ...] = ()


@message(key=5, versions="5")
class ConsumerGroupMemberMetadataKey(Message, frozen=True):
    group: String = ""
    member_id: String = ""


class ClassicProtocol(Group, frozen=True):
    name: String = ""
    metadata: Bytes = b""


class ClassicMemberMetadata(Group, frozen=True):
    """Of a member that speaks the classic protocol."""

    session_timeout_ms: Int32 = 0
    supported_protocols: tuple[ClassicProtocol, ...] = ()


@message(key=5, versions="0", flexible="0+")
class ConsumerGroupMemberMetadataValue(Message, frozen=True):
    """`classic_member_metadata`: null for a member that speaks the consumer protocol. Kafka takes a record without the
    field for one with an empty value, that of a classic member, so null is written."""

    instance_id: NullableString = None
    rack_id: NullableString = None
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: tuple[String, ...] = ()
    subscribed_topic_regex: NullableString = None
    rebalance_timeout_ms: Int32 = -1
    server_assignor: NullableString = None
    classic_member_metadata: Annotated[ClassicMemberMetadata | None, V("0+"), Nullable("0+"), Tag(0)] = (
        ClassicMemberMetadata()
    )


@message(key=6, versions="6")
class ConsumerGroupTargetAssignmentMetadataKey(Message, frozen=True):
    group: String = ""


@message(key=6, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue(Message, frozen=True):
    assignment_epoch: Int32 = 0
    assignment_timestamp: Annotated[Int64, V("0+"), Tag(0)] = 0  # KIP-1263


@message(key=7, versions="7")
class ConsumerGroupTargetAssignmentMemberKey(Message, frozen=True):
    group: String = ""
    member_id: String = ""


class TargetTopicPartition(Group, frozen=True):
    topic_id: UuidField = ZERO_UUID
    partitions: tuple[Int32, ...] = ()


@message(key=7, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue(Message, frozen=True):
    topic_partitions: tuple[TargetTopicPartition, ...] = ()


@message(key=8, versions="8")
class ConsumerGroupCurrentMemberAssignmentKey(Message, frozen=True):
    group: String = ""
    member_id: String = ""


class CurrentTopicPartitions(Group, frozen=True):
    topic_id: UuidField = ZERO_UUID
    partitions: tuple[Int32, ...] = ()
    # The epoch in which the member got each of them (KIP-1251); null: not known.
    assignment_epochs: Annotated[tuple[Int32, ...] | None, V("0+"), Nullable("0+"), Tag(0)] = None


@message(key=8, versions="0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue(Message, frozen=True):
    member_epoch: Int32 = 0
    previous_member_epoch: Int32 = 0
    state: Int8 = 0
    assigned_partitions: tuple[CurrentTopicPartitions, ...] = ()
    partitions_pending_revocation: tuple[CurrentTopicPartitions, ...] = ()


@message(key=16, versions="16")
class ConsumerGroupRegularExpressionKey(Message, frozen=True):
    group: String = ""
    regular_expression: String = ""


@message(key=16, versions="0", flexible="0+")
class ConsumerGroupRegularExpressionValue(Message, frozen=True):
    topics: tuple[String, ...] = ()
    version: Int64 = 0  # of the metadata by which it was resolved
    timestamp: Int64 = 0


ConsumerGroupKey = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)
ConsumerGroupValue = (
    ConsumerGroupMetadataValue
    | ConsumerGroupPartitionMetadataValue
    | ConsumerGroupMemberMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupTargetAssignmentMemberValue
    | ConsumerGroupCurrentMemberAssignmentValue
    | ConsumerGroupRegularExpressionValue
)

# Each key with its value. A key is written, and read, in the one version that it has.
CONSUMER_GROUP_RECORDS: dict[type[ConsumerGroupKey], type[ConsumerGroupValue]] = {
    ConsumerGroupMetadataKey: ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey: ConsumerGroupPartitionMetadataValue,
    ConsumerGroupMemberMetadataKey: ConsumerGroupMemberMetadataValue,
    ConsumerGroupTargetAssignmentMetadataKey: ConsumerGroupTargetAssignmentMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey: ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupCurrentMemberAssignmentKey: ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupRegularExpressionKey: ConsumerGroupRegularExpressionValue,
}
CONSUMER_GROUP_VALUE_VERSION = 0
