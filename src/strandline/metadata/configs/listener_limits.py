"""Limits that single listeners have for themselves: `listener.name.NAME.max.connections` and the rate (KIP-402, 612).

NAME in lower case. Without its own limit a listener has none but the node's. They may change while a node runs, for one
broker or for all, as in Kafka.
"""

from collections.abc import Mapping

from strandline.metadata.configs.node_configs import NODE_CONFIGS

PREFIX = "listener.name."
CONNECTIONS, RATE = "max.connections", "max.connection.creation.rate"


def listener_and_limit(name: str) -> tuple[str, str] | None:
    """The listener, in lower case, and the key of the limit; None if this names something else."""
    for key in (CONNECTIONS, RATE):
        listener = name.removeprefix(PREFIX).removesuffix(f".{key}")
        if name == f"{PREFIX}{listener}.{key}" and listener:
            return listener, key
    return None


def limit_name(listener: str, key: str) -> str:
    assert key in (CONNECTIONS, RATE)
    return f"{PREFIX}{listener.lower()}.{key}"


def read_listener_limits(properties: Mapping[str, str], problems: list[str]) -> dict[str, dict[str, int]]:
    """By key, then by listener. Adds to `problems`."""
    found: dict[str, dict[str, int]] = {CONNECTIONS: {}, RATE: {}}
    for name, text in properties.items():
        named = listener_and_limit(name)
        if named is None:
            continue
        listener, key = named
        problem = NODE_CONFIGS[key].why_invalid(text)
        if problem is not None:
            problems.append(problem.replace(key, name))
            continue
        value = NODE_CONFIGS[key].parse(text)
        assert isinstance(value, int)
        found[key][listener] = value
    return found
