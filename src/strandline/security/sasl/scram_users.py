"""SCRAM of users: their credentials are metadata.

Somebody who is not a user looks like one with a wrong password, and takes as long: the exchange goes on with a
credential that nobody can fulfil. It is derived from the name and a secret of the cluster, so that it is the same
whenever and wherever it is asked for, as a real one is.
"""

import hmac
from collections.abc import Callable

from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.security.sasl.exchange import Accepted, Challenge, Rejected, Verdict
from strandline.security.scram import HASHES, ITERATIONS_MIN, ScramCredential, ScramServer

CredentialOf = Callable[[str, str], ScramCredential | None]  # of a user, for a mechanism

SALT_BYTES = 24  # as commands of this project draw them


class Shape(Value, frozen=True):
    """What a client sees of a credential before it has proved anything."""

    salt_bytes: int = SALT_BYTES
    iterations: int = ITERATIONS_MIN


class ScramUsers:
    """The users of a cluster, for exchanges of all mechanisms."""

    def __init__(self, credential_of: CredentialOf, secret: bytes) -> None:
        """`secret`: nobody else knows it."""
        self.credential_of = credential_of
        self.secret = secret
        self.shapes: dict[str, Shape] = {}  # by mechanism: the last real one

    def find(self, user: str, mechanism: str) -> tuple[ScramCredential, bool]:
        """A credential, and whether it is real."""
        known = self.credential_of(user, mechanism)
        fake = self.fake(user, mechanism)  # made in any case: it takes time
        if known is None:
            return fake, False
        assert known.mechanism == mechanism
        self.shapes[mechanism] = Shape(len(known.salt), known.iterations)
        return known, True

    def fake(self, user: str, mechanism: str) -> ScramCredential:
        """As users of this mechanism have them."""
        shape = self.shapes.get(mechanism, Shape())
        drawn = b"".join(self.drawn(part, user, mechanism) for part in range(-(-shape.salt_bytes // 64) or 1))
        key = self.drawn(-1, user, mechanism)[: hmac.new(b"", b"", HASHES[mechanism]).digest_size]
        return ScramCredential(mechanism, drawn[: shape.salt_bytes], key, key, shape.iterations)

    def drawn(self, part: int, user: str, mechanism: str) -> bytes:
        """64 bytes."""
        return hmac.digest(self.secret, f"{part} {mechanism} {user}".encode(), "sha512")


class ScramExchange:
    def __init__(self, mechanism: str, users: ScramUsers, nonce: str) -> None:
        self.mechanism = mechanism
        self.users = users
        self.scram = ScramServer(nonce)
        self.is_user = False

    def step(self, token: bytes, now: Instant) -> Verdict:
        try:
            if not self.scram.bare:
                user = self.scram.begin(token)
                credential, self.is_user = self.users.find(user, self.mechanism)
                return Challenge(self.scram.first(credential))
            answer = self.scram.final(token)
        except ValueError as error:
            return self.rejected(str(error))
        return Accepted(answer, f"User:{self.scram.username}") if self.is_user else self.rejected("no such user")

    def rejected(self, why: str) -> Rejected:
        text = (
            f"Authentication failed during authentication due to invalid credentials with SASL mechanism"
            f" {self.mechanism}"
        )
        if not self.scram.first_answer:
            return Rejected(text, why)
        return Rejected(text, f"user {self.scram.username}: {why}" if self.is_user else "no such user")
