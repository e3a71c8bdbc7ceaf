"""TLS: whom to believe, and who we are, in PEM. Hosts are verified unless a user says otherwise.

Java's key stores (JKS, PKCS12) are refused with the command that makes PEM of them.
"""

import ssl
from collections.abc import Mapping
from functools import lru_cache

from strandline.base.secret import Secret
from strandline.base.value import Value
from strandline.client.errors import BadOption
from strandline.security.ciphers import TLS12, TLS13, suites
from strandline.security.pem import PEM_MARK, unfolded
from strandline.server.tls.loading import VERSIONS, limit_versions, load_own, load_trusted


class Tls(Value, frozen=True):
    """Certificates as PEM text; empty: the system's authorities, or no certificate of our own."""

    authorities: str = ""
    chain: str = ""
    key: Secret | None = None
    key_password: Secret | None = None
    checks_hostname: bool = True
    verifies: bool = True
    ciphers: str = ""
    version_min: str = TLS12
    version_max: str = TLS13


def tls_of(given: Mapping[str, str]) -> Tls:
    """From options without their prefix, in lower case. Raises `BadOption`."""
    trust = given.get("ssl.truststore.certificates") or given.get("ssl.ca.pem")
    trust = trust or pem_file(given, "ssl.truststore.location", "ssl.truststore.type", "ssl.truststore.password")
    trust = trust or pem_file(given, "ssl.ca.location")
    chain = given.get("ssl.keystore.certificate.chain") or given.get("ssl.certificate.pem")
    chain = chain or pem_file(given, "ssl.certificate.location")
    key = given.get("ssl.keystore.key") or given.get("ssl.key.pem") or pem_file(given, "ssl.key.location")
    store = pem_file(given, "ssl.keystore.location", "ssl.keystore.type", "ssl.keystore.password")
    if store:  # a PEM key store has the key and its chain, one after the other
        key, chain = key or store, chain or store
    if bool(key) != bool(chain):
        raise BadOption(
            "a client certificate needs both its chain and its key",
            "give kafka.ssl.keystore.certificate.chain and kafka.ssl.keystore.key, or one PEM file with both in"
            " kafka.ssl.keystore.location",
        )
    ciphers, versions = chosen_ciphers(given)
    password = given.get("ssl.key.password")
    algorithm = given.get("ssl.endpoint.identification.algorithm", "https").strip().lower()
    if algorithm not in ("https", "", "none"):
        raise BadOption(f"option kafka.ssl.endpoint.identification.algorithm: '{algorithm}' is neither https nor empty")
    return Tls(
        authorities=unfolded(trust or ""),
        chain=unfolded(chain or ""),
        key=Secret(unfolded(key)) if key else None,
        key_password=Secret(password) if password else None,
        checks_hostname=algorithm == "https",
        verifies=given.get("enable.ssl.certificate.verification", "true").strip().lower() != "false",
        ciphers=ciphers,
        version_min=min(versions),
        version_max=max(versions),
    )


def chosen_ciphers(given: Mapping[str, str]) -> tuple[str, list[str]]:
    """OpenSSL's list of ciphers, and the versions of TLS that are left: never none. Raises `BadOption`."""
    enabled = [v.strip() for v in given.get("ssl.enabled.protocols", "").split(",") if v.strip()]
    for version in enabled:
        if version not in VERSIONS:
            raise BadOption(f"option kafka.ssl.enabled.protocols: '{version}' is none of {', '.join(VERSIONS)}")
    ciphers, possible = suites(given.get("ssl.cipher.suites", ""))
    versions = [version for version in possible if version in (enabled or VERSIONS)]
    if not versions:
        raise BadOption(
            f"option kafka.ssl.cipher.suites has no suite of {' or '.join(enabled or VERSIONS)}",
            "name some, in Java's way or OpenSSL's, or leave the option out",
        )
    return ciphers, versions


def pem_file(given: Mapping[str, str], location: str, type_key: str = "", password_key: str = "") -> str:
    """The text of the PEM file that the option `location` names; empty if it is not given."""
    path = given.get(location, "").strip()
    if not path:
        return ""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise BadOption(f"option kafka.{location}: cannot read {path}: {error.strerror}") from None
    text = content.decode("ascii", "replace")
    if PEM_MARK not in text:
        chosen = given.get(type_key, "JKS").upper() if type_key else "PEM"
        raise BadOption(
            f"option kafka.{location}: {path} is not PEM" + (f" ({type_key}={chosen})" if type_key else ""),
            "key stores must be PEM here: `keytool -importkeystore -srckeystore STORE -destkeystore s.p12"
            " -deststoretype PKCS12`, then `openssl pkcs12 -in s.p12 -out s.pem -nodes`, and kafka."
            + location
            + "=s.pem",
        )
    if password_key and given.get(password_key):
        raise BadOption(
            f"option kafka.{password_key}: a PEM file has no password of its own",
            "for an encrypted key give kafka.ssl.key.password",
        )
    return text


@lru_cache(maxsize=8)  # many connections have one configuration, and certificates take a while to read
def context_of(tls: Tls) -> ssl.SSLContext:
    """What sockets are wrapped by. Raises `BadOption` if certificates or keys make no sense."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    limit_versions(context, (tls.version_min, tls.version_max))
    context.check_hostname = tls.checks_hostname and tls.verifies
    context.verify_mode = ssl.CERT_REQUIRED if tls.verifies else ssl.CERT_NONE
    try:
        load_trusted(context, tls.authorities)
        if tls.chain and tls.key is not None:
            load_own(context, tls.chain, tls.key, tls.key_password)
    except (ssl.SSLError, ValueError) as error:
        raise BadOption(f"the TLS certificates or key are not usable: {error}") from None
    try:
        if tls.ciphers:
            context.set_ciphers(tls.ciphers)
    except ssl.SSLError:
        raise BadOption(
            f"option kafka.ssl.cipher.suites: OpenSSL has none of {tls.ciphers.replace(':', ', ')}",
            "`openssl ciphers -stdname` lists those that it has, by both of their names",
        ) from None
    return context
