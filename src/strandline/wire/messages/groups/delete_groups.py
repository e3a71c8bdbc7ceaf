"""DeleteGroups (key 42)."""

from typing import Annotated

from strandline.wire.schema import Group, Int16, Int32, Message, NullableString, String, V, message


@message(key=42, kind="request", versions="0-3", flexible="2+")
class DeleteGroupsRequest(Message, frozen=True):
    groups_names: tuple[String, ...] = ()


class DeletableGroupResult(Group, frozen=True):
    group_id: String = ""
    error_code: Int16 = 0
    error_message: Annotated[NullableString, V("3+")] = None


@message(key=42, kind="response", versions="0-3", flexible="2+")
class DeleteGroupsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    results: tuple[DeletableGroupResult, ...] = ()
