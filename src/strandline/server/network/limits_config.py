"""The limits of connections, from a node's configuration."""

import socket

from strandline.broker.config import NodeConfig
from strandline.metadata.configs.listener_limits import CONNECTIONS, RATE
from strandline.server.network.limits import LimitsConfig, plain


def limits_of(config: NodeConfig) -> LimitsConfig:
    """Addresses may be names, which are looked up now, as in Kafka. Raises OSError if one is not known."""
    names = {listener.name.lower(): listener.name for listener in config.listeners}
    of_listeners = config.listener_limits
    return LimitsConfig(
        connections_max=config.integer("max.connections"),
        per_address_max=config.integer("max.connections.per.ip"),
        per_address_overrides=overrides(config.text("max.connections.per.ip.overrides")),
        rate=config.integer("max.connection.creation.rate"),
        of_listener_max={names[name]: most for name, most in of_listeners[CONNECTIONS].items() if name in names},
        of_listener_rate={names[name]: rate for name, rate in of_listeners[RATE].items() if name in names},
        node_listeners=node_listeners(config),
    )


def node_listeners(config: NodeConfig) -> frozenset[str]:
    """Those of controllers, and that of the brokers if clients have another one."""
    controllers = set(config.controller_listener_names)
    of_brokers = [listener.name for listener in config.listeners if listener.name not in controllers]
    if len(of_brokers) > 1:
        controllers.add(config.inter_broker_listener_name)
    return frozenset(controllers)


def overrides(text: str) -> dict[str, int]:
    found = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        host, _, number = entry.rpartition(":")
        host = host.strip().strip("[]")
        try:
            address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0]
        except OSError as error:
            raise OSError(error.errno, f"max.connections.per.ip.overrides: {host} is not known") from error
        found[plain(str(address))] = int(number)
    return found
