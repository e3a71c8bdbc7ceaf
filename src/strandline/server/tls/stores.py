"""Key stores and trust stores of a listener: from files (PEM, PKCS12) or from the configuration, to PEM in memory.

What cannot be used raises `BadStore` with a sentence for the operator. Secrets are in none of them.
"""

import os
from typing import Any

from strandline.base.secret import Secret
from strandline.base.value import Value
from strandline.broker.listeners.settings import ListenerSettings
from strandline.metadata.configs.tls_configs import PKCS12
from strandline.security.pem import PEM_MARK, certificates_in, keys_in, unfolded

JKS_MARK = b"\xfe\xed\xfe\xed"
LOCATIONS = ("ssl.keystore.location", "ssl.truststore.location")
TO_PKCS12 = "`keytool -importkeystore -srckeystore {path} -destkeystore STORE.p12 -deststoretype PKCS12`"


class BadStore(Exception):
    """What is wrong, and what to do."""


class KeyStore(Value, frozen=True):
    """PEM. Without a chain there is no key."""

    chain: str = ""
    key: Secret = Secret("")
    password: Secret | None = None  # of the key


class Stores(Value, frozen=True):
    own: KeyStore
    trusted: str  # PEM; empty: the authorities of the system


def read_stores(settings: ListenerSettings) -> Stores:
    """Raises BadStore."""
    return Stores(read_key_store(settings), read_trust_store(settings))


def read_key_store(settings: ListenerSettings) -> KeyStore:
    password = settings.secret("ssl.key.password")
    key, chain = settings.secret("ssl.keystore.key"), settings.secret("ssl.keystore.certificate.chain")
    if key is not None and chain is not None:
        return KeyStore(unfolded(chain.reveal), Secret(unfolded(key.reveal)), password)
    path = settings.text("ssl.keystore.location")
    if not path:
        return KeyStore()
    name = settings.named("ssl.keystore.location")
    content = read_file(name, path)
    if settings.text("ssl.keystore.type").upper() == PKCS12:
        return key_store_of_pkcs12(content, f"{name}: {path}", settings.secret("ssl.keystore.password"))
    text = pem_text(content, name, path, settings.named("ssl.keystore.type"))
    if not keys_in(text) or not certificates_in(text):
        raise BadStore(f"{name}: {path} must have both a private key and its certificate chain, one after the other")
    return KeyStore(certificates_in(text), Secret(keys_in(text)), password)


def read_trust_store(settings: ListenerSettings) -> str:
    given = settings.secret("ssl.truststore.certificates")
    if given is not None:
        found = certificates_in(unfolded(given.reveal))
        if not found:
            raise BadStore(f"{settings.named('ssl.truststore.certificates')} has no certificate in PEM")
        return found
    path = settings.text("ssl.truststore.location")
    if not path:
        return ""
    name = settings.named("ssl.truststore.location")
    content = read_file(name, path)
    if settings.text("ssl.truststore.type").upper() == PKCS12:
        found = trusted_in_pkcs12(content, f"{name}: {path}", settings.secret("ssl.truststore.password"))
    else:
        found = certificates_in(pem_text(content, name, path, settings.named("ssl.truststore.type")))
    if not found:
        raise BadStore(f"{name}: {path} has no certificates")
    return found


def read_file(name: str, path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise BadStore(f"{name}: cannot read {path}: {error.strerror}") from None


def pem_text(content: bytes, name: str, path: str, type_name: str) -> str:
    text = content.decode("utf-8", "replace")
    if PEM_MARK in text:
        return text
    if content.startswith(JKS_MARK):
        how = TO_PKCS12.format(path=path)
        raise BadStore(f"{name}: {path} is a JKS store, which only Java reads. {how} converts it")
    hint = f"; for PKCS12 set {type_name}={PKCS12}" if content[:1] == b"\x30" else ""
    raise BadStore(f"{name}: {path} is not PEM{hint}")


def readable_by_others(settings: ListenerSettings) -> str:
    """The path of a key store that others of this machine may read, and its mode; empty if there is none."""
    path = settings.text("ssl.keystore.location")
    try:
        mode = os.stat(path).st_mode & 0o777 if path else 0
    except OSError:
        return ""
    return f"{path} (mode {mode:04o})" if mode & 0o004 else ""


def stamps(settings: ListenerSettings) -> tuple[tuple[int, ...], ...]:
    """What changes when a file of the settings changes; a file that is not there has no stamp."""
    return tuple(stamp(settings.text(key)) for key in LOCATIONS)


def stamp(path: str) -> tuple[int, ...]:
    try:
        found = os.stat(path) if path else None
    except OSError:
        return ()
    return (found.st_mtime_ns, found.st_size, found.st_ino) if found is not None else ()


# --- PKCS12, which the standard library does not read


def key_store_of_pkcs12(content: bytes, where: str, password: Secret | None) -> KeyStore:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key, chain = loaded_pkcs12(content, where, password)
    if key is None or not chain:
        raise BadStore(f"{where} must have both a private key and its certificate chain")
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return KeyStore("".join(chain), Secret(private))


def trusted_in_pkcs12(content: bytes, where: str, password: Secret | None) -> str:
    return "".join(loaded_pkcs12(content, where, password)[1])


def loaded_pkcs12(content: bytes, where: str, password: Secret | None) -> tuple[Any, list[str]]:
    """The key, if there is one, and the certificates in PEM; the key's own is the first."""
    try:
        from cryptography.hazmat.primitives.serialization import Encoding
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError:
        raise BadStore(
            f"{where} needs the package `cryptography`: `pip install 'strandline[pkcs12]'`; or convert it:"
            " `openssl pkcs12 -in STORE.p12 -out STORE.pem -nodes`, with type PEM"
        ) from None
    try:
        store = load_pkcs12(content, password.reveal.encode() if password is not None else None)
    except ValueError as error:
        why = "its password is missing or wrong" if "password" in str(error).lower() else "it is not a PKCS12 store"
        raise BadStore(f"{where} cannot be read: {why}") from None
    found = [entry for entry in (store.cert, *store.additional_certs) if entry is not None]
    return store.key, [entry.certificate.public_bytes(Encoding.PEM).decode() for entry in found]
