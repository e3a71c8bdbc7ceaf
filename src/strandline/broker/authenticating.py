"""SaslHandshake and SaslAuthenticate: who is at the other end of a connection.

Nodes prove on any listener that they know the cluster's secret. Nobody else can authenticate on a listener without
SASL, and gets ILLEGAL_SASL_STATE, as from Kafka: the client learns that its security.protocol is wrong, where a
connection that is cut off says nothing.
"""

from strandline.base.effects import Authenticated, Close, Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.ports import Rng
from strandline.base.time import Instant
from strandline.security.sasl.exchange import Accepted, Challenge, Exchange
from strandline.security.sasl.node_secret import NodeExchange
from strandline.security.secret import SECRET_MECHANISM, ClusterSecret
from strandline.wire.messages.cluster.sasl_authenticate import SaslAuthenticateResponse
from strandline.wire.messages.cluster.sasl_handshake import SaslHandshakeResponse

AFTER_HANDSHAKE = "SaslAuthenticate request received after successful authentication"  # Kafka's text, there too
NONCE_BYTES = 24


class Authenticating:
    def __init__(self, secret: ClusterSecret | None, rng: Rng) -> None:
        """`rng`: one whose numbers nobody can guess."""
        self.credential = None if secret is None else secret.credential()
        self.rng = rng
        self.exchanges: dict[int, Exchange] = {}  # by connection, while one is under way

    def handshake(self, received: Received) -> list[Effect]:
        if received.message.mechanism != SECRET_MECHANISM or self.credential is None:
            return [Reply(received.to, SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))]
        self.exchanges[received.to.connection] = NodeExchange(self.credential, self.rng.randbytes(NONCE_BYTES).hex())
        return [Reply(received.to, SaslHandshakeResponse(mechanisms=(SECRET_MECHANISM,)))]

    def authenticate(self, received: Received, now: Instant) -> list[Effect]:
        connection = received.to.connection
        exchange = self.exchanges.get(connection)
        if exchange is None:
            refusal = SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=AFTER_HANDSHAKE)
            return [Reply(received.to, refusal)]
        verdict = exchange.step(bytes(received.message.auth_bytes), now)
        if isinstance(verdict, Challenge):
            return [Reply(received.to, SaslAuthenticateResponse(auth_bytes=verdict.token))]
        del self.exchanges[connection]
        if isinstance(verdict, Accepted):
            answer = Reply(received.to, SaslAuthenticateResponse(auth_bytes=verdict.token))
            return [answer, Authenticated(connection, verdict.principal, verdict.is_node)]
        refusal = SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=verdict.text)
        return [Reply(received.to, refusal), Close(connection, f"it could not authenticate: {verdict.why}")]

    def forget(self, connection: int) -> None:
        """It is closed."""
        self.exchanges.pop(connection, None)
