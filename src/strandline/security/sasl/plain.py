"""PLAIN (RFC 4616): the client sends its name and its password, which only TLS hides from others.

One message: `[authorization id] NUL name NUL password`, in UTF-8. Texts are Kafka's.
"""

import hmac
from collections.abc import Mapping

from strandline.base.secret import Secret
from strandline.base.time import Instant
from strandline.security.sasl.exchange import Accepted, Rejected, Verdict

WRONG = "Authentication failed: Invalid username or password"


class PlainExchange:
    def __init__(self, users: Mapping[str, Secret], blind: bytes) -> None:
        """`users`: their passwords. `blind`: a key that nobody knows; passwords are compared under it, so that neither
        their content nor their length shows in the time that this takes."""
        self.users = users
        self.blind = blind

    def step(self, token: bytes, now: Instant) -> Verdict:
        try:
            parts = token.decode("utf-8").split("\0")
        except UnicodeDecodeError:
            return Rejected("Invalid SASL/PLAIN response: it is not UTF-8", "its message is not UTF-8")
        if len(parts) != 3:
            text = f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}"
            return Rejected(text, f"its message has {len(parts)} parts instead of 3")
        wanted, name, password = parts
        if not name:
            return Rejected("Authentication failed: username not specified", "it gives no user name")
        if not password:
            return Rejected("Authentication failed: password not specified", "it gives no password")
        known = self.users.get(name)
        expected = known.reveal if known is not None else ""
        if not hmac.compare_digest(self.blinded(password), self.blinded(expected)) or known is None:
            return Rejected(WRONG, "no such user" if known is None else f"a wrong password of user {name}")
        if wanted not in ("", name):
            text = "Authentication failed: Client requested an authorization id that is different from username"
            return Rejected(text, f"user {name} wants to be somebody else")
        return Accepted(b"", f"User:{name}")

    def blinded(self, password: str) -> bytes:
        return hmac.digest(self.blind, password.encode(), "sha256")
