"""IncrementalAlterConfigs (key 44): set, delete, append to or subtract from single entries (KIP-339)."""

from strandline.wire.schema import Bool, Group, Int8, Int16, Int32, Message, NullableString, String, message


class AlterableConfig(Group, frozen=True):
    name: String = ""
    config_operation: Int8 = 0
    value: NullableString = None


class AlterConfigsResource(Group, frozen=True):
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: tuple[AlterableConfig, ...] = ()


@message(key=44, kind="request", versions="0-1", flexible="1+")
class IncrementalAlterConfigsRequest(Message, frozen=True):
    resources: tuple[AlterConfigsResource, ...] = ()
    validate_only: Bool = False


class AlterConfigsResourceResponse(Group, frozen=True):
    error_code: Int16 = 0
    error_message: NullableString = None
    resource_type: Int8 = 0
    resource_name: String = ""


@message(key=44, kind="response", versions="0-1", flexible="1+")
class IncrementalAlterConfigsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    responses: tuple[AlterConfigsResourceResponse, ...] = ()
