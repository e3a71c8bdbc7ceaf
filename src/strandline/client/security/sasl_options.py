"""SASL: who we say we are, from `sasl.jaas.config` as Java's clients have it, or from librdkafka's options."""

import re
from collections.abc import Mapping

from strandline.base.secret import Secret
from strandline.base.value import Value
from strandline.client.errors import BadOption

MODULES = {"PlainLoginModule": ("PLAIN",), "ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512")}
MECHANISMS = tuple(name for names in MODULES.values() for name in names)
MODULE = re.compile(r"^\s*(?P<module>[\w.$]+)\s+(required|requisite|sufficient|optional)\s", re.IGNORECASE)
PAIR = re.compile(r"(?P<key>\w+)\s*=\s*(?:\"(?P<quoted>(?:[^\"\\]|\\.)*)\"|'(?P<single>[^']*)'|(?P<bare>[^\s;\"']+))")


class Sasl(Value, frozen=True):
    mechanism: str
    username: str
    password: Secret


def sasl_of(given: Mapping[str, str]) -> Sasl:
    """From options without their prefix, in lower case. Raises `BadOption`."""
    mechanism = (given.get("sasl.mechanism") or given.get("sasl.mechanisms") or "").strip().upper()
    if not mechanism:
        raise BadOption("option kafka.sasl.mechanism is missing", f"set it to one of {', '.join(MECHANISMS)}")
    if mechanism not in MECHANISMS:
        raise BadOption(f"option kafka.sasl.mechanism: '{mechanism}' is none of {', '.join(MECHANISMS)}")
    jaas = given.get("sasl.jaas.config", "")
    if jaas:
        username, password = credentials_in(jaas, mechanism)
    else:
        username, password = given.get("sasl.username", ""), given.get("sasl.password", "")
    if not username or not password:
        raise BadOption(
            "SASL needs a user name and a password",
            'give kafka.sasl.jaas.config=org.apache.kafka.common.security.….LoginModule required username="…"'
            ' password="…"; or kafka.sasl.username and kafka.sasl.password',
        )
    return Sasl(mechanism, username, Secret(password))


def credentials_in(jaas: str, mechanism: str) -> tuple[str, str]:
    """User name and password of one login module. What it says is never repeated in an error."""
    match = MODULE.match(jaas)
    if match is None:
        raise BadOption('option kafka.sasl.jaas.config is not `LoginModule required username="…" password="…";`')
    module = match["module"].rpartition(".")[2]
    if mechanism not in MODULES.get(module, ()):
        raise BadOption(f"option kafka.sasl.jaas.config: login module {module} does not speak {mechanism}")
    pairs = {pair["key"]: value_of(pair) for pair in PAIR.finditer(jaas, match.end())}
    return pairs.get("username", ""), pairs.get("password", "")


def value_of(pair: re.Match[str]) -> str:
    if pair["quoted"] is not None:
        return re.sub(r"\\(.)", r"\1", pair["quoted"])
    return pair["single"] if pair["single"] is not None else pair["bare"]
