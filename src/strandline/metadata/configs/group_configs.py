"""The configuration keys of a group (KIP-848): what a consumer group may have otherwise than the brokers' own values.

As in Kafka, a group need not exist to be configured. Kafka's keys of share groups and of streams groups are unknown
here, as these groups are.
"""

from collections.abc import Mapping

from strandline.metadata.configs.config_key import INT, ConfigKey, ConfigValue, at_least
from strandline.metadata.configs.node_configs import NODE_CONFIGS

SESSION_TIMEOUT, HEARTBEAT_INTERVAL = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"

ROWS = (
    ConfigKey(HEARTBEAT_INTERVAL, INT, 5000, at_least(1), (("group.consumer.heartbeat.interval.ms", 1),)),
    ConfigKey(SESSION_TIMEOUT, INT, 45_000, at_least(1), (("group.consumer.session.timeout.ms", 1),)),
)
GROUP_CONFIGS: dict[str, ConfigKey] = {key.name: key for key in ROWS}
assert NODE_CONFIGS.keys() >= {name for row in ROWS for name, _ in row.synonyms}
assert all(NODE_CONFIGS[row.synonyms[0][0]].default == row.default for row in ROWS)


def why_invalid_for_group(name: str, value: str) -> str | None:
    """Why may a group not have this configuration? None means it may."""
    key = GROUP_CONFIGS.get(name)
    return f"Unknown group config name: {name}" if key is None else key.why_invalid(value)


def why_not_together(own: Mapping[str, str], node: Mapping[str, ConfigValue]) -> str | None:
    """What is wrong between values of a group that are each right, with the limits of a node whose configuration sets
    `node` explicitly. `own`: what the group sets, each valid by itself."""
    for name in (HEARTBEAT_INTERVAL, SESSION_TIMEOUT):
        value = group_value(name, own, node)
        least, most = (f"group.{name.replace('.', f'.{limit}.', 1)}" for limit in ("min", "max"))
        if value < of_node(least, node):
            return f"{name} must be greater than or equal to {least}"
        if value > of_node(most, node):
            return f"{name} must be less than or equal to {most}"
    if group_value(SESSION_TIMEOUT, own, node) <= group_value(HEARTBEAT_INTERVAL, own, node):
        return f"{SESSION_TIMEOUT} must be greater than {HEARTBEAT_INTERVAL}"
    return None


def group_value(name: str, own: Mapping[str, str], node: Mapping[str, ConfigValue]) -> int:
    """The value in force: the group's own, else the node's. Milliseconds."""
    row = GROUP_CONFIGS[name]
    if name not in own:
        return of_node(row.synonyms[0][0], node)
    value = row.parse(own[name])
    assert isinstance(value, int)
    return value


def of_node(name: str, node: Mapping[str, ConfigValue]) -> int:
    value = node.get(name, NODE_CONFIGS[name].default)
    assert isinstance(value, int)
    return value
