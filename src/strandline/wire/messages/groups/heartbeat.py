"""Heartbeat (key 12) of the classic protocol."""

from typing import Annotated

from strandline.wire.schema import Int16, Int32, Message, NullableString, String, V, message


@message(key=12, kind="request", versions="0-4", flexible="4+")
class HeartbeatRequest(Message, frozen=True):
    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: Annotated[NullableString, V("3+")] = None


@message(key=12, kind="response", versions="0-4", flexible="4+")
class HeartbeatResponse(Message, frozen=True):
    throttle_time_ms: Annotated[Int32, V("1+")] = 0
    error_code: Int16 = 0
