"""SaslHandshake and SaslAuthenticate: who is at the other end of a connection.

Nodes prove on any listener that they know the cluster's secret. Clients prove who they are on listeners with SASL, by
the mechanisms that are enabled there; on others they get ILLEGAL_SASL_STATE, as from Kafka: they learn that their
security.protocol is wrong, where a connection that is cut off says nothing.

A connection may prove it again, by the same mechanism and as the same principal (KIP-368). Whoever fails is answered
and cut off after `delay_ms`, so that many who try again cost little.

Invariants:
  - an exchange belongs to one connection, and has ended with the first verdict;
  - no answer shows whether a user exists.
"""

import hmac
from collections.abc import Callable, Mapping

from strandline.base.effects import Authenticated, Effect, Received, Refuse, Reply
from strandline.base.errors import ErrorCode
from strandline.base.ports import Rng
from strandline.base.time import Instant
from strandline.base.value import Value
from strandline.broker.config import NodeConfig
from strandline.broker.listeners.sasl import SaslRules, sasl_rules
from strandline.metadata.configs.sasl_configs import OAUTHBEARER, PLAIN
from strandline.metadata.security.scram import MECHANISM_CODES, ScramCredential, ScramKey
from strandline.security.sasl.exchange import Accepted, Challenge, Exchange, Rejected
from strandline.security.sasl.node_secret import NodeExchange
from strandline.security.sasl.oauthbearer import BearerExchange, Tokens
from strandline.security.sasl.plain import PlainExchange
from strandline.security.sasl.scram_users import CredentialOf, ScramExchange, ScramUsers
from strandline.security.secret import SECRET_MECHANISM, ClusterSecret
from strandline.wire.messages.cluster.sasl_authenticate import SaslAuthenticateResponse
from strandline.wire.messages.cluster.sasl_handshake import SaslHandshakeResponse

AFTER_HANDSHAKE = "SaslAuthenticate request received after successful authentication"  # Kafka's text, there too
WITHOUT_HANDSHAKE = "SaslAuthenticate request received before SaslHandshake"
NONCE_BYTES = 24
AGAIN_MS_MIN = 1000  # between two authentications of a connection, as in Kafka
LIFETIME_FROM = 1  # the version of SaslAuthenticate


class Session(Value, frozen=True):
    """What a connection has proved."""

    mechanism: str
    principal: str
    since: Instant


class Attempt(Value, frozen=True):
    mechanism: str
    exchange: Exchange


class Authenticating:
    def __init__(
        self,
        secret: ClusterSecret | None,
        rng: Rng,
        rules: Mapping[str, SaslRules],
        credential_of: CredentialOf,
        delay_ms: int = 0,
    ) -> None:
        """`rng`: one whose numbers nobody can guess. `rules`: by the names of listeners with SASL."""
        self.credential = None if secret is None else secret.credential()
        self.rng = rng
        self.rules = rules
        self.delay_ms = delay_ms
        self.blind = rng.randbytes(32) if rules else b""
        of_fakes = self.blind if secret is None else hmac.digest(secret.text.encode(), b"users", "sha256")
        self.users = ScramUsers(credential_of, of_fakes)
        self.tokens: Mapping[str, Tokens] = {}  # by listener; the driver has them, because it reads the keys
        self.attempts: dict[int, Attempt] = {}  # by connection, while one is under way
        self.sessions: dict[int, Session] = {}  # by connection

    def handshake(self, received: Received, now: Instant) -> list[Effect]:
        mechanism, rules = received.message.mechanism, self.rules.get(received.caller.listener)
        is_nodes = mechanism == SECRET_MECHANISM and self.credential is not None
        if rules is None and not is_nodes:
            return [Reply(received.to, SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))]
        offered = (SECRET_MECHANISM,) if rules is None else rules.mechanisms
        if received.to.api_version == 0:
            # The mechanism's messages would follow without frames of Kafka's.
            why = "it speaks SaslHandshake in version 0, as clients before Kafka 1.0"
            return self.refuse_handshake(received, ErrorCode.UNSUPPORTED_VERSION, offered, why)
        session = self.sessions.get(received.to.connection)
        if received.to.connection in self.attempts:
            why = "SaslHandshake in the middle of an authentication"
            return self.refuse_handshake(received, ErrorCode.ILLEGAL_SASL_STATE, (), why)
        if session is not None and now < session.since + AGAIN_MS_MIN:
            return [Reply(received.to, SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))]
        if not is_nodes and mechanism not in offered:
            why = "it wants a mechanism of SASL that is not enabled"
            return self.refuse_handshake(received, ErrorCode.UNSUPPORTED_SASL_MECHANISM, offered, why)
        self.attempts[received.to.connection] = Attempt(mechanism, self.exchange_for(received, session))
        return [Reply(received.to, SaslHandshakeResponse(mechanisms=offered))]

    def exchange_for(self, received: Received, session: Session | None) -> Exchange:
        mechanism, listener = received.message.mechanism, received.caller.listener
        if session is not None and session.mechanism != mechanism:
            return MechanismChange(mechanism, session.mechanism)
        nonce = self.rng.randbytes(NONCE_BYTES).hex()
        if mechanism == SECRET_MECHANISM:
            assert self.credential is not None
            return NodeExchange(self.credential, nonce)
        if mechanism == PLAIN:
            return PlainExchange(self.rules[listener].plain_users, self.blind)
        if mechanism == OAUTHBEARER:
            return BearerExchange(self.tokens[listener])
        return ScramExchange(mechanism, self.users, nonce)

    def authenticate(self, received: Received, now: Instant) -> list[Effect]:
        connection = received.to.connection
        attempt = self.attempts.get(connection)
        if attempt is None:
            return self.out_of_turn(received)
        verdict = attempt.exchange.step(bytes(received.message.auth_bytes), now)
        if isinstance(verdict, Challenge):
            return [Reply(received.to, SaslAuthenticateResponse(auth_bytes=verdict.token))]
        del self.attempts[connection]
        session = self.sessions.get(connection)
        if isinstance(verdict, Accepted) and session is not None and session.principal != verdict.principal:
            verdict = changed(session.principal, verdict.principal)
        if isinstance(verdict, Rejected):
            return self.reject(received, verdict)
        self.sessions[connection] = Session(attempt.mechanism, verdict.principal, now)
        lifetime_ms = self.lifetime_ms(received.caller.listener, attempt.mechanism, verdict.until, now)
        answer = SaslAuthenticateResponse(
            auth_bytes=verdict.token,
            session_lifetime_ms=lifetime_ms if received.to.api_version >= LIFETIME_FROM else 0,
        )
        return [
            Reply(received.to, answer),
            Authenticated(connection, verdict.principal, verdict.is_node, lifetime_ms),
        ]

    def out_of_turn(self, received: Received) -> list[Effect]:
        """There was no SaslHandshake before it."""
        is_stranger = received.to.connection not in self.sessions and received.caller.listener in self.rules
        answer = SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=WITHOUT_HANDSHAKE if is_stranger else AFTER_HANDSHAKE
        )
        if is_stranger:
            return [Refuse(received.to, answer, "SaslAuthenticate without SaslHandshake", self.delay_ms)]
        return [Reply(received.to, answer)]

    def lifetime_ms(self, listener: str, mechanism: str, until: Instant | None, now: Instant) -> int:
        """How long it holds; 0: for ever."""
        rules = self.rules.get(listener)
        limit = rules.reauth_ms.get(mechanism, 0) if rules is not None else 0
        if until is None:
            return limit
        left = max(until - now, 1)
        return min(left, limit) if limit else left

    def reject(self, received: Received, verdict: Rejected) -> list[Effect]:
        answer = SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=verdict.text)
        return [Refuse(received.to, answer, f"it could not authenticate: {verdict.why}", self.delay_ms)]

    def refuse_handshake(
        self, received: Received, error: ErrorCode, offered: tuple[str, ...], why: str
    ) -> list[Effect]:
        assert error is not ErrorCode.NONE
        answer = SaslHandshakeResponse(error_code=error, mechanisms=offered)
        return [Refuse(received.to, answer, why, self.delay_ms)]

    def forget(self, connection: int) -> None:
        """It is closed."""
        self.attempts.pop(connection, None)
        self.sessions.pop(connection, None)


class MechanismChange:
    """The exchange of a connection that has proved who it is by another mechanism before. It gets to know that when it
    begins, as from Kafka."""

    def __init__(self, mechanism: str, before: str) -> None:
        self.text = (
            f"SASL mechanism '{mechanism}' requested by client is not supported for re-authentication of mechanism"
            f" '{before}'"
        )

    def step(self, token: bytes, now: Instant) -> Rejected:
        return Rejected(self.text, "it wants another mechanism than before")


def changed(before: str, after: str) -> Rejected:
    (kind, _, name), (new_kind, _, new_name) = before.partition(":"), after.partition(":")
    text = f"Cannot change principals during re-authentication from {kind}.{name}: {new_kind}.{new_name}"
    return Rejected(text, f"it was {before}, and wants to be {after}")


def authenticating_of(
    config: NodeConfig,
    secret: ClusterSecret | None,
    rng: Rng,
    scram: Callable[[], Mapping[ScramKey, ScramCredential]],
) -> Authenticating:
    """Of a node. `scram`: the credentials that are committed now."""
    delay_ms = config.integer("connection.failed.authentication.delay.ms")
    assert delay_ms >= 0
    return Authenticating(
        secret,
        rng,
        {name: sasl_rules(config.settings_of(name)) for name in config.sasl_listener_names},
        lambda user, mechanism: scram().get((user, MECHANISM_CODES[mechanism])),
        delay_ms,
    )
