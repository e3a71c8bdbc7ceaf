"""Why a handshake failed, for the operator: who rejected what, and where to look."""

import ssl

NO_TLS = (
    "WRONG_VERSION_NUMBER",
    "HTTP_REQUEST",
    "HTTPS_PROXY_REQUEST",
    "PACKET_LENGTH_TOO_LONG",
    "RECORD_LAYER_FAILURE",
)
NOTHING_SHARED = ("NO_SHARED_CIPHER", "UNSUPPORTED_PROTOCOL", "NO_SUITABLE_SIGNATURE_ALGORITHM", "VERSION_TOO_LOW")
NO_CERTIFICATE = "PEER_DID_NOT_RETURN_A_CERTIFICATE"
# What the other side says of our certificate.
REJECTED = {
    "TLSV1_ALERT_UNKNOWN_CA": "it does not trust the authority that signed this node's certificate",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it rejects this node's certificate (perhaps for its host name)",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "this node's certificate has expired",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it rejects this node's certificate",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "this node's certificate is revoked",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "it rejects this node's certificate for its kind",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "it requires a certificate, and this node has none",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "it shares no version, no cipher suite or no kind of certificate with this node",
    "TLSV1_ALERT_PROTOCOL_VERSION": "it speaks none of ssl.enabled.protocols",
    "TLSV1_ALERT_DECRYPT_ERROR": "it could not verify this node's signature",
}


def is_closed(error: BaseException) -> bool:
    """Did the other side close the connection, without a word?"""
    return isinstance(error, ssl.SSLEOFError | ConnectionError) and not is_timeout(error)


def is_timeout(error: BaseException) -> bool:
    return isinstance(error, TimeoutError) or "handshake is taking longer" in str(error)


def why_failed(error: BaseException) -> str:
    reason = getattr(error, "reason", None) or ""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if reason == NO_CERTIFICATE:
        return "it sent no certificate, and ssl.client.auth is required"
    if reason in NO_TLS:
        return "it does not speak TLS: check its security.protocol"
    if reason in NOTHING_SHARED:
        return f"it shares no version or cipher suite with this node ({reason})"
    if reason in REJECTED:
        return REJECTED[reason]
    if is_timeout(error):
        return "the handshake took too long"
    if is_closed(error):
        return "it closed the connection during the handshake"
    return str(error)
