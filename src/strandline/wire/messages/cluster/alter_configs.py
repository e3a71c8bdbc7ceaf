"""AlterConfigs (key 33): replace all settings of a resource; what is not named goes back to its default.

Older tools send it; `incremental_alter_configs` is what new ones use (KIP-339).
"""

from strandline.wire.schema import Bool, Group, Int8, Int16, Int32, Message, NullableString, String, message


class AlterableConfig(Group, frozen=True):
    name: String = ""
    value: NullableString = None


class AlterConfigsResource(Group, frozen=True):
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: tuple[AlterableConfig, ...] = ()


@message(key=33, kind="request", versions="0-2", flexible="2+")
class AlterConfigsRequest(Message, frozen=True):
    resources: tuple[AlterConfigsResource, ...] = ()
    validate_only: Bool = False


class AlterConfigsResourceResponse(Group, frozen=True):
    error_code: Int16 = 0
    error_message: NullableString = None
    resource_type: Int8 = 0
    resource_name: String = ""


@message(key=33, kind="response", versions="0-2", flexible="2+")
class AlterConfigsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    responses: tuple[AlterConfigsResourceResponse, ...] = ()
