"""Why TLS failed, in words for an operator."""

from __future__ import annotations

import os
import ssl
from typing import Final

_UNTRUSTED: Final = frozenset({2, 18, 19, 20, 21})
"""OpenSSL's verify codes (x509_vfy.h) for a chain that leads to no authority we trust."""

_NO_LIST: Final = 3
"""Verify code: no revocation list of the issuer."""

_REFUSED: Final = {
    "UNKNOWN_CA": "it does not trust the issuer",
    "BAD_CERTIFICATE": "bad certificate",
    "UNSUPPORTED_CERTIFICATE": "not of a kind that it takes",
    "CERTIFICATE_REVOKED": "revoked",
    "CERTIFICATE_EXPIRED": "expired or not yet valid",
    "CERTIFICATE_UNKNOWN": "not acceptable",
    "ACCESS_DENIED": "access denied",
}
"""Alerts (RFC 8446, 6.2) about the certificate that their receiver showed."""

_ALERTS: Final = {
    "CERTIFICATE_REQUIRED": "{peer} asks for a client certificate and was given none",
    "PROTOCOL_VERSION": "{peer} speaks no TLS version that is allowed here",
    "HANDSHAKE_FAILURE": "{peer} found nothing in common (versions, ciphers, certificates)",
    "INTERNAL_ERROR": "{peer} had an internal error",
}

_REASONS: Final = {
    "WRONG_VERSION_NUMBER": "{peer} does not speak TLS",
    "HTTP_REQUEST": "{peer} speaks HTTP, not TLS",
    "HTTPS_PROXY_REQUEST": "{peer} speaks HTTP, not TLS",
    "UNKNOWN_PROTOCOL": "{peer} does not speak TLS",
    "RECORD_LAYER_FAILURE": "{peer} does not speak TLS",
    "PACKET_LENGTH_TOO_LONG": "{peer} does not speak TLS",
    "UNEXPECTED_MESSAGE": "{peer} does not speak TLS",
    "UNEXPECTED_EOF_WHILE_READING": "{peer} closed the connection",
    "UNSUPPORTED_PROTOCOL": "{peer} speaks no TLS version that is allowed here",
    "NO_SHARED_CIPHER": "{peer} has no cipher in common",
    "TLSV1_UNRECOGNIZED_NAME": "{peer} does not know the name that was asked for",
}
"""OpenSSL's reason codes by name; what is not here is told in OpenSSL's words."""


HUNG_UP: Final = (
    "the remote closed the connection without a word of TLS: the port does not speak TLS,"
    " or nobody is let in"
)
"""The reason where not even the first answer of a handshake came."""


def is_hung_up(error: BaseException) -> bool:
    """True when a TLS stream failed because the peer closed or reset the connection."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionError)):
            return True
        cause = cause.__cause__
    return False


def tls_reason(error: BaseException, peer: str = "the remote") -> str:
    """One line that says why a TLS stream failed, during its handshake or later.

    With TLS 1.3 a client has shaken hands before its certificate is looked at: a refusal of it comes with
    the first read. `error` is what trio raised; the cause is looked for behind it. `peer` is what to call
    the other side. An error that has nothing to do with TLS gives its own text, or "transport failed".
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return _words(cause, peer)
        if isinstance(cause, OSError):
            return os.strerror(cause.errno) if cause.errno else str(cause)
        cause = cause.__cause__
    return str(error) or "transport failed"


def _words(error: ssl.SSLError, peer: str) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {_verdict(error)}"
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        return f"{peer} closed the connection"
    reason = error.reason or ""
    alert = reason.partition("_ALERT_")[2]
    if alert in _REFUSED:
        return f"{peer} refused our certificate: {_REFUSED[alert]}"
    words = _ALERTS.get(alert) or _REASONS.get(reason)
    if words is not None:
        return words.format(peer=peer)
    return reason.lower().replace("_", " ") or str(error)


def _verdict(error: ssl.SSLCertVerificationError) -> str:
    said = error.verify_message.rstrip(".")
    if error.verify_code in _UNTRUSTED:
        return f"untrusted issuer ({said})"
    if error.verify_code == _NO_LIST:
        return "no revocation list of its issuer"
    return said
