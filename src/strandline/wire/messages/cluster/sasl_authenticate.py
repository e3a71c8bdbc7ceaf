"""SaslAuthenticate (key 36): the mechanism's own messages, in frames (KIP-152), and how long the session
lasts (KIP-368)."""

from typing import Annotated

from strandline.wire.schema import Bytes, Int16, Int64, Message, NullableString, V, message


@message(key=36, kind="request", versions="0-2", flexible="2+")
class SaslAuthenticateRequest(Message, frozen=True):
    auth_bytes: Bytes = b""


@message(key=36, kind="response", versions="0-2", flexible="2+")
class SaslAuthenticateResponse(Message, frozen=True):
    error_code: Int16 = 0
    error_message: NullableString = None
    auth_bytes: Bytes = b""
    session_lifetime_ms: Annotated[Int64, V("1+")] = 0
