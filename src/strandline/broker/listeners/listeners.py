"""Which listeners a node has, and which security protocol each of them speaks, by Kafka's rules.

Invariants:
  - a listener speaks PLAINTEXT only if the map says so, or its name, or if it is a controllers' listener and neither
    a map nor a name mentions SSL or SASL.
"""

from collections.abc import Mapping

from strandline.base.effects import Endpoint
from strandline.base.value import Value
from strandline.metadata.configs.config_key import ConfigValue, invalid
from strandline.security.protocols import NUMBERS, PLAINTEXT, uses_sasl, uses_tls

MAP = "listener.security.protocol.map"
INTER_BROKER_NAME, INTER_BROKER_PROTOCOL = "inter.broker.listener.name", "security.inter.broker.protocol"


class ListenerConfig(Value, frozen=True):
    name: str
    host: str  # empty: not said
    port: int  # 0: any free port

    def __post_init__(self) -> None:
        assert self.name and 0 <= self.port < 65536

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.host, self.port)


def as_texts(value: ConfigValue) -> tuple[str, ...]:
    assert value is None or isinstance(value, tuple)
    return value or ()


def read_listeners(key: str, entries: ConfigValue, problems: list[str]) -> tuple[ListenerConfig, ...]:
    """ "NAME://host:port"; an empty host is allowed, as is an IPv6 address in brackets."""
    found = []
    for entry in as_texts(entries):
        name, separator, address = entry.partition("://")
        host, colon, port = address.rpartition(":")
        if not (separator and name and colon and port.isascii() and port.isdigit() and int(port) < 65536):
            problems.append(invalid(key, entry, "expected NAME://host:port"))
            continue
        found.append(ListenerConfig(name.upper(), host.strip("[]"), int(port)))
    return tuple(found)


def read_protocols(
    values: Mapping[str, ConfigValue], explicit: Mapping[str, ConfigValue], problems: list[str]
) -> dict[str, str]:
    """The protocol of each listener name that the node uses or is told of. Adds to `problems`."""
    text = values[MAP]
    assert isinstance(text, str)
    protocols: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = entry.partition(":")
        name, protocol = name.strip().upper(), protocol.strip().upper()
        if not (name and colon):
            problems.append(invalid(MAP, entry, "expected LISTENER:PROTOCOL"))
        elif protocol not in NUMBERS:
            problems.append(invalid(MAP, entry, f"the protocol must be one of: {', '.join(NUMBERS)}"))
        else:
            protocols[name] = protocol
    names = [entry.partition("://")[0].upper() for entry in as_texts(values["listeners"])]
    controllers = [name.upper() for name in as_texts(values["controller.listener.names"])]
    if MAP not in explicit and not any(is_secured(name) for name in (*names, *controllers)):
        protocols |= {name: PLAINTEXT for name in controllers if name not in protocols}
    for name in dict.fromkeys((*names, *controllers)):
        if name and name not in protocols:
            problems.append(
                f"No security protocol defined for listener {name}: add {name}:PROTOCOL to {MAP}, with one of"
                f" {', '.join(NUMBERS)}"
            )
    return protocols


def is_secured(name: str) -> bool:
    """Is it the name of a protocol with TLS or SASL?"""
    return name in NUMBERS and (uses_tls(name) or uses_sasl(name))


def inter_broker_listener(values: Mapping[str, ConfigValue], explicit: Mapping[str, ConfigValue]) -> str:
    """As Kafka: the key, else the listener of inter-broker's protocol. If neither is set, and none is called
    PLAINTEXT, a single broker listener is meant."""
    name = values[INTER_BROKER_NAME]
    if isinstance(name, str):
        return name.upper()
    protocol = values[INTER_BROKER_PROTOCOL]
    assert isinstance(protocol, str)
    controllers = as_texts(values["controller.listener.names"])
    names = [entry.partition("://")[0].upper() for entry in as_texts(values["listeners"])]
    brokers = [name for name in names if name not in controllers]
    return brokers[0] if len(brokers) == 1 and INTER_BROKER_PROTOCOL not in explicit else protocol
