"""LeaveGroup (key 13): one member until version 2, then several (KIP-345)."""

from typing import Annotated

from strandline.wire.schema import Group, Int16, Int32, Message, NullableString, String, V, message


class MemberIdentity(Group, frozen=True):
    member_id: String = ""
    group_instance_id: NullableString = None
    reason: Annotated[NullableString, V("5+")] = None


@message(key=13, kind="request", versions="0-5", flexible="4+")
class LeaveGroupRequest(Message, frozen=True):
    group_id: String = ""
    member_id: Annotated[String, V("0-2")] = ""
    members: Annotated[tuple[MemberIdentity, ...], V("3+")] = ()


class MemberResponse(Group, frozen=True):
    member_id: String = ""
    group_instance_id: NullableString = None
    error_code: Int16 = 0


@message(key=13, kind="response", versions="0-5", flexible="4+")
class LeaveGroupResponse(Message, frozen=True):
    throttle_time_ms: Annotated[Int32, V("1+")] = 0
    error_code: Int16 = 0
    members: Annotated[tuple[MemberResponse, ...], V("3+")] = ()
