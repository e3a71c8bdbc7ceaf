"""What is wrong in a listener's settings for TLS, as far as no file must be read for it; in Kafka's words where it has
some.

Invariants:
  - a listener that lets clients prove who they are by certificates never believes all authorities of the system.
"""

from collections.abc import Iterator

from strandline.broker.listeners.settings import ListenerSettings
from strandline.metadata.configs.tls_configs import PEM, prefixed
from strandline.security.ciphers import suites
from strandline.security.principals import BadRule, mapping_of
from strandline.security.protocols import uses_sasl, uses_tls

REQUIRED, NONE = "required", "none"


def client_auth(settings: ListenerSettings) -> str:
    """Clients of SASL prove who they are by SASL: for them only the listener's own setting counts (KIP-684)."""
    if uses_sasl(settings.protocol) and "ssl.client.auth" not in settings.own:
        return NONE
    return settings.text("ssl.client.auth")


def tls_problems(settings: ListenerSettings, *, is_served: bool) -> Iterator[str]:
    """`is_served`: the node listens there; otherwise it only connects to listeners of other nodes."""
    assert uses_tls(settings.protocol)
    yield from key_store_problems(settings)
    yield from trust_store_problems(settings)
    yield from cipher_problems(settings)
    has_key = settings.text("ssl.keystore.location") or settings.secret("ssl.keystore.key") is not None
    if is_served and not has_key:
        own = prefixed(settings.listener, "ssl.keystore.location")
        yield (
            f"Listener {settings.listener} speaks {settings.protocol} and has no certificate: set ssl.keystore.location"
            f" (or {own}) to a file with its private key and certificate chain, or ssl.keystore.key and"
            " ssl.keystore.certificate.chain"
        )
    trusts = settings.text("ssl.truststore.location") or settings.secret("ssl.truststore.certificates") is not None
    if is_served and client_auth(settings) != NONE and not trusts:
        yield (
            f"Listener {settings.listener} has {settings.named('ssl.client.auth')}={client_auth(settings)} and trusts"
            " nobody: set ssl.truststore.location to the certificates of the authorities that sign clients"
        )
    try:
        mapping_of(settings.text("ssl.principal.mapping.rules"))
    except BadRule as error:
        name = settings.named("ssl.principal.mapping.rules")
        yield f"Invalid value for configuration {name}: Invalid rule: {error}"


def key_store_problems(settings: ListenerSettings) -> Iterator[str]:
    location, kind = settings.text("ssl.keystore.location"), settings.text("ssl.keystore.type").upper()
    key, chain = settings.secret("ssl.keystore.key"), settings.secret("ssl.keystore.certificate.chain")
    password = settings.secret("ssl.keystore.password")
    where = f"Listener {settings.listener}: "
    if key is not None and kind != PEM:
        yield f"{where}SSL private key can be specified only for PEM, but key store type is {kind}."
    if key is not None and chain is None:
        yield f"{where}SSL private key is specified, but certificate chain is not specified."
    if chain is not None and key is None:
        yield f"{where}SSL certificate chain is specified, but private key is not specified."
    if key is not None and location:
        yield f"{where}Both SSL key store location and separate private key are specified."
    if password is not None and kind == PEM:
        why = "SSL key store password cannot be specified with PEM format, only key password may be specified."
        yield where + why
    elif password is not None and not location:
        yield f"{where}SSL key store is not specified, but key store password is specified."


def trust_store_problems(settings: ListenerSettings) -> Iterator[str]:
    location, kind = settings.text("ssl.truststore.location"), settings.text("ssl.truststore.type").upper()
    certificates = settings.secret("ssl.truststore.certificates")
    password = settings.secret("ssl.truststore.password")
    where = f"Listener {settings.listener}: "
    if certificates is not None and kind != PEM:
        yield f"{where}SSL trust store certificates can be specified only for PEM, but trust store type is {kind}."
    if certificates is not None and location:
        yield f"{where}Both SSL trust store location and separate trust certificates are specified."
    if password is not None and kind == PEM:
        yield f"{where}SSL trust store password cannot be specified for PEM format."
    elif password is not None and not location:
        yield f"{where}SSL trust store is not specified, but trust store password is specified."


def cipher_problems(settings: ListenerSettings) -> Iterator[str]:
    _, possible = suites(",".join(settings.texts("ssl.cipher.suites")))
    enabled = settings.texts("ssl.enabled.protocols")
    if not set(possible) & set(enabled):
        name = settings.named("ssl.cipher.suites")
        yield f"Listener {settings.listener}: {name} has no suite of {' or '.join(enabled)}"
