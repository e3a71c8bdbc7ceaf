"""ConsumerGroupHeartbeat (key 68, KIP-848): a member joins, stays, reports what it owns, learns what it is assigned,
and leaves. A field that is null did not change since the member's last heartbeat."""

from typing import Annotated

from strandline.base.ids import ZERO_UUID
from strandline.wire.schema import Group, Int16, Int32, Message, Nullable, NullableString, String, UuidField, V, message


class TopicPartitions(Group, frozen=True):
    topic_id: UuidField = ZERO_UUID
    partitions: tuple[Int32, ...] = ()


@message(key=68, kind="request", versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatRequest(Message, frozen=True):
    """`member_epoch`: 0 joins, -1 leaves, -2 says that a static member will be back."""

    group_id: String = ""
    member_id: String = ""
    member_epoch: Int32 = 0
    instance_id: NullableString = None
    rack_id: NullableString = None
    rebalance_timeout_ms: Int32 = -1
    subscribed_topic_names: Annotated[tuple[String, ...] | None, Nullable()] = None
    subscribed_topic_regex: Annotated[NullableString, V("1+")] = None
    server_assignor: NullableString = None
    topic_partitions: Annotated[tuple[TopicPartitions, ...] | None, Nullable()] = None


class TopicPartitionsResponse(Group, frozen=True):
    topic_id: UuidField = ZERO_UUID
    partitions: tuple[Int32, ...] = ()


class Assignment(Group, frozen=True):
    topic_partitions: tuple[TopicPartitionsResponse, ...] = ()


@message(key=68, kind="response", versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = None
    member_id: NullableString = None
    member_epoch: Int32 = 0
    heartbeat_interval_ms: Int32 = 0
    assignment: Annotated[Assignment | None, Nullable()] = None
