"""SaslHandshake and SaslAuthenticate: no listener authenticates, so each is answered with ILLEGAL_SASL_STATE.

Kafka says the same on a listener without SASL. The client learns that its security.protocol is wrong; a connection that
is cut off says nothing.
"""

from strandline.base.effects import Effect, Received, Reply
from strandline.base.errors import ErrorCode
from strandline.base.time import Instant
from strandline.broker.handlers.port import NodePort
from strandline.wire.messages.cluster.sasl_authenticate import SaslAuthenticateResponse
from strandline.wire.messages.cluster.sasl_handshake import SaslHandshakeResponse

AFTER_HANDSHAKE = "SaslAuthenticate request received after successful authentication"  # Kafka's text, there too


def handshake(node: NodePort, received: Received, now: Instant) -> list[Effect]:
    del node, now
    return [Reply(received.to, SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))]


def authenticate(node: NodePort, received: Received, now: Instant) -> list[Effect]:
    del node, now
    response = SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=AFTER_HANDSHAKE)
    return [Reply(received.to, response)]
