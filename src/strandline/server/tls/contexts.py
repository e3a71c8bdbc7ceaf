"""SSL contexts of a listener: for the clients that connect to it, and for connections to the same listener of another
node.

A context is never changed once it is used: other certificates are another context, for handshakes from then on. So
nothing of an old one stays valid there, no resumed session either.
"""

import ssl

from strandline.base.value import Value
from strandline.broker.listeners.settings import ListenerSettings
from strandline.broker.listeners.tls import client_auth
from strandline.security.certificates import read_certificate
from strandline.security.ciphers import suites
from strandline.server.tls.alerts import AlertingContext
from strandline.server.tls.loading import limit_versions, load_own, load_trusted
from strandline.server.tls.stores import BadStore, KeyStore, Stores, read_stores

VERIFY = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class Contexts(Value, frozen=True):
    server: ssl.SSLContext | None  # None: nobody listens here by this name
    client: ssl.SSLContext
    not_after: str  # of the node's own certificate, ISO 8601; empty if it has none


def read_contexts(settings: ListenerSettings, *, is_served: bool, is_for_nodes: bool) -> Contexts:
    """`is_for_nodes`: other nodes connect to it, so that they must believe its certificate. Raises BadStore."""
    stores = read_stores(settings)
    try:
        server = server_context(settings, stores) if is_served else None
        client = client_context(settings, stores)
    except (ssl.SSLError, ValueError) as error:
        raise BadStore(why_unusable(settings, stores.own, error)) from None
    if server is not None and is_for_nodes:
        believe_each_other(settings, server, client)
    return Contexts(server, client, end_of(stores.own))


def server_context(settings: ListenerSettings, stores: Stores) -> ssl.SSLContext:
    context = AlertingContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION  # it costs the server more than the client
    limit(context, settings)
    load(context, stores.own)
    context.verify_mode = VERIFY[client_auth(settings)]
    if context.verify_mode != ssl.CERT_NONE:
        assert stores.trusted, "refused before: not everybody with any certificate"
        trust(context, stores.trusted)
    return context


def client_context(settings: ListenerSettings, stores: Stores) -> ssl.SSLContext:
    context = AlertingContext(ssl.PROTOCOL_TLS_CLIENT)
    limit(context, settings)
    if stores.own.chain:
        load(context, stores.own)
    context.check_hostname = bool(settings.text("ssl.endpoint.identification.algorithm"))
    trust(context, stores.trusted)
    return context


def limit(context: ssl.SSLContext, settings: ListenerSettings) -> None:
    names = settings.texts("ssl.cipher.suites")
    ciphers, possible = suites(",".join(names))
    enabled = settings.texts("ssl.enabled.protocols")
    versions = tuple(version for version in possible if version in enabled)
    assert versions, "refused before"
    limit_versions(context, versions)
    if ciphers:
        try:
            context.set_ciphers(ciphers)
        except ssl.SSLError:
            why = "`openssl ciphers -stdname` lists those that it has, by both of their names"
            name = settings.named("ssl.cipher.suites")
            raise BadStore(f"{name}: OpenSSL has none of {', '.join(names)}; {why}") from None


def load(context: ssl.SSLContext, own: KeyStore) -> None:
    load_own(context, own.chain, own.key, own.password)


def trust(context: ssl.SSLContext, trusted: str) -> None:
    load_trusted(context, trusted)
    # As in Java, whatever is in the trust store is trusted, not only authorities that signed themselves.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


def why_unusable(settings: ListenerSettings, own: KeyStore, error: Exception) -> str:
    reason = getattr(error, "reason", None) or ""
    if reason == "KEY_VALUES_MISMATCH":
        why = "the private key does not belong to the certificate, which must be the first of the chain"
    elif "ENCRYPTED" in own.key.reveal and (not reason or "BAD" in reason or "PEM" in str(error)):
        why = "the private key is encrypted, and ssl.key.password is missing or wrong"
    else:
        why = str(error)
    return f"Listener {settings.listener}: the certificates or the key cannot be used: {why}"


def end_of(own: KeyStore) -> str:
    if not own.chain:
        return ""
    first = own.chain[own.chain.index("-----BEGIN CERTIFICATE-----") :].partition("-----END CERTIFICATE-----")
    return read_certificate(ssl.PEM_cert_to_DER_cert(first[0] + first[1])).not_after


def believe_each_other(settings: ListenerSettings, server: ssl.SSLContext, client: ssl.SSLContext) -> None:
    """A handshake in memory, as in Kafka: a node that no other node believes should not start, nor take a certificate
    like that from a changed file. Host names are not looked at. Raises BadStore."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    checks, client.check_hostname = client.check_hostname, False
    try:
        sides = [
            client.wrap_bio(to_client, to_server),
            server.wrap_bio(to_server, to_client, server_side=True),
        ]
        for side in sides * 4:  # a handshake takes two rounds
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError as error:
                raise BadStore(
                    f"Listener {settings.listener}: other nodes would not believe this node's certificate: {error}."
                    f" {settings.named('ssl.truststore.location')} must have the authority that signed"
                    f" {settings.named('ssl.keystore.location')}"
                ) from None
    finally:
        client.check_hostname = checks
