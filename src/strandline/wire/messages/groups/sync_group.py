"""SyncGroup (key 14): the leader hands in the assignments, each member gets its own."""

from typing import Annotated

from strandline.wire.schema import Bytes, Group, Int16, Int32, Message, NullableString, String, V, message


class SyncGroupRequestAssignment(Group, frozen=True):
    member_id: String = ""
    assignment: Bytes = b""


@message(key=14, kind="request", versions="0-5", flexible="4+")
class SyncGroupRequest(Message, frozen=True):
    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: Annotated[NullableString, V("3+")] = None
    protocol_type: Annotated[NullableString, V("5+")] = None
    protocol_name: Annotated[NullableString, V("5+")] = None
    assignments: tuple[SyncGroupRequestAssignment, ...] = ()


@message(key=14, kind="response", versions="0-5", flexible="4+")
class SyncGroupResponse(Message, frozen=True):
    throttle_time_ms: Annotated[Int32, V("1+")] = 0
    error_code: Int16 = 0
    protocol_type: Annotated[NullableString, V("5+")] = None
    protocol_name: Annotated[NullableString, V("5+")] = None
    assignment: Bytes = b""
