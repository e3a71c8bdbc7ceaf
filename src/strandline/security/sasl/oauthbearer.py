"""OAUTHBEARER (RFC 7628, KIP-255): the client shows a token that somebody else has signed.

One message, `n,,^Aauth=Bearer TOKEN^A^A` (^A is the byte 1). If the token is not valid the client gets that as JSON,
has to answer with ^A, and only then the exchange fails.
"""

import re
from typing import Protocol

from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.security.sasl.exchange import Accepted, Challenge, Rejected, Verdict

FIRST = re.compile(
    rb"[ny],(?:a=(?P<identity>[^,\x01]*))?,\x01(?P<pairs>(?:[A-Za-z]+=[\x20-\x7E\r\n\t]+\x01)+)\x01", re.DOTALL
)
BEARER = re.compile(r"\s*bearer\s+(?P<token>[A-Za-z0-9\-._~+/]+=*)\s*", re.IGNORECASE)
INVALID = '{"status":"invalid_token"}'
WRONG = "Authentication failed during authentication due to invalid credentials with SASL mechanism OAUTHBEARER"
ANSWER_TO_ERROR = b"\x01"


class Token(Value, frozen=True):
    """What a valid token says."""

    name: str  # of its user
    until: Instant

    def __post_init__(self) -> None:
        assert self.name


class Tokens(Protocol):
    def check(self, token: str, now: Instant) -> Token:
        """Raises ValueError if the token is not valid; the text does not repeat it."""
        ...


class BearerExchange:
    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.why = ""  # the token is not valid

    def step(self, token: bytes, now: Instant) -> Verdict:
        if self.why:
            text = INVALID if token == ANSWER_TO_ERROR else WRONG
            return Rejected(text, self.why)
        match = FIRST.fullmatch(token)
        if match is None:
            return Rejected(WRONG, "its first message is not what RFC 7628 says")
        pairs = dict(pair.split(b"=", 1) for pair in match["pairs"].split(b"\x01") if pair)
        bearer = BEARER.fullmatch(pairs.get(b"auth", b"").decode("ascii"))
        if bearer is None:
            return Rejected(WRONG, "its first message has no bearer token")
        try:
            found = self.tokens.check(bearer["token"], now)
        except ValueError as error:
            self.why = str(error)
            return Challenge(INVALID.encode())
        identity = (match["identity"] or b"").decode("utf-8", "replace").replace("=2C", ",").replace("=3D", "=")
        if identity not in ("", found.name):
            text = (
                "Authentication failed: Client requested an authorization id that is different from the token's"
                " principal name"
            )
            return Rejected(text, f"user {found.name} wants to be somebody else")
        return Accepted(b"", f"User:{found.name}", found.until)
