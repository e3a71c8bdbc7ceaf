"""The keys of a node's configuration for SASL, one row each, and the settings that a listener has for one mechanism.

`listener.name.NAME.MECHANISM.KEY` is KEY for one mechanism of the listener NAME (both in lower case), and goes before
`listener.name.NAME.KEY` (KIP-103).
"""

from strandline.metadata.configs.config_key import INT, LIST, LONG, PASSWORD, STRING, ConfigKey, at_least
from strandline.metadata.configs.tls_configs import LISTENER_PREFIX

PLAIN, SCRAM_256, SCRAM_512, OAUTHBEARER = "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"
MECHANISMS = (PLAIN, SCRAM_256, SCRAM_512, OAUTHBEARER)
REAUTH_KEY = "connections.max.reauth.ms"

SASL_ROWS = (
    # Kafka's default is GSSAPI, and so is that of the two keys for nodes.
    ConfigKey("sasl.enabled.mechanisms", LIST, ()),
    ConfigKey("sasl.jaas.config", PASSWORD),
    ConfigKey("sasl.mechanism.inter.broker.protocol", STRING, ""),
    ConfigKey("sasl.mechanism.controller.protocol", STRING, ""),
    ConfigKey("sasl.server.max.receive.size", INT, 524_288, at_least(1)),
    ConfigKey("sasl.server.callback.handler.class", STRING),
    ConfigKey(REAUTH_KEY, LONG, 0),
    ConfigKey("connection.failed.authentication.delay.ms", INT, 100, at_least(0)),
    ConfigKey("sasl.oauthbearer.jwks.endpoint.url", STRING),
    ConfigKey("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000),
    ConfigKey("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100),
    ConfigKey("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, 10_000),
    ConfigKey("sasl.oauthbearer.expected.audience", LIST, None),
    ConfigKey("sasl.oauthbearer.expected.issuer", STRING),
    ConfigKey("sasl.oauthbearer.scope.claim.name", STRING, "scope"),
    ConfigKey("sasl.oauthbearer.sub.claim.name", STRING, "sub"),
    ConfigKey("sasl.oauthbearer.clock.skew.seconds", INT, 30),
)
OF_MECHANISMS = frozenset(
    row.name
    for row in SASL_ROWS
    if row.name.startswith(("sasl.oauthbearer.", "sasl.server.callback."))
    or row.name in ("sasl.jaas.config", REAUTH_KEY)
)


def mechanism_and_key(name: str) -> tuple[str, str, str] | None:
    """The listener, in lower case, the mechanism, and its key; None if this is not the name of a mechanism's own
    setting."""
    if not name.startswith(LISTENER_PREFIX):
        return None
    listener, _, rest = name.removeprefix(LISTENER_PREFIX).partition(".")
    given, _, key = rest.partition(".")
    mechanism = given.upper()
    found = listener and given == given.lower() and mechanism in MECHANISMS and key in OF_MECHANISMS
    return (listener, mechanism, key) if found else None


def of_mechanism(listener: str, mechanism: str, key: str) -> str:
    """The name of a mechanism's own setting."""
    assert key in OF_MECHANISMS and mechanism in MECHANISMS
    return f"{LISTENER_PREFIX}{listener.lower()}.{mechanism.lower()}.{key}"
