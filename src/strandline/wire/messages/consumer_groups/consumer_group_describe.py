"""ConsumerGroupDescribe (key 69, KIP-848): groups of the consumer protocol, with what each member has and will have.

Two tagged fields are our own, as in DescribeGroups: who asks for it is told how far a rebalance is, and which members
went.
"""

from typing import Annotated

from strandline.base.ids import ZERO_UUID
from strandline.wire.messages.consumer_groups.progress import GroupProgress
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
    V,
    message,
)


@message(key=69, kind="request", versions="0-1", flexible="0+")
class ConsumerGroupDescribeRequest(Message, frozen=True):
    group_ids: tuple[String, ...] = ()
    include_authorized_operations: Bool = False
    with_progress: Annotated[Bool, V("0+"), Tag(10_000)] = False


class TopicPartitions(Group, frozen=True):
    topic_id: UuidField = ZERO_UUID
    topic_name: String = ""
    partitions: tuple[Int32, ...] = ()


class Assignment(Group, frozen=True):
    topic_partitions: tuple[TopicPartitions, ...] = ()


NOTHING = Assignment()


class Member(Group, frozen=True):
    member_id: String = ""
    instance_id: NullableString = None
    rack_id: NullableString = None
    member_epoch: Int32 = 0
    client_id: String = ""
    client_host: String = ""
    subscribed_topic_names: tuple[String, ...] = ()
    subscribed_topic_regex: NullableString = None
    assignment: Assignment = NOTHING
    target_assignment: Assignment = NOTHING
    member_type: Annotated[Int8, V("1+")] = -1  # 0: of the classic protocol, 1: of the consumer protocol


class DescribedGroup(Group, frozen=True):
    error_code: Int16 = 0
    error_message: NullableString = None
    group_id: String = ""
    group_state: String = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    assignor_name: String = ""
    members: tuple[Member, ...] = ()
    authorized_operations: Int32 = -(2**31)
    progress: Annotated[GroupProgress | None, V("0+"), Nullable("0+"), Tag(10_000)] = None


@message(key=69, kind="response", versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    groups: tuple[DescribedGroup, ...] = ()
