"""SCRAM (RFC 5802, RFC 7677), the client's side: who we are is proved without saying the password, and the broker
proves that it knows us too.

A machine of three steps, without sockets: `first` → `final(answer)` → `verify(answer)`. Raises `ValueError` when the
other side does not keep to the protocol, or does not know the password.
"""

import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error as Base64Error

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
ITERATIONS_MIN = 4096  # Kafka's, and RFC 7677's: fewer would make a stolen exchange cheap to guess from
ITERATIONS_MAX = 10_000_000
NO_BINDING = "n,,"


class Scram:
    def __init__(self, mechanism: str, username: str, password: str, nonce: str) -> None:
        self.hash = HASHES[mechanism]
        self.password = password.encode()
        self.nonce = nonce
        name = username.replace("=", "=3D").replace(",", "=2C")
        self.bare = f"n={name},r={nonce}"
        self.server_signature = b""

    def first(self) -> bytes:
        return (NO_BINDING + self.bare).encode()

    def final(self, answer: bytes) -> bytes:
        """To the server's first message."""
        told = attributes(answer)
        if told.get("m") is not None:
            raise ValueError("it demands an extension that we do not know")
        nonce, salt, iterations = told.get("r", ""), told.get("s", ""), told.get("i", "")
        if not nonce.startswith(self.nonce) or nonce == self.nonce:
            raise ValueError("its nonce does not continue ours")
        if not iterations.isdecimal() or not ITERATIONS_MIN <= int(iterations) <= ITERATIONS_MAX:
            raise ValueError(f"it asks for '{iterations}' iterations; {ITERATIONS_MIN} are the least")
        salted = hashlib.pbkdf2_hmac(self.hash, self.password, decoded(salt), int(iterations))
        without_proof = f"c={b64encode(NO_BINDING.encode()).decode()},r={nonce}"
        said = ",".join((self.bare, answer.decode(), without_proof)).encode()
        client_key = self.keyed(salted, b"Client Key")
        signature = self.keyed(hashlib.new(self.hash, client_key).digest(), said)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self.server_signature = self.keyed(self.keyed(salted, b"Server Key"), said)
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def verify(self, answer: bytes) -> None:
        """The server's last message: it knows us, or says why not."""
        told = attributes(answer)
        if "e" in told:
            raise ValueError(told["e"])
        if not hmac.compare_digest(decoded(told.get("v", "")), self.server_signature):
            raise ValueError("it does not know our password, but pretends to")

    def keyed(self, key: bytes, content: bytes) -> bytes:
        return hmac.new(key, content, self.hash).digest()


def attributes(message: bytes) -> dict[str, str]:
    """a=…,b=…"""
    found: dict[str, str] = {}
    for part in message.decode("utf-8", "strict").split(","):
        name, equals, value = part.partition("=")
        if not equals or len(name) != 1:
            raise ValueError("it does not speak SCRAM")
        found.setdefault(name, value)
    return found


def decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except Base64Error:
        raise ValueError("what it says is not base64") from None
