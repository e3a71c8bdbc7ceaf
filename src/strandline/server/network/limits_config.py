"""The limits of connections, from a node's configuration, and as they change while it runs (KIP-226, KIP-612)."""

import socket
from collections.abc import Callable, Mapping

from strandline.broker.config import NodeConfig
from strandline.metadata.configs.config_key import ConfigValue
from strandline.metadata.configs.dynamic_configs import dynamic_value
from strandline.metadata.configs.listener_limits import CONNECTIONS, RATE, limit_name
from strandline.server.network.limits import ConnectionLimits, LimitsConfig, plain
from strandline.server.network.refusals import log

OVERRIDES = "max.connections.per.ip.overrides"
Quotas = Mapping[tuple[tuple[str, str | None], ...], Mapping[str, float]]  # by entity and key
IP, CREATION_RATE = "ip", "connection_creation_rate"  # of client quotas


def limits_of(config: NodeConfig, value: Callable[[str], ConfigValue] | None = None) -> LimitsConfig:
    """`value`: what a key of the node has now, if that is not what its file says. Addresses may be names, which are
    looked up, as in Kafka; not while the node runs, since it would wait. Raises OSError if one is not known."""

    def number(name: str) -> int:
        found = value(name) if value is not None else None
        return found if isinstance(found, int) else config.integer(name)

    def of_listeners(key: str) -> dict[str, int]:
        limits: dict[str, int] = {}
        for listener in config.listeners:
            set_now = value(limit_name(listener.name, key)) if value is not None else None
            limit = set_now if isinstance(set_now, int) else config.listener_limits[key].get(listener.name.lower())
            limits |= {} if limit is None else {listener.name: limit}
        return limits

    others = value(OVERRIDES) if value is not None else None
    return LimitsConfig(
        connections_max=number("max.connections"),
        per_address_max=number("max.connections.per.ip"),
        per_address_overrides=(
            overrides(others, socket.AI_NUMERICHOST)
            if isinstance(others, str)
            else overrides(config.text("max.connections.per.ip.overrides"))
        ),
        rate=number("max.connection.creation.rate"),
        of_listener_max=of_listeners(CONNECTIONS),
        of_listener_rate=of_listeners(RATE),
        node_listeners=node_listeners(config),
    )


def node_listeners(config: NodeConfig) -> frozenset[str]:
    """Those of controllers, and that of the brokers if clients have another one."""
    controllers = set(config.controller_listener_names)
    of_brokers = [listener.name for listener in config.listeners if listener.name not in controllers]
    if len(of_brokers) > 1:
        controllers.add(config.inter_broker_listener_name)
    return frozenset(controllers)


def overrides(text: str, flags: int = 0) -> dict[str, int]:
    found = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        host, _, number = entry.rpartition(":")
        host = host.strip().strip("[]")
        try:
            address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=flags)[0][4][0]
        except OSError as error:
            raise OSError(error.errno, f"{OVERRIDES}: {host} is not known") from error
        found[plain(str(address))] = int(number)
    return found


class CurrentLimits:
    """What was set for this broker, or for all, while it runs."""

    def __init__(self, config: NodeConfig, limits: ConnectionLimits) -> None:
        self.config = config
        self.limits = limits
        own = (limit_name(listener.name, key) for listener in config.listeners for key in (CONNECTIONS, RATE))
        self.keys = (*DYNAMIC_LIMITS, *own)
        self.seen: tuple[ConfigValue, ...] = (None,) * len(self.keys)
        self.rates: tuple[dict[str, float], float | None] = ({}, None)

    def update_rates(self, quotas: Quotas) -> None:
        """`quotas`: the metadata's. What an address has left of its rate is kept if nothing changed."""
        rates = address_rates(quotas)
        if rates != self.rates:
            self.rates = rates
            self.limits.set_address_rates(*rates)

    def update(self, configs: Mapping[tuple[int, str], Mapping[str, str]]) -> None:
        """`configs`: those of the metadata, by resource."""
        now = {name: dynamic_value(configs, str(self.config.node_id), name) for name in self.keys}
        if tuple(now.values()) == self.seen:
            return
        self.seen = tuple(now.values())
        try:
            self.limits.configure(limits_of(self.config, now.get))
        except OSError as error:
            log.warning("limits of connections stay as they were: %s", error.strerror)


DYNAMIC_LIMITS = (
    "max.connections",
    "max.connections.per.ip",
    OVERRIDES,
    "max.connection.creation.rate",
)


def address_rates(quotas: Quotas) -> tuple[dict[str, float], float | None]:
    """For `ConnectionLimits.set_address_rates`: of the client quotas those of addresses, and of all others."""
    rates: dict[str | None, float] = {}
    for entity, values in quotas.items():
        if CREATION_RATE in values and [kind for kind, _ in entity] == [IP]:
            rates[entity[0][1]] = values[CREATION_RATE]
    default = rates.pop(None, None)
    return {address: rate for address, rate in rates.items() if address is not None}, default
