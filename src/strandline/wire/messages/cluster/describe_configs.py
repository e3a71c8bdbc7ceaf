"""DescribeConfigs (key 32); null keys ask for all."""

from typing import Annotated

from strandline.wire.schema import (
    Bool,
    Group,
    Int8,
    Int16,
    Int32,
    Message,
    Nullable,
    NullableString,
    String,
    V,
    message,
)


class DescribeConfigsResource(Group, frozen=True):
    resource_type: Int8 = 0
    resource_name: String = ""
    configuration_keys: Annotated[tuple[String, ...] | None, Nullable()] = None


@message(key=32, kind="request", versions="1-4", flexible="4+")
class DescribeConfigsRequest(Message, frozen=True):
    resources: tuple[DescribeConfigsResource, ...] = ()
    include_synonyms: Bool = False
    include_documentation: Annotated[Bool, V("3+")] = False


class DescribeConfigsSynonym(Group, frozen=True):
    name: String = ""
    value: NullableString = None
    source: Int8 = 0


class DescribeConfigsResourceResult(Group, frozen=True):
    name: String = ""
    value: NullableString = None
    read_only: Bool = False
    config_source: Int8 = -1
    is_sensitive: Bool = False
    synonyms: tuple[DescribeConfigsSynonym, ...] = ()
    config_type: Annotated[Int8, V("3+")] = 0
    documentation: Annotated[NullableString, V("3+")] = None


class DescribeConfigsResult(Group, frozen=True):
    error_code: Int16 = 0
    error_message: NullableString = None
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: tuple[DescribeConfigsResourceResult, ...] = ()


@message(key=32, kind="response", versions="1-4", flexible="4+")
class DescribeConfigsResponse(Message, frozen=True):
    throttle_time_ms: Int32 = 0
    results: tuple[DescribeConfigsResult, ...] = ()
