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

PLAIN, OAUTHBEARER = "PLAIN", "OAUTHBEARER"
NONCE_BYTES = 24
HANDSHAKE_VERSION = 1  # from which on the mechanism's messages come in frames
ADVICE = "are kafka.security.protocol, kafka.sasl.mechanism and the credentials right?"


class Asked(Protocol):
    """A connection. Its text is host:port."""

    def has_api(self, key: int) -> bool: ...

    def ask(self, message: Message, version: int | None = None, timeout_ms: float | None = None, **how: Any) -> Any: ...


def authenticate(connection: Asked, sasl: Sasl) -> int:
    """For how many milliseconds it holds (KIP-368); 0: as long as the connection. Raises `AuthenticationFailed`,
    `BadOption` if there is no token, or `Unreachable` if the connection breaks."""
    if not connection.has_api(SaslHandshakeRequest.api_key):
        raise AuthenticationFailed(f"{connection} does not speak SASL", ADVICE)
    answer = connection.ask(
        SaslHandshakeRequest(mechanism=sasl.mechanism), HANDSHAKE_VERSION, response=SaslHandshakeResponse
    )
    if answer.error_code:
        offered = ", ".join(answer.mechanisms) or "none"
        raise AuthenticationFailed(f"{connection} does not take {sasl.mechanism}; it offers {offered}", ADVICE)
    if sasl.mechanism == PLAIN:
        return lifetime_ms(exchange(connection, sasl, f"\0{sasl.username}\0{sasl.password.reveal}".encode()))
    if sasl.mechanism == OAUTHBEARER:
        return show_token(connection, sasl)
    scram = Scram(sasl.mechanism, sasl.username, sasl.password.reveal, secrets.token_urlsafe(NONCE_BYTES))
    first = exchange(connection, sasl, scram.first())
    try:
        final = scram.final(bytes(first.auth_bytes))
        answer = exchange(connection, sasl, final)
        scram.verify(bytes(answer.auth_bytes))
    except ValueError as error:
        raise failed(connection, sasl, str(error)) from None
    return lifetime_ms(answer)


def show_token(connection: Asked, sasl: Sasl) -> int:
    answer = exchange(connection, sasl, f"n,,\x01auth=Bearer {sasl.token()}\x01\x01".encode())
    if answer.auth_bytes:  # why the token is not valid; it fails when that is acknowledged (RFC 7628)
        exchange(connection, sasl, b"\x01")
        raise failed(connection, sasl, "")
    return lifetime_ms(answer)


def lifetime_ms(answer: SaslAuthenticateResponse) -> int:
    return max(answer.session_lifetime_ms, 0)


def exchange(connection: Asked, sasl: Sasl, said: bytes) -> SaslAuthenticateResponse:
    """One message of the mechanism, and the answer to it."""
    request = SaslAuthenticateRequest(auth_bytes=said)
    answer: SaslAuthenticateResponse = connection.ask(request, response=SaslAuthenticateResponse)
    if answer.error_code:
        code = error_of(answer.error_code)
        why = answer.error_message or ("" if code is ErrorCode.SASL_AUTHENTICATION_FAILED else code.name)
        raise failed(connection, sasl, why)
    return answer


def failed(connection: Asked, sasl: Sasl, why: str) -> AuthenticationFailed:
    return AuthenticationFailed(
        f"{connection} refuses {sasl.named} ({sasl.mechanism})" + (f": {why}" if why else ""), ADVICE
    )
