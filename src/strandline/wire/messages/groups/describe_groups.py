"""DescribeGroups (key 15) of the classic protocol.

Two tagged fields are our own, and readers that do not know them skip them: who asks for it is told how far a rebalance
is, and which members went.
"""

from typing import Annotated

from strandline.wire.messages.consumer_groups.progress import GroupProgress
from strandline.wire.schema import (
    Bool,
    Bytes,
    Group,
    Int16,
    Int32,
    Message,
    Nullable,
    NullableString,
    String,
    Tag,
    V,
    message,
)


@message(key=15, kind="request", versions="0-6", flexible="5+")
class DescribeGroupsRequest(Message, frozen=True):
    groups: tuple[String, ...] = ()
    include_authorized_operations: Annotated[Bool, V("3+")] = False
    with_progress: Annotated[Bool, V("5+"), Tag(10_000)] = False


class DescribedGroupMember(Group, frozen=True):
    member_id: String = ""
    group_instance_id: Annotated[NullableString, V("4+")] = None
    client_id: String = ""
    client_host: String = ""
    member_metadata: Bytes = b""
    member_assignment: Bytes = b""


class DescribedGroup(Group, frozen=True):
    error_code: Int16 = 0
    error_message: Annotated[NullableString, V("6+")] = None
    group_id: String = ""
    group_state: String = ""
    protocol_type: String = ""
    protocol_data: String = ""
    members: tuple[DescribedGroupMember, ...] = ()
    authorized_operations: Annotated[Int32, V("3+")] = -(2**31)
    progress: Annotated[GroupProgress | None, V("5+"), Nullable("5+"), Tag(10_000)] = None


@message(key=15, kind="response", versions="0-6", flexible="5+")
class DescribeGroupsResponse(Message, frozen=True):
    throttle_time_ms: Annotated[Int32, V("1+")] = 0
    groups: tuple[DescribedGroup, ...] = ()
