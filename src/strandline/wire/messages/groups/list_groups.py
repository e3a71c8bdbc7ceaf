"""ListGroups (key 16): the groups that this broker coordinates."""

from typing import Annotated

from strandline.wire.schema import Group, Int16, Int32, Message, String, V, message


@message(key=16, kind="request", versions="0-5", flexible="3+")
class ListGroupsRequest(Message, frozen=True):
    states_filter: Annotated[tuple[String, ...], V("4+")] = ()
    types_filter: Annotated[tuple[String, ...], V("5+")] = ()


class ListedGroup(Group, frozen=True):
    group_id: String = ""
    protocol_type: String = ""
    group_state: Annotated[String, V("4+")] = ""
    group_type: Annotated[String, V("5+")] = ""


@message(key=16, kind="response", versions="0-5", flexible="3+")
class ListGroupsResponse(Message, frozen=True):
    throttle_time_ms: Annotated[Int32, V("1+")] = 0
    error_code: Int16 = 0
    groups: tuple[ListedGroup, ...] = ()
