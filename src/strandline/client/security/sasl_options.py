"""SASL: who we say we are, from `sasl.jaas.config` as Java's clients have it, or from librdkafka's options.

A token of OAUTHBEARER comes from a file, as Kafka's FileJwtRetriever has it: `sasl.oauthbearer.token.endpoint.url` with
a file: URL. It is read for each connection, so that whoever renews it just replaces the file.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit
from urllib.request import url2pathname

from strandline.base.secret import Secret
from strandline.base.value import Value
from strandline.client.errors import BadOption
from strandline.security.jaas import login_module

MODULES = {"PlainLoginModule": ("PLAIN",), "ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512")}
OAUTHBEARER = "OAUTHBEARER"
MECHANISMS = (*(name for names in MODULES.values() for name in names), OAUTHBEARER)
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"


class Sasl(Value, frozen=True):
    mechanism: str
    username: str
    password: Secret
    token_file: str = ""  # with OAUTHBEARER, instead of them

    @property
    def named(self) -> str:
        """Whom a broker may refuse."""
        return f"the token in {self.token_file}" if self.token_file else f"user {self.username}"

    def token(self) -> str:
        """Raises `BadOption`."""
        try:
            with open(self.token_file, encoding="ascii") as file:
                text = file.read().strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not ASCII text"
            raise BadOption(f"cannot read the token in {self.token_file}: {why}") from None
        if not text or not text.isprintable() or " " in text:
            raise BadOption(f"{self.token_file} does not have a token, which is one word")
        return text


def sasl_of(given: Mapping[str, str]) -> Sasl:
    """From options without their prefix, in lower case. Raises `BadOption`."""
    mechanism = (given.get("sasl.mechanism") or given.get("sasl.mechanisms") or "").strip().upper()
    if not mechanism:
        raise BadOption("option kafka.sasl.mechanism is missing", f"set it to one of {', '.join(MECHANISMS)}")
    if mechanism not in MECHANISMS:
        raise BadOption(f"option kafka.sasl.mechanism: '{mechanism}' is none of {', '.join(MECHANISMS)}")
    if mechanism == OAUTHBEARER:
        return Sasl(mechanism, "", Secret(""), token_file_in(given.get(TOKEN_URL, "").strip()))
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


def token_file_in(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "file" or not parts.path:
        raise BadOption(
            f"option kafka.{TOKEN_URL} is not the file: URL of a token"
            if url
            else f"option kafka.{TOKEN_URL} is missing",
            "let another program get the token and keep it in a file, such as file:///run/token.jwt",
        )
    return url2pathname(parts.path)


def credentials_in(jaas: str, mechanism: str) -> tuple[str, str]:
    """User name and password of one login module. What it says is never repeated in an error."""
    try:
        module = login_module(jaas)
    except ValueError as error:
        raise BadOption(f"option kafka.sasl.jaas.config: {error}") from None
    if mechanism not in MODULES.get(module.name, ()):
        raise BadOption(f"option kafka.sasl.jaas.config: login module {module.name} does not speak {mechanism}")
    return module.options.get("username", ""), module.options.get("password", "")
