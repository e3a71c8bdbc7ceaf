"""JoinGroup (key 11) of the classic protocol."""

from typing import Annotated

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
    V,
    message,
)


class JoinGroupRequestProtocol(Group, frozen=True):
    name: String = ""
    metadata: Bytes = b""


@message(key=11, kind="request", versions="0-9", flexible="6+")
class JoinGroupRequest(Message, frozen=True):
    group_id: String = ""
    session_timeout_ms: Int32 = 0
    rebalance_timeout_ms: Annotated[Int32, V("1+")] = -1
    member_id: String = ""
    group_instance_id: Annotated[NullableString, V("5+")] = None
    protocol_type: String = ""
    protocols: tuple[JoinGroupRequestProtocol, ...] = ()
    reason: Annotated[NullableString, V("8+")] = None


class JoinGroupResponseMember(Group, frozen=True):
    member_id: String = ""
    group_instance_id: Annotated[NullableString, V("5+")] = None
    metadata: Bytes = b""


@message(key=11, kind="response", versions="0-9", flexible="6+")
class JoinGroupResponse(Message, frozen=True):
    throttle_time_ms: Annotated[Int32, V("2+")] = 0
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: Annotated[NullableString, V("7+")] = None
    protocol_name: Annotated[NullableString, Nullable("7+")] = ""
    leader: String = ""
    skip_assignment: Annotated[Bool, V("9+")] = False
    member_id: String = ""
    members: tuple[JoinGroupResponseMember, ...] = ()
