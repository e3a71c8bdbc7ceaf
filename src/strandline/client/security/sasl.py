"""Authentication of a connection that was just opened (KIP-152): SaslHandshake, then the mechanism's own messages.

Neither the password nor what is derived from it is in any error.
"""

import secrets
from typing import Any, Protocol

from strandline.base.errors import ErrorCode, error_of
from strandline.client.errors import AuthenticationFailed
from strandline.client.security.sasl_options import Sasl
from strandline.security.scram import Scram
from strandline.wire.messages.cluster.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from strandline.wire.messages.cluster.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from strandline.wire.schema import Message

PLAIN = "PLAIN"
NONCE_BYTES = 24
HANDSHAKE_VERSION = 1  # from which on the mechanism's messages come in frames
ADVICE = "are kafka.security.protocol, kafka.sasl.mechanism and the credentials right?"


class Asked(Protocol):
    """A connection. Its text is host:port."""

    def has_api(self, key: int) -> bool: ...

    def ask(self, message: Message, version: int | None = None, timeout_ms: float | None = None, **how: Any) -> Any: ...


def authenticate(connection: Asked, sasl: Sasl) -> None:
    """Raises `AuthenticationFailed`, or `Unreachable` if the connection breaks."""
    if not connection.has_api(SaslHandshakeRequest.api_key):
        raise AuthenticationFailed(f"{connection} does not speak SASL", ADVICE)
    answer = connection.ask(
        SaslHandshakeRequest(mechanism=sasl.mechanism), HANDSHAKE_VERSION, response=SaslHandshakeResponse
    )
    if answer.error_code:
        offered = ", ".join(answer.mechanisms) or "none"
        raise AuthenticationFailed(f"{connection} does not take {sasl.mechanism}; it offers {offered}", ADVICE)
    if sasl.mechanism == PLAIN:
        exchange(connection, sasl, f"\0{sasl.username}\0{sasl.password.reveal}".encode())
        return
    scram = Scram(sasl.mechanism, sasl.username, sasl.password.reveal, secrets.token_urlsafe(NONCE_BYTES))
    first = exchange(connection, sasl, scram.first())
    try:
        final = scram.final(first)
        scram.verify(exchange(connection, sasl, final))
    except ValueError as error:
        raise failed(connection, sasl, str(error)) from None


def exchange(connection: Asked, sasl: Sasl, said: bytes) -> bytes:
    """One message of the mechanism, and the answer to it."""
    answer = connection.ask(SaslAuthenticateRequest(auth_bytes=said), response=SaslAuthenticateResponse)
    if answer.error_code:
        code = error_of(answer.error_code)
        why = answer.error_message or ("" if code is ErrorCode.SASL_AUTHENTICATION_FAILED else code.name)
        raise failed(connection, sasl, why)
    return bytes(answer.auth_bytes)


def failed(connection: Asked, sasl: Sasl, why: str) -> AuthenticationFailed:
    return AuthenticationFailed(
        f"{connection} refuses user {sasl.username} ({sasl.mechanism})" + (f": {why}" if why else ""), ADVICE
    )
