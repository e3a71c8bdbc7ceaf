"""TLS of a node, from its configuration; and whether it listens where strangers are, without any security."""

from collections.abc import Sequence
from ipaddress import ip_address

from strandline.base.effects import Endpoint
from strandline.broker.config import NodeConfig
from strandline.security.protocols import PLAINTEXT, uses_tls
from strandline.server.tls.listener_tls import ListenerTls, Tls


def tls_of(config: NodeConfig) -> Tls:
    """Reads key stores and trust stores. Raises BadStore."""
    served = [listener.name for listener in config.listeners]
    for_nodes = (config.inter_broker_listener_name, *config.controller_listener_names)
    listeners = [
        ListenerTls(config.settings_of(name), is_served=name in served, is_for_nodes=name in for_nodes)
        for name in config.used_listener_names
        if uses_tls(config.protocol_of(name))
    ]
    return Tls(
        listeners,
        voters=frozenset(voter.endpoint for voter in config.voters),
        for_voters=config.controller_listener_names[0],
        for_brokers=config.inter_broker_listener_name,
    )


def unprotected(config: NodeConfig, where: Sequence[tuple[str, Endpoint]]) -> list[str]:
    """The listeners, as NAME://host:port, that whoever reaches this machine can use. `where` they really are."""
    return [
        f"{name}://{at.host}:{at.port}"
        for name, at in where
        if config.protocol_of(name) == PLAINTEXT and not is_loopback(at.host)
    ]


def is_loopback(host: str) -> bool:
    """A name other than `localhost` may be anywhere."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
