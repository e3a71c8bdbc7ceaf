"""ListConfigResources (key 74): which resources have configurations (KIP-1142). Version 0 was
ListClientMetricsResources, and knows only client metrics."""

from typing import Annotated

from strandline.wire.schema import Group, Int8, Int16, Int32, Message, String, V, message


@message(key=74, kind="request", versions="0-1", flexible="0+")
class ListConfigResourcesRequest(Message, frozen=True):
    resource_types: Annotated[tuple[Int8, ...], V("1+")] = ()  # empty: all


class ConfigResource(Group, frozen=True):
    resource_name: String = ""
    resource_type: Annotated[Int8, V("1+")] = 16


@message(key=74, kind="response", versions="0-1", flexible="0+")
class ListConfigResourcesResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: tuple[ConfigResource, ...] = ()
