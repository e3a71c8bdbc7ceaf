"""FindCoordinator (key 10): one key until version 3, then several (KIP-699)."""

from typing import Annotated

from strandline.wire.schema import Group, Int8, Int16, Int32, Message, NullableString, String, V, message

GROUP, TRANSACTION = 0, 1  # types of keys: what a coordinator is asked for


@message(key=10, kind="request", versions="0-6", flexible="3+")
class FindCoordinatorRequest(Message, frozen=True):
    key: Annotated[String, V("0-3")] = ""  # type: ignore[assignment, misc]  # a field of Kafka's, see Message.key
    key_type: Annotated[Int8, V("1+")] = 0
    coordinator_keys: Annotated[tuple[String, ...], V("4+")] = ()


class Coordinator(Group, frozen=True):
    key: String = ""
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    error_code: Int16 = 0
    error_message: NullableString = None


@message(key=10, kind="response", versions="0-6", flexible="3+")
class FindCoordinatorResponse(Message, frozen=True):
    throttle_time_ms: Annotated[Int32, V("1+")] = 0
    error_code: Annotated[Int16, V("0-3")] = 0
    error_message: Annotated[NullableString, V("1-3")] = None
    node_id: Annotated[Int32, V("0-3")] = 0
    host: Annotated[String, V("0-3")] = ""
    port: Annotated[Int32, V("0-3")] = 0
    coordinators: Annotated[tuple[Coordinator, ...], V("4+")] = ()
