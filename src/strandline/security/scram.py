"""SCRAM (RFC 5802, RFC 7677): a client proves that it knows a password without sending it, and the server proves that
it knows the client.

Two machines without sockets. `Scram`, the client: `first` → `final(answer)` → `verify(answer)`. `ScramServer`, for one
exchange: `first(message)` → `final(message)`. Both raise `ValueError` if the other side does not keep to the protocol
or fails to prove what it must. Neither passwords nor keys are in an error's text.
"""

import hashlib
import hmac
from base64 import b64decode, b64encode
from binascii import Error as Base64Error

from strandline.metadata.security.scram import HASHES as HASHES
from strandline.metadata.security.scram import ScramCredential as ScramCredential
from strandline.metadata.security.scram import salted_credential as salted_credential

ITERATIONS_MIN = 4096  # Kafka's, and RFC 7677's: fewer would make a stolen exchange cheap to guess from
ITERATIONS_MAX = 10_000_000
NO_BINDING = "n,,"
NO_BINDING_ENCODED = b64encode(NO_BINDING.encode()).decode()


def credential_of(mechanism: str, password: str, salt: bytes, iterations: int) -> ScramCredential:
    """What to keep of a password. Raises `ValueError` if there are too few or too many iterations."""
    if not ITERATIONS_MIN <= iterations <= ITERATIONS_MAX:
        raise ValueError(f"{iterations} iterations; {ITERATIONS_MIN} are the least")
    salted = hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)
    return salted_credential(mechanism, salted, salt, iterations)


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

    def final(self, answer: bytes, salted: bytes | None = None) -> bytes:
        """To the server's first message. `salted`: the password, hashed with its salt and iterations, if that is known
        already."""
        fields = attributes(answer)
        if fields.get("m") is not None:
            raise ValueError("it demands an extension that we do not know")
        nonce, salt, iterations = fields.get("r", ""), fields.get("s", ""), fields.get("i", "")
        if not nonce.startswith(self.nonce) or nonce == self.nonce:
            raise ValueError("its nonce does not continue ours")
        if not iterations.isdecimal() or not ITERATIONS_MIN <= int(iterations) <= ITERATIONS_MAX:
            raise ValueError(f"it asks for '{iterations}' iterations; {ITERATIONS_MIN} are the least")
        if salted is None:
            salted = hashlib.pbkdf2_hmac(self.hash, self.password, decoded(salt), int(iterations))
        without_proof = f"c={NO_BINDING_ENCODED},r={nonce}"
        said = ",".join((self.bare, answer.decode(), without_proof)).encode()
        client_key = self.keyed(salted, b"Client Key")
        signature = self.keyed(hashlib.new(self.hash, client_key).digest(), said)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self.server_signature = self.keyed(self.keyed(salted, b"Server Key"), said)
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def verify(self, answer: bytes) -> None:
        """The server's last message: it knows us, or says why not."""
        fields = attributes(answer)
        if "e" in fields:
            raise ValueError(fields["e"])
        if not hmac.compare_digest(decoded(fields.get("v", "")), self.server_signature):
            raise ValueError("it does not know our password, but pretends to")

    def keyed(self, key: bytes, content: bytes) -> bytes:
        return hmac.new(key, content, self.hash).digest()


class ScramServer:
    """The server's side of one exchange."""

    def __init__(self, nonce: str) -> None:
        """`nonce`: at least 18 random bytes as text, new for each exchange."""
        assert len(nonce) >= 24, "nobody can guess it"
        self.nonce = nonce
        self.username = ""
        self.bare = ""
        self.first_answer = ""

    def begin(self, message: bytes) -> str:
        """The client's first message; returns the username that it wants to prove."""
        assert not self.bare, "an exchange begins once"
        text = message.decode("utf-8", "strict")
        header, bare = text[:3], text[3:]
        if header not in (NO_BINDING, "y,,"):
            raise ValueError("it demands channel binding or another identity, which are not supported")
        fields = attributes(bare.encode())
        if "m" in fields:
            raise ValueError("it demands an extension that we do not know")
        name, self.client_nonce = fields.get("n", ""), fields.get("r", "")
        if not name or not self.client_nonce:
            raise ValueError("its first message has no name or no nonce")
        self.header, self.bare = header, bare
        self.username = unquoted(name)
        return self.username

    def first(self, credential: ScramCredential) -> bytes:
        """The answer to the first message: how this user's password is salted."""
        assert self.bare, "begun before"
        self.credential = credential
        salt = b64encode(credential.salt).decode()
        self.first_answer = f"r={self.client_nonce}{self.nonce},s={salt},i={credential.iterations}"
        return self.first_answer.encode()

    def final(self, message: bytes) -> bytes:
        """The answer to the client's proof. Raises `ValueError` if it proves nothing."""
        assert self.first_answer, "the client knows the salt"
        text = message.decode("utf-8", "strict")
        without_proof, _, proof = text.rpartition(",p=")
        fields = attributes(without_proof.encode())
        # As Kafka 3.9 and not 4: librdkafka before 2.6.1 repeats its own nonce. Ours makes the exchange a new one.
        is_ours = fields.get("r", "").endswith(self.nonce)
        if fields.get("c") != b64encode(self.header.encode()).decode() or not is_ours:
            raise ValueError("its proof is for another exchange")
        name = HASHES[self.credential.mechanism]
        said = ",".join((self.bare, self.first_answer, without_proof)).encode()
        signature = hmac.digest(self.credential.stored_key, said, name)
        given = decoded(proof)
        if len(given) != len(signature):
            raise ValueError("its proof is wrong")
        client_key = bytes(a ^ b for a, b in zip(given, signature, strict=True))
        if not hmac.compare_digest(hashlib.new(name, client_key).digest(), self.credential.stored_key):
            raise ValueError("its proof is wrong")
        return b"v=" + b64encode(hmac.digest(self.credential.server_key, said, name))


def unquoted(name: str) -> str:
    """A user name as SCRAM writes it, with ',' and '=' as =2C and =3D."""
    plain = name.replace("=2C", ",").replace("=3D", "=")
    if plain.replace("=", "=3D").replace(",", "=2C") != name:
        raise ValueError("its user name is not written as RFC 5802 says")
    return plain


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
