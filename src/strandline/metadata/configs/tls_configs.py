"""The keys of a node's configuration for TLS, one row each, and the settings that each listener may have for itself.

`listener.name.NAME.KEY` is KEY for the listener NAME alone (in lower case), and goes before KEY itself (KIP-103).
"""

from strandline.metadata.configs.config_key import (
    LIST,
    PASSWORD,
    STRING,
    ConfigKey,
    ConfigValue,
    each_of,
    one_of,
)

PEM, PKCS12 = "PEM", "PKCS12"
TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")
LISTENER_PREFIX = "listener.name."
OF_LISTENERS = (
    "ssl.",
    "sasl.",
    "connections.max.reauth.ms",
)  # beginnings of the keys that a listener may have for itself


def store_type(value: ConfigValue) -> str | None:
    assert isinstance(value, str)
    if value.upper() in (PEM, PKCS12):
        return None
    if value.upper() == "JKS":
        return (
            "only Java reads this format. `keytool -importkeystore -srckeystore STORE -destkeystore STORE.p12"
            " -deststoretype PKCS12` makes PKCS12 of it"
        )
    return f"String must be one of: {PEM}, {PKCS12}"


def host_check(value: ConfigValue) -> str | None:
    assert isinstance(value, str)
    return None if value.lower() in ("https", "") else "only https is known; an empty value disables the check of hosts"


TLS_ROWS = (
    # Kafka's default of both types is JKS, which nobody but Java reads.
    ConfigKey("ssl.keystore.type", STRING, PEM, store_type),
    ConfigKey("ssl.keystore.location", STRING),
    ConfigKey("ssl.keystore.password", PASSWORD),
    ConfigKey("ssl.key.password", PASSWORD),
    ConfigKey("ssl.keystore.certificate.chain", PASSWORD),
    ConfigKey("ssl.keystore.key", PASSWORD),
    ConfigKey("ssl.truststore.type", STRING, PEM, store_type),
    ConfigKey("ssl.truststore.location", STRING),
    ConfigKey("ssl.truststore.password", PASSWORD),
    ConfigKey("ssl.truststore.certificates", PASSWORD),
    ConfigKey("ssl.client.auth", STRING, "none", one_of("required", "requested", "none")),
    ConfigKey("ssl.enabled.protocols", LIST, TLS_VERSIONS, each_of(*TLS_VERSIONS, may_be_empty=False)),
    ConfigKey("ssl.protocol", STRING, "TLSv1.3", one_of("TLS", *TLS_VERSIONS)),
    ConfigKey("ssl.cipher.suites", LIST, ()),
    ConfigKey("ssl.endpoint.identification.algorithm", STRING, "https", host_check),
    ConfigKey("ssl.principal.mapping.rules", STRING, "DEFAULT"),
)
# What a running node takes (KIP-226), for one listener at a time: certificates and keys, and whom it trusts.
DYNAMIC_TLS_KEYS = frozenset(
    key.name for key in TLS_ROWS if key.name.startswith(("ssl.keystore.", "ssl.truststore.", "ssl.key."))
)


def listener_and_key(name: str) -> tuple[str, str] | None:
    """The listener, in lower case, and its key; None if this is not the name of a listener's own setting."""
    if not name.startswith(LISTENER_PREFIX):
        return None
    listener, dot, key = name.removeprefix(LISTENER_PREFIX).partition(".")
    return (listener, key) if listener and dot and key.startswith(OF_LISTENERS) else None


def prefixed(listener: str, key: str) -> str:
    assert key.startswith(OF_LISTENERS)
    return f"{LISTENER_PREFIX}{listener.lower()}.{key}"
