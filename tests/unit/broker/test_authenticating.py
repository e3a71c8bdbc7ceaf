"""Clients prove who they are: PLAIN, SCRAM and OAUTHBEARER as a node answers them, and what failures look like."""

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Callable
from random import Random

import pytest
from tests.rows import each

from strandline.base.effects import Authenticated, Caller, Effect, Received, Refuse, Reply, ReplyTo
from strandline.base.errors import ErrorCode
from strandline.base.ids import NodeId
from strandline.base.secret import Secret
from strandline.base.time import Instant
from strandline.broker.authenticating import Authenticating
from strandline.broker.listeners.sasl import SaslRules
from strandline.security.sasl.node_secret import Introduction
from strandline.security.sasl.oauthbearer import Token
from strandline.security.scram import Scram, ScramCredential, attributes, credential_of
from strandline.security.secret import SECRET_MECHANISM, ClusterSecret
from strandline.wire.messages.cluster.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from strandline.wire.messages.cluster.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

PLAIN, SHA_256, SHA_512, BEARER = "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"
ALL = (PLAIN, SHA_256, SHA_512, BEARER)
INVALID = "Authentication failed during authentication due to invalid credentials with SASL mechanism "
ME = NodeId(1)
SECRET = ClusterSecret("a secret of the cluster", ME)
START = Instant(1_000_000)
SALT = b"salt of 18 letters"
USERS = {
    ("alice", SHA_256): credential_of(SHA_256, "alice-secret", SALT, 5000),
    ("alice", SHA_512): credential_of(SHA_512, "alice-secret", SALT, 4096),
    ("bob", SHA_256): credential_of(SHA_256, "bob-secret", SALT, 5000),
}


class Words:
    """Tokens that say a user and an end, without any signature: `alice.1000`."""

    def check(self, token: str, now: Instant) -> Token:
        name, _, end = token.partition(".")
        if not end.isdecimal():
            raise ValueError("its token is not valid")
        return Token(name, Instant(START + int(end)))


class Door:
    def __init__(
        self, seed: int = 1, reauth_ms: dict[str, int] | None = None, secret: ClusterSecret | None = SECRET
    ) -> None:
        users = {"alice": Secret("alice-secret"), "bob": Secret("bob-secret")}
        rules = SaslRules(ALL, users, reauth_ms or {})
        few = SaslRules((SHA_512,), {}, {})
        self.machine = Authenticating(secret, Random(seed), {"SASL": rules, "FEW": few}, self.credential_of, 100)
        self.machine.tokens = {"SASL": Words()}
        self.now = START
        self.effects: list[Effect] = []  # of the last request, beyond the answer

    def credential_of(self, user: str, mechanism: str) -> ScramCredential | None:
        return USERS.get((user, mechanism))

    def received(self, message: object, version: int, connection: int, listener: str) -> Received:
        return Received(ReplyTo(connection, 0, 0, 0, version), Caller("c", "127.0.0.1", listener), message)

    def handshake(
        self, mechanism: str, connection: int = 1, listener: str = "SASL", version: int = 1
    ) -> SaslHandshakeResponse:
        request = self.received(SaslHandshakeRequest(mechanism=mechanism), version, connection, listener)
        first, *self.effects = self.machine.handshake(request, self.now)
        assert isinstance(first, Reply | Refuse)
        if isinstance(first, Refuse):
            self.effects.append(first)
        answer: SaslHandshakeResponse = first.message
        return answer

    def say(
        self, token: bytes, connection: int = 1, listener: str = "SASL", version: int = 2
    ) -> SaslAuthenticateResponse:
        request = self.received(SaslAuthenticateRequest(auth_bytes=token), version, connection, listener)
        first, *self.effects = self.machine.authenticate(request, self.now)
        assert isinstance(first, Reply | Refuse)
        if isinstance(first, Refuse):
            self.effects.append(first)
        answer: SaslAuthenticateResponse = first.message
        return answer

    def log_in(self, mechanism: str, user: str, password: str, connection: int = 1) -> SaslAuthenticateResponse:
        """The last answer."""
        assert self.handshake(mechanism, connection).error_code == ErrorCode.NONE
        if mechanism == PLAIN:
            return self.say(f"\0{user}\0{password}".encode(), connection)
        if mechanism == BEARER:
            return self.say(f"n,,\x01auth=Bearer {user}.{password}\x01\x01".encode(), connection)
        client = Scram(mechanism, user, password, "a nonce of a client")
        answer = self.say(client.final(self.say(client.first(), connection).auth_bytes), connection)
        if answer.error_code == ErrorCode.NONE:
            client.verify(answer.auth_bytes)
        return answer

    def why(self) -> str:
        (refused,) = self.effects
        assert isinstance(refused, Refuse)
        assert refused.after_ms == 100, "who fails waits"
        return refused.why


@each("mechanism", [PLAIN, SHA_256, SHA_512])
def test_a_user_who_knows_the_password_is_let_in(mechanism: str) -> None:
    door = Door()
    assert door.log_in(mechanism, "alice", "alice-secret").error_code == ErrorCode.NONE
    assert door.effects == [Authenticated(1, "User:alice", is_node=False)]
    assert not door.machine.attempts


@each("mechanism", [PLAIN, SHA_256, SHA_512])
def test_a_wrong_password_and_an_unknown_user_get_the_same_answer(mechanism: str) -> None:
    text = "Authentication failed: Invalid username or password" if mechanism == PLAIN else INVALID + mechanism
    for user, password in (("alice", "bob-secret"), ("nobody", "alice-secret"), ("alice", "alice-secret ")):
        door = Door()
        answer = door.log_in(mechanism, user, password)
        assert (answer.error_code, answer.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, text)
        assert ("user alice" in door.why()) == (user == "alice")
        assert "secret" not in door.why() and "nobody" not in door.why()
        assert not door.machine.attempts and not door.machine.sessions


def challenge(door: Door, user: str, connection: int) -> dict[str, str]:
    door.handshake(SHA_256, connection)
    answer = door.say(f"n,,n={user},r=abc".encode(), connection).auth_bytes.decode()
    return dict(part.split("=", 1) for part in answer.split(","))  # type: ignore[misc]


def test_an_unknown_user_has_a_salt_as_users_have_it_and_always_the_same() -> None:
    first, second = Door(seed=1), Door(seed=2)  # nodes of one cluster, or the same one after a restart
    challenge(first, "alice", 1), challenge(second, "alice", 1)
    known, unknown = challenge(first, "bob", 2), challenge(first, "carol", 3)
    assert (len(unknown["s"]), unknown["i"]) == (len(known["s"]), known["i"])
    assert unknown["s"] == challenge(first, "carol", 4)["s"] == challenge(second, "carol", 5)["s"]
    assert unknown["s"] != challenge(first, "dave", 6)["s"]
    elsewhere = Door(secret=ClusterSecret("the secret of another cluster"))
    challenge(elsewhere, "alice", 1)
    assert unknown["s"] != challenge(elsewhere, "carol", 2)["s"]


def test_nobody_can_fulfil_what_an_unknown_user_is_asked_for() -> None:
    """Not even with the keys that were made up, which are derived from a secret."""
    door = Door()
    door.handshake(SHA_256)
    credential, is_real = door.machine.users.find("carol", SHA_256)
    assert not is_real
    exchange = door.machine.attempts[1].exchange
    door.say(b"n,,n=carol,r=abc")
    exchange.scram.credential = credential_of(SHA_256, "guessed", credential.salt, 4096)  # type: ignore[attr-defined]
    client = Scram(SHA_256, "carol", "guessed", "abc")
    final = client.final(exchange.scram.first_answer.encode())  # type: ignore[attr-defined]
    assert door.say(final).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


@each(
    ("token", "text"),
    [
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0alice-secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0alice-secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0alice-secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0nobody\0", "Authentication failed: password not specified"),
        (b"\0alice\0\xff", "Invalid SASL/PLAIN response: it is not UTF-8"),
        (
            b"bob\0alice\0alice-secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (b"alice\0alice\0alice-secret", None),
    ],
)
def test_a_message_of_plain(token: bytes, text: str | None) -> None:
    door = Door()
    door.handshake(PLAIN)
    answer = door.say(token)
    failed = text is not None
    assert (answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED, answer.error_message) == (failed, text)


@each(
    ("token", "user"),
    [
        (b"n,,\x01auth=Bearer alice.5000\x01\x01", "alice"),
        (b"n,a=alice,\x01auth=bearer alice.5000\x01host=h\x01\x01", "alice"),
        (b"n,a=bob,\x01auth=Bearer alice.5000\x01\x01", ""),
        (b"n,,\x01auth=Basic alice.5000\x01\x01", ""),
        (b"n,,\x01host=h\x01\x01", ""),
        (b"n,,\x01\x01", ""),
        (b"n,,\x01auth=Bearer alice.5000\x01", ""),
        (b"p=tls,,\x01auth=Bearer alice.5000\x01\x01", ""),
        (b"auth=Bearer alice.5000", ""),
        (b"\x01", ""),
        (b"\xff\x00", ""),
    ],
)
def test_a_first_message_of_oauthbearer(token: bytes, user: str) -> None:
    door = Door()
    door.handshake(BEARER)
    answer = door.say(token)
    if user:
        assert (answer.error_code, answer.session_lifetime_ms) == (ErrorCode.NONE, 5000)
        assert door.effects == [Authenticated(1, f"User:{user}", False, 5000)]
    else:
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert answer.error_message in (INVALID + BEARER, DIFFERENT)


DIFFERENT = (
    "Authentication failed: Client requested an authorization id that is different from the token's principal name"
)


@each(("then", "text"), [(b"\x01", '{"status":"invalid_token"}'), (b"x", INVALID + BEARER)])
def test_an_invalid_token_is_reported_as_rfc_7628_says_and_then_the_exchange_fails(then: bytes, text: str) -> None:
    door = Door()
    first = door.log_in(BEARER, "alice", "forged")
    assert (first.error_code, first.auth_bytes) == (ErrorCode.NONE, b'{"status":"invalid_token"}')
    assert not door.effects
    answer = door.say(then)
    assert (answer.error_code, answer.error_message) == (ErrorCode.SASL_AUTHENTICATION_FAILED, text)
    assert "not valid" in door.why()


def test_a_mechanism_that_is_not_enabled_is_answered_with_those_that_are() -> None:
    for mechanism in ("GSSAPI", "scram-sha-512", "", SHA_256):
        door = Door()
        answer = door.handshake(mechanism, listener="FEW")
        assert (answer.error_code, answer.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, (SHA_512,))
        assert "not enabled" in door.why()
    assert Door().handshake(SHA_512, listener="FEW").error_code == ErrorCode.NONE


def test_what_comes_out_of_turn_costs_the_connection() -> None:
    door = Door()
    answer = door.say(b"\0alice\0alice-secret")
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.ILLEGAL_SASL_STATE,
        "SaslAuthenticate request received before SaslHandshake",
    )
    assert "without SaslHandshake" in door.why()
    door.handshake(PLAIN, 2)
    assert door.handshake(PLAIN, 2).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert "in the middle" in door.why()
    assert door.handshake(PLAIN, 3, version=0).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert "version 0" in door.why()


def test_a_listener_without_sasl_takes_no_user() -> None:
    for mechanism in ALL:
        assert Door().handshake(mechanism, listener="PLAINTEXT").error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_a_node_proves_the_secret_where_clients_prove_who_they_are() -> None:
    door, client = Door(), Introduction(SECRET, "strandline-2", "n" * 32, ME)
    waiting = list(client.begin())
    while waiting:
        message = waiting.pop(0)
        is_first = isinstance(message, SaslHandshakeRequest)
        answer = door.handshake(SECRET_MECHANISM) if is_first else door.say(message.auth_bytes)  # type: ignore[attr-defined]
        further = client.answered(answer)
        waiting += [] if further is None else [further]
    assert client.is_over
    assert door.effects == [Authenticated(1, "Node:strandline-2", is_node=True)]
    assert Door(secret=None).handshake(SECRET_MECHANISM).error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM


# --- sessions that end (KIP-368)


@each(
    ("limit", "token_ms", "expected"),
    [(0, 5000, 5000), (3000, 5000, 3000), (9000, 5000, 5000), (3000, -1, 3000), (0, -1, 0), (0, 0, 1)],
)
def test_a_session_lasts_as_long_as_the_listener_and_the_token_let_it(limit: int, token_ms: int, expected: int) -> None:
    door = Door(reauth_ms={BEARER: limit, SHA_256: limit})
    if token_ms < 0:
        answer = door.log_in(SHA_256, "alice", "alice-secret")
    else:
        answer = door.log_in(BEARER, "alice", str(token_ms))
    assert answer.session_lifetime_ms == expected
    assert door.effects == [Authenticated(1, "User:alice", False, expected)]


def test_an_old_client_is_not_told_how_long_its_session_lasts_and_it_ends_all_the_same() -> None:
    door = Door(reauth_ms={PLAIN: 3000})
    door.handshake(PLAIN)
    assert door.say(b"\0alice\0alice-secret", version=0).session_lifetime_ms == 0
    assert door.effects == [Authenticated(1, "User:alice", False, 3000)]


def test_a_connection_authenticates_again_as_the_same_user_by_the_same_mechanism() -> None:
    door = Door(reauth_ms={SHA_256: 3000})
    door.log_in(SHA_256, "alice", "alice-secret")
    assert door.handshake(SHA_256).error_code == ErrorCode.ILLEGAL_SASL_STATE, "not so soon"
    assert door.effects == []
    door.now = Instant(START + 1000)
    assert door.log_in(SHA_256, "alice", "alice-secret").session_lifetime_ms == 3000
    assert door.effects == [Authenticated(1, "User:alice", False, 3000)]


def test_a_connection_cannot_become_another_user() -> None:
    door = Door()
    door.log_in(SHA_256, "alice", "alice-secret")
    door.now = Instant(START + 1000)
    answer = door.log_in(SHA_256, "bob", "bob-secret")
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        "Cannot change principals during re-authentication from User.alice: User.bob",
    )
    assert door.why()


def test_a_connection_cannot_take_another_mechanism() -> None:
    door = Door()
    door.log_in(SHA_256, "alice", "alice-secret")
    door.now = Instant(START + 1000)
    answer = door.log_in(PLAIN, "alice", "alice-secret")
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        "SASL mechanism 'PLAIN' requested by client is not supported for re-authentication of mechanism"
        " 'SCRAM-SHA-256'",
    )


def test_what_a_closed_connection_had_proved_is_forgotten() -> None:
    door = Door()
    door.log_in(PLAIN, "alice", "alice-secret")
    door.handshake(PLAIN, 2)
    door.machine.forget(1), door.machine.forget(2)
    assert not door.machine.sessions and not door.machine.attempts
    assert door.say(b"\0alice\0alice-secret").error_code == ErrorCode.ILLEGAL_SASL_STATE


def test_after_it_has_authenticated_a_connection_learns_that_it_did() -> None:
    """Kafka's answer to SaslAuthenticate without SaslHandshake before it."""
    door = Door()
    door.log_in(PLAIN, "alice", "alice-secret")
    answer = door.say(b"\0alice\0alice-secret")
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert answer.error_message == "SaslAuthenticate request received after successful authentication"
    assert door.effects == []


# --- SCRAM, as the RFCs have it


def test_the_servers_side_of_rfc_7677(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        USERS, ("user", SHA_256), credential_of(SHA_256, "pencil", b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), 4096)
    )
    door = Door()
    door.handshake(SHA_256)
    scram = door.machine.attempts[1].exchange.scram  # type: ignore[attr-defined]
    scram.nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    first = door.say(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    assert first.auth_bytes == f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
    final = door.say(f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode())
    assert final.auth_bytes == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert door.effects == [Authenticated(1, "User:user", is_node=False)]


class Stubborn(Scram):
    """A client that puts another nonce into its last message, and proves that it knows the password."""

    def __init__(self, mechanism: str, change: Callable[[str], str]) -> None:
        super().__init__(mechanism, "alice", "alice-secret", "a nonce of a client")
        self.change = change

    def final(self, answer: bytes) -> bytes:
        credential = USERS["alice", SHA_256]
        salted = hashlib.pbkdf2_hmac("sha256", b"alice-secret", credential.salt, credential.iterations)
        nonce = self.change(attributes(answer)["r"])
        said = f"{self.bare},{answer.decode()},c=biws,r={nonce}".encode()
        key = self.keyed(salted, b"Client Key")
        signature = self.keyed(hashlib.sha256(key).digest(), said)
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        return f"c=biws,r={nonce},p={b64encode(proof).decode()}".encode()


@each(
    ("change", "is_let_in"),
    [
        (lambda nonce: nonce, True),
        (lambda nonce: "a nonce of a client" + nonce, True),  # librdkafka before 2.6.1
        (lambda nonce: nonce + "x", False),
        (lambda nonce: nonce[:-1], False),
        (lambda nonce: "a nonce of a client", False),
        (lambda nonce: "", False),
    ],
)
def test_the_last_message_is_for_this_exchange(change: Callable[[str], str], is_let_in: bool) -> None:
    door, client = Door(), Stubborn(SHA_256, change)
    door.handshake(SHA_256)
    answer = door.say(client.final(door.say(client.first()).auth_bytes))
    assert (answer.error_code == ErrorCode.NONE) == is_let_in
