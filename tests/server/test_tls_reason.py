"""What an operator reads about a TLS failure (from real handshakes: test_dial_tls.py)."""

import errno
import ssl

import pytest
import trio
import trio.testing

from vpnrouter.server.net.tls import ssl_object_of, tls_reason


def ssl_error(reason: str) -> ssl.SSLError:
    """An error of OpenSSL with this reason code."""
    error = ssl.SSLError(1, f"[SSL: {reason}] something (_ssl.c:1)")
    error.reason = reason
    return error


def broken(cause: BaseException) -> trio.BrokenResourceError:
    """The error as trio raises it."""
    error = trio.BrokenResourceError()
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("TLSV1_ALERT_UNKNOWN_CA", "she refused our certificate: it does not trust the issuer"),
        ("SSLV3_ALERT_CERTIFICATE_REVOKED", "she refused our certificate: revoked"),
        ("SSLV3_ALERT_BAD_CERTIFICATE", "she refused our certificate: bad certificate"),
        (
            "TLSV13_ALERT_CERTIFICATE_REQUIRED",
            "she asks for a client certificate and was given none",
        ),
        ("TLSV1_ALERT_PROTOCOL_VERSION", "she speaks no TLS version that is allowed here"),
        ("WRONG_VERSION_NUMBER", "she does not speak TLS"),
        ("UNEXPECTED_EOF_WHILE_READING", "she closed the connection"),
        ("SOME_NEW_REASON", "some new reason"),
    ],
)
def test_reasons_of_openssl(reason: str, words: str) -> None:
    """Reason codes become words; unknown ones are told as OpenSSL tells them."""
    assert tls_reason(broken(ssl_error(reason)), "she") == words


def test_other_failures() -> None:
    """A transport's error gives the system's words, an error without any a word of its own."""
    reset = ConnectionResetError(errno.ECONNRESET, "x")
    assert tls_reason(broken(reset)) == "Connection reset by peer"
    assert tls_reason(trio.BrokenResourceError("gone")) == "gone"
    assert tls_reason(trio.BrokenResourceError()) == "transport failed"
    assert tls_reason(ssl.SSLEOFError(8, "eof")) == "the remote closed the connection"


async def test_the_object_under_a_stream() -> None:
    """A stream of trio still holds the standard library's object, which knows the chain and the cipher."""
    near, _ = trio.testing.memory_stream_pair()
    secured = trio.SSLStream(near, ssl.create_default_context(), server_hostname="a")
    assert isinstance(ssl_object_of(secured), ssl.SSLObject)
    assert ssl_object_of(secured).cipher() is None
