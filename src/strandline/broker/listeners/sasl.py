"""What a listener's clients may prove who they are by (SASL), from its settings; and what is wrong with those.

Invariants:
  - no problem's text repeats what a `sasl.jaas.config` has, or a URL: passwords may be in it.
"""

from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from strandline.base.secret import Secret
from strandline.base.value import Value
from strandline.broker.listeners.settings import ListenerSettings
from strandline.metadata.configs.sasl_configs import (
    MECHANISMS,
    OAUTHBEARER,
    PLAIN,
    SCRAM_256,
    SCRAM_512,
    of_mechanism,
)
from strandline.security.jaas import LoginModule, login_module
from strandline.security.protocols import uses_sasl

JAAS_KEY = "sasl.jaas.config"
ENABLED_KEY = "sasl.enabled.mechanisms"
REAUTH_KEY = "connections.max.reauth.ms"
URL_KEY = "sasl.oauthbearer.jwks.endpoint.url"
HANDLER_KEY = "sasl.server.callback.handler.class"
MODULES = {
    PLAIN: "PlainLoginModule",
    SCRAM_256: "ScramLoginModule",
    SCRAM_512: "ScramLoginModule",
    OAUTHBEARER: "OAuthBearerLoginModule",
}
VALIDATOR = "OAuthBearerValidatorCallbackHandler"
USER = "user_"  # user_NAME="password"
SCHEMES = ("file", "http", "https")


class SaslRules(Value, frozen=True):
    """Of one listener. Texts of mechanisms are Kafka's names."""

    mechanisms: tuple[str, ...]
    plain_users: dict[str, Secret]
    reauth_ms: dict[str, int]  # by mechanism: after how long a client has to prove it again; 0: never

    def __post_init__(self) -> None:
        assert set(self.mechanisms) <= set(MECHANISMS)


def sasl_rules(settings: ListenerSettings) -> SaslRules:
    """`settings`: without problems."""
    assert uses_sasl(settings.protocol)
    mechanisms = settings.texts(ENABLED_KEY)
    module = jaas_of(settings, PLAIN) if PLAIN in mechanisms else None
    return SaslRules(
        mechanisms,
        plain_users_in(module) if module is not None else {},
        {mechanism: max(settings.for_mechanism(mechanism).whole(REAUTH_KEY), 0) for mechanism in mechanisms},
    )


def jaas_of(settings: ListenerSettings, mechanism: str) -> LoginModule | None:
    """None if it is not set. Raises ValueError if it makes no sense."""
    own = settings.of_mechanisms.get(mechanism, {}).get(JAAS_KEY)
    assert own is None or isinstance(own, Secret)
    return login_module(own.reveal) if own is not None else None


def plain_users_in(module: LoginModule) -> dict[str, Secret]:
    """`username` and `password` are what a broker of Kafka says of itself; here nodes have the cluster's secret."""
    found = module.options.items()
    return {name.removeprefix(USER): Secret(text) for name, text in found if name.startswith(USER)}


def sasl_problems(settings: ListenerSettings) -> Iterator[str]:
    """What is wrong, as far as no file must be read for it."""
    assert uses_sasl(settings.protocol)
    enabled = settings.texts(ENABLED_KEY)
    where = f"Listener {settings.listener}"
    if not enabled:
        yield (
            f"{where} speaks {settings.protocol} and enables no mechanism: set {ENABLED_KEY} to some of"
            f" {', '.join(MECHANISMS)} (GSSAPI, which is Kafka's default, is not supported)"
        )
    for mechanism in enabled:
        if mechanism not in MECHANISMS:
            yield (f"{where}: {settings.named(ENABLED_KEY)} has {mechanism}; supported are {', '.join(MECHANISMS)}")
            continue
        yield from jaas_problems(settings, mechanism)
    if OAUTHBEARER in enabled:
        yield from bearer_problems(settings.for_mechanism(OAUTHBEARER))


def jaas_problems(settings: ListenerSettings, mechanism: str) -> Iterator[str]:
    key = of_mechanism(settings.listener, mechanism, JAAS_KEY)
    try:
        module = jaas_of(settings, mechanism)
    except ValueError as error:
        yield f"Invalid value [hidden] for configuration {key}: {error}"
        return
    if module is not None and module.name != MODULES[mechanism]:
        yield f"Invalid value [hidden] for configuration {key}: login module {module.name} does not speak {mechanism}"
    elif mechanism == PLAIN and (module is None or not plain_users_in(module)):
        yield (
            f"Listener {settings.listener} enables {PLAIN} and has no users: set {key} to"
            ' org.apache.kafka.common.security.plain.PlainLoginModule required user_NAME="PASSWORD" …;'
        )
    elif mechanism == PLAIN and module is not None and not all(plain_passwords(module)):
        yield f"Invalid value [hidden] for configuration {key}: a user has no name or an empty password"


def plain_passwords(module: LoginModule) -> Iterator[str]:
    for name, password in plain_users_in(module).items():
        yield name and password.reveal


def bearer_problems(settings: ListenerSettings) -> Iterator[str]:
    url = settings.text(URL_KEY)
    where = f"Listener {settings.listener}"
    if not url:
        yield (
            f"{where} enables {OAUTHBEARER} and has no keys: set {settings.named(URL_KEY)} to the file: or https: URL"
            " of a JSON Web Key Set. Unsecured tokens, which Kafka takes without it, are not supported"
        )
    elif why := why_not_key_set(url):
        yield f"{where}: {settings.named(URL_KEY)} {why}"
    handler = settings.text(HANDLER_KEY).rpartition(".")[2]
    if handler not in ("", VALIDATOR):
        yield f"{where}: {settings.named(HANDLER_KEY)} is {handler}; only {VALIDATOR} is known"


def why_not_key_set(url: str) -> str:
    """Empty: it can be one."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "is not a URL"
    if parts.scheme not in SCHEMES:
        return f"must begin with one of: {', '.join(f'{s}:' for s in SCHEMES)}"
    if "@" in parts.netloc:
        return (
            "has a user's name or password before its host, which logs and DescribeConfigs would show:"
            " serve the keys, which are public, without one"
        )
    if parts.scheme != "file" and (not parts.hostname or port == 0):
        return f"must have a host, as in {parts.scheme}://host/keys"
    return ""


def misplaced(explicit: Mapping[str, object], own: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    """Kafka ignores it where it does not say for which mechanism; then nobody could log in, and not know why."""
    named = [JAAS_KEY] if JAAS_KEY in explicit else []
    named += [f"listener.name.{listener}.{JAAS_KEY}" for listener, settings in own.items() if JAAS_KEY in settings]
    for key in named:
        yield f"{key} does not say for which mechanism: use {of_mechanism('name', PLAIN, JAAS_KEY)} and others like it"
