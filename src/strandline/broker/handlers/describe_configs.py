"""DescribeConfigs: every setting of a topic or a broker, with where its value comes from (KIP-226)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.broker.config import NODE_CONFIGS
from strandline.metadata.config_key import TYPE_NUMBERS, ConfigKey, show_value
from strandline.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, TOPIC_RESOURCE
from strandline.metadata.topic_configs import DYNAMIC_NODE_KEYS, SHOWN, STATE_KEYS, topic_default
from strandline.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

if TYPE_CHECKING:
    from strandline.broker.node import Node

# ConfigSource numbers of the protocol.
TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, DEFAULT = 1, 2, 3, 4, 5


class Setting(Value, frozen=True):
    """One possible source of a value, the first of a list being the one in force."""

    name: str
    value: str | None
    source: int


def answer(node: Node, received: Received, now: Instant) -> list[Effect]:
    del now
    request: DescribeConfigsRequest = received.message
    results = tuple(describe(node, resource, request) for resource in request.resources)
    return [Reply(received.to, DescribeConfigsResponse(results=results))]


def describe(node: Node, resource: DescribeConfigsResource, request: DescribeConfigsRequest) -> DescribeConfigsResult:
    match resource.resource_type:
        case kind if kind == TOPIC_RESOURCE:
            if node.image.topic_named(resource.resource_name) is None:
                return refused(resource, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
            rows = [(key, topic_settings(node, resource.resource_name, key)) for key in SHOWN]
            of_broker = False
        case kind if kind == BROKER_RESOURCE:
            if resource.resource_name not in ("", str(node.me)):
                why = f"Unexpected broker id, expected {node.me}, but received {resource.resource_name}"
                return refused(resource, ErrorCode.INVALID_REQUEST, why)
            rows = [(key, broker_settings(node, resource.resource_name, key)) for key in NODE_CONFIGS.values()]
            if resource.resource_name == "":
                rows = [(key, found) for key, found in rows if found[0].source == DYNAMIC_DEFAULT]
            of_broker = True
        case kind:
            return refused(resource, ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {kind}")
    wanted = resource.configuration_keys
    return DescribeConfigsResult(
        error_code=ErrorCode.NONE,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=tuple(
            entry(key, found, request, of_broker=of_broker)
            for key, found in rows
            if not wanted or key.name in wanted  # null and empty both ask for all
        ),
    )


def refused(resource: DescribeConfigsResource, error: ErrorCode, why: str) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=error,
        error_message=why or None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def topic_settings(node: Node, topic: str, key: ConfigKey) -> list[Setting]:
    own = node.image.configs.get((TOPIC_RESOURCE, topic), {})
    found = [Setting(key.name, own[key.name], TOPIC)] if key.name in own else []
    dynamic = node.image.configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), {})
    if any(s in dynamic for s, _ in key.synonyms):
        # A synonym may count in another unit; the image knows the value in the topic's own.
        source = next(s for s, _ in key.synonyms if s in dynamic)
        value = node.image.topic_config("", key.name, node.config.explicit)
        found.append(Setting(source, show_value(value), DYNAMIC_DEFAULT))
    static, static_source = topic_default(key.name, node.config.explicit)
    if static_source is not None and key.name not in STATE_KEYS:
        found.append(Setting(static_source, show_value(static), STATIC))
    found.append(Setting(key.synonyms[0][0] if key.synonyms else key.name, show_value(key.default), DEFAULT))
    return found


def broker_settings(node: Node, name: str, key: ConfigKey) -> list[Setting]:
    return list(broker_sources(node, name, key))


def broker_sources(node: Node, name: str, key: ConfigKey) -> Iterator[Setting]:
    own = node.image.configs.get((BROKER_RESOURCE, name), {}) if name else {}
    cluster = node.image.configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), {})
    if key.name in own:
        yield Setting(key.name, own[key.name], DYNAMIC_BROKER)
    if key.name in cluster:
        yield Setting(key.name, cluster[key.name], DYNAMIC_DEFAULT)
    if key.name in node.config.explicit:
        yield Setting(key.name, show_value(node.config.explicit[key.name]), STATIC)
    yield Setting(key.name, show_value(key.default), DEFAULT)


def entry(
    key: ConfigKey, found: list[Setting], request: DescribeConfigsRequest, *, of_broker: bool
) -> DescribeConfigsResourceResult:
    synonyms = (
        tuple(DescribeConfigsSynonym(name=s.name, value=s.value, source=s.source) for s in found)
        if request.include_synonyms
        else ()
    )
    return DescribeConfigsResourceResult(
        name=key.name,
        value=found[0].value,
        read_only=of_broker and key.name not in DYNAMIC_NODE_KEYS,
        config_source=found[0].source,
        is_sensitive=False,
        synonyms=synonyms,
        config_type=TYPE_NUMBERS[key.type],
    )
