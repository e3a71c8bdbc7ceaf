"""SaslHandshake (key 17): how a client will authenticate. In version 0 the mechanism's messages would follow without
frames; brokers here refuse that."""

from strandline.wire.schema import Int16, Message, String, message


@message(key=17, kind="request", versions="0-1")
class SaslHandshakeRequest(Message, frozen=True):
    mechanism: String = ""


@message(key=17, kind="response", versions="0-1")
class SaslHandshakeResponse(Message, frozen=True):
    error_code: Int16 = 0
    mechanisms: tuple[String, ...] = ()
