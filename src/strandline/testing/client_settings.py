"""How clients of several libraries reach a cluster: the settings by the names that each library gives them."""

import ssl
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from strandline.security.protocols import SASL_SSL
from strandline.testing.secured import MECHANISM, SecuredFolder

AS_WRITTEN = ("log_level", "on_commit", "on_delivery", "logger")  # librdkafka's other names have points


class Access(NamedTuple):
    bootstrap: str
    secured: SecuredFolder | None
    user: str


def confluent(access: Access, options: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"bootstrap.servers": access.bootstrap}
    if access.secured is not None:
        found |= {
            "security.protocol": SASL_SSL,
            "ssl.ca.location": str(access.secured.authority),
            "sasl.mechanism": MECHANISM,
            "sasl.username": access.user,
            "sasl.password": access.secured.password(access.user),
        }
    return found | {pointed(name): value for name, value in options.items()}


def pointed(name: str) -> str:
    return name if name in AS_WRITTEN or name.endswith("_cb") else name.replace("_", ".")


def aiokafka(access: Access, options: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"bootstrap_servers": access.bootstrap}
    if access.secured is not None:
        context = ssl.create_default_context(cafile=str(access.secured.authority))
        found |= {"ssl_context": context} | by_password(access, access.secured)
    return found | dict(options)


def kafka_python(access: Access, options: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"bootstrap_servers": access.bootstrap.split(",")}
    if access.secured is not None:
        found |= {"ssl_cafile": str(access.secured.authority)} | by_password(access, access.secured)
    return found | dict(options)


def by_password(access: Access, secured: SecuredFolder) -> dict[str, str]:
    return {
        "security_protocol": SASL_SSL,
        "sasl_mechanism": MECHANISM,
        "sasl_plain_username": access.user,
        "sasl_plain_password": secured.password(access.user),
    }


LIBRARIES: dict[str, Callable[[Access, Mapping[str, Any]], dict[str, Any]]] = {
    "confluent-kafka": confluent,
    "aiokafka": aiokafka,
    "kafka-python": kafka_python,
}
