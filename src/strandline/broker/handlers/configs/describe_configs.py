"""DescribeConfigs: every setting of a topic, a broker or a group, with where its value comes from (KIP-226). Of a
subscription to the metrics of clients, what was set for it (KIP-714).

Synonyms are all sources that have a value, the one in force first, each with the name and in the unit of its own key:
a topic's `retention.ms` may come from a broker's `log.retention.hours`.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.broker.config import NODE_CONFIGS
from strandline.broker.handlers.port import NodePort
from strandline.metadata.configs.client_metrics import CLIENT_METRICS_CONFIGS
from strandline.metadata.configs.config_docs import documentation
from strandline.metadata.configs.config_key import TYPE_NUMBERS, ConfigKey, show_value
from strandline.metadata.configs.dynamic_configs import DYNAMIC_NODE_KEYS, base_of, is_dynamic, synonyms_of
from strandline.metadata.configs.group_configs import GROUP_CONFIGS
from strandline.metadata.configs.listener_limits import limit_name
from strandline.metadata.configs.tls_configs import prefixed
from strandline.metadata.configs.topic_configs import SHOWN, STATE_KEYS
from strandline.metadata.image import BROKER_RESOURCE, CLUSTER_DEFAULT, GROUP_RESOURCE, TOPIC_RESOURCE
from strandline.metadata.records import CLIENT_METRICS_RESOURCE
from strandline.wire.messages.cluster.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

# ConfigSource numbers of the protocol.
TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, DEFAULT, CLIENT_METRICS, GROUP = 1, 2, 3, 4, 5, 7, 8


class Setting(Value, frozen=True):
    """One possible source of a value."""

    name: str
    value: str | None
    source: int


class Described(Value, frozen=True):
    key: ConfigKey
    value: str | None
    source: int
    synonyms: tuple[Setting, ...]
    is_read_only: bool = False


def answer(node: NodePort, received: Received, now: Instant) -> list[Effect]:
    del now
    request: DescribeConfigsRequest = received.message
    results = tuple(describe(node, resource, request) for resource in request.resources)
    return [Reply(received.to, DescribeConfigsResponse(results=results))]


def describe(
    node: NodePort, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> DescribeConfigsResult:
    name = resource.resource_name
    match resource.resource_type:
        case kind if kind == TOPIC_RESOURCE:
            if node.image.topic_named(name) is None:
                return refused(resource, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
            rows = [of_topic(node, name, key) for key in SHOWN]
        case kind if kind == BROKER_RESOURCE:
            if name and not (name.isascii() and name.isdigit()):
                return refused(resource, ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
            if name not in (CLUSTER_DEFAULT, str(node.me)):
                why = f"Unexpected broker id, expected {node.me} or empty string, but received {name}"
                return refused(resource, ErrorCode.INVALID_REQUEST, why)
            rows = [*of_broker_keys(node), *of_listeners(node)] if name else of_all_brokers(node)
        case kind if kind == GROUP_RESOURCE:
            if not name:
                return refused(resource, ErrorCode.INVALID_REQUEST, "Group name must not be empty")
            rows = [of_group(node, name, key) for key in GROUP_CONFIGS.values()]
        case kind if kind == CLIENT_METRICS_RESOURCE:
            if not name:
                why = "Client metrics subscription name must not be empty"
                return refused(resource, ErrorCode.INVALID_REQUEST, why)
            rows = of_subscription(node, name)
        case kind:
            return refused(resource, ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {kind}")
    assert len({row.key.name for row in rows}) == len(rows), "each key is described once"
    wanted = resource.configuration_keys
    return DescribeConfigsResult(
        error_code=ErrorCode.NONE,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=tuple(
            entry(row, request)
            for row in rows
            if not wanted or row.key.name in wanted  # null and empty: all
        ),
    )


def refused(resource: DescribeConfigsResource, error: ErrorCode, why: str) -> DescribeConfigsResult:
    assert error is not ErrorCode.NONE
    return DescribeConfigsResult(
        error_code=error,
        error_message=why or None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def of_topic(node: NodePort, topic: str, key: ConfigKey) -> Described:
    assert node.image.topic_named(topic) is not None, "refused before"
    own = node.image.configs.get((TOPIC_RESOURCE, topic), {})
    found = [Setting(key.name, own[key.name], TOPIC)] if key.name in own else []
    if key.synonyms:
        found += broker_settings(node, [name for name, _ in key.synonyms])
    else:
        found.append(Setting(key.name, show_value(key.default), DEFAULT))
    value, source = node.image.config_in_force(topic, key.name, node.config.explicit, str(node.me))
    assert not found or found[0].source == source, "the source in force comes first"
    return Described(key, show_value(value), source, tuple(found))


def of_group(node: NodePort, group: str, key: ConfigKey) -> Described:
    """As in Kafka, a group that nobody configured has all keys, with the broker's values."""
    own = node.image.configs.get((GROUP_RESOURCE, group), {})
    found = [Setting(key.name, own[key.name], GROUP)] if key.name in own else []
    found += broker_settings(node, [name for name, _ in key.synonyms])
    return Described(key, found[0].value, found[0].source, tuple(found))


def of_broker(node: NodePort, key: ConfigKey) -> Described:
    found = broker_settings(node, synonyms_of(key.name))
    while found and found[0].name != key.name:
        del found[0]  # A stand-in is asked only after the key itself, and what stands before is not this key's value.
    value = next((setting.value for setting in found if setting.name == key.name), show_value(key.default))
    source = found[0].source if found else DEFAULT
    return Described(key, value, source, tuple(found), key.name not in DYNAMIC_NODE_KEYS)


def of_broker_keys(node: NodePort) -> list[Described]:
    return [of_broker(node, key) for key in NODE_CONFIGS.values()]


def of_listeners(node: NodePort) -> list[Described]:
    """The settings that single listeners have for themselves: in the file, or given to the running broker."""
    found: dict[str, list[Setting]] = {}
    for resource, source in ((str(node.me), DYNAMIC_BROKER), (CLUSTER_DEFAULT, DYNAMIC_DEFAULT)):
        for name, value in node.image.configs.get((BROKER_RESOURCE, resource), {}).items():
            if base_of(name) != name:
                found.setdefault(name, []).append(Setting(name, value, source))
    config = node.config
    in_file = [(prefixed(at, key), value) for at, own in config.of_listeners.items() for key, value in own.items()]
    in_file += [(limit_name(at, key), value) for key, of in config.listener_limits.items() for at, value in of.items()]
    for name, static in in_file:
        found.setdefault(name, []).append(Setting(name, show_value(static), STATIC))
    rows = []
    for name, settings in sorted(found.items()):
        key = named(name)
        rows.append(Described(key, settings[0].value, settings[0].source, tuple(settings), not is_dynamic(name)))
    return rows


def of_all_brokers(node: NodePort) -> list[Described]:
    """What was set for all brokers, and nothing else."""
    dynamic = node.image.configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), {})
    rows = []
    for name in sorted(dynamic):
        key, value = named(name), dynamic[name]
        rows.append(Described(key, value, DYNAMIC_DEFAULT, (Setting(name, value, DYNAMIC_DEFAULT),)))
    return rows


def of_subscription(node: NodePort, name: str) -> list[Described]:
    own = node.image.configs.get((CLIENT_METRICS_RESOURCE, name), {})
    keys = CLIENT_METRICS_CONFIGS
    return [Described(keys[key], own[key], CLIENT_METRICS, ()) for key in sorted(own) if key in keys]


def broker_settings(node: NodePort, names: Iterable[str]) -> list[Setting]:
    """Where a broker has a value of one of these keys: by source, and within a source in the order of the keys."""
    explicit = node.config.explicit
    sources = (
        (DYNAMIC_BROKER, node.image.configs.get((BROKER_RESOURCE, str(node.me)), {})),
        (DYNAMIC_DEFAULT, node.image.configs.get((BROKER_RESOURCE, CLUSTER_DEFAULT), {})),
        (STATIC, {name: show_value(explicit[name]) for name in names if name in explicit and name not in STATE_KEYS}),
        (DEFAULT, {name: show_value(NODE_CONFIGS[name].default) for name in names if not NODE_CONFIGS[name].required}),
    )
    return [
        Setting(name, values[name], source)
        for source, values in sources
        for name in names
        if values.get(name) is not None
    ]


def named(name: str) -> ConfigKey:
    """A node's key, or what it is where a listener has it for itself."""
    return replace(NODE_CONFIGS[base_of(name)], name=name)


def base_key(key: ConfigKey) -> ConfigKey:
    """The key that a listener's own setting stands for."""
    base = base_of(key.name)
    return key if base == key.name else NODE_CONFIGS[base]


def entry(row: Described, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    is_sensitive = row.key.is_sensitive
    synonyms = (
        tuple(
            DescribeConfigsSynonym(name=s.name, value=None if is_sensitive else s.value, source=s.source)
            for s in row.synonyms
        )
        if request.include_synonyms
        else ()
    )
    return DescribeConfigsResourceResult(
        name=row.key.name,
        value=None if is_sensitive else row.value,
        read_only=row.is_read_only,
        config_source=row.source,
        is_sensitive=is_sensitive,
        synonyms=synonyms,
        config_type=TYPE_NUMBERS[row.key.type],
        documentation=documentation(base_key(row.key)) if request.include_documentation else None,
    )
