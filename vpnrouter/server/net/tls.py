"""TLS of listeners and of bridges that dial: contexts, peers' certificates, and why a handshake failed, in words."""

from __future__ import annotations

import hashlib
import os
import ssl
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, final

from vpnrouter import limits
from vpnrouter.core.credentials import PeerCertificate
from vpnrouter.errors import OperationError
from vpnrouter.events.table import TLS_FAILED
from vpnrouter.server.events.event_context import raise_event
from vpnrouter.settings.bridge import DEFAULT_CIPHERS
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cryptography import x509

    from vpnrouter.settings.bridge import ClientCertRemoteAuthentication
    from vpnrouter.settings.listener import ListenerTls
    from vpnrouter.settings.message_vpn import TlsServerCert


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
"""OpenSSL's reason codes and our words for them; other reasons are given in OpenSSL's words."""


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


_DER: Final = 2
"""ENCODING_DER of CPython's _ssl module."""


def load_parser() -> None:
    """Import what parses certificates (a tenth of a second), so that no login has to wait for it."""
    import cryptography.hazmat.primitives.serialization
    import cryptography.x509  # noqa: F401


def thumbprint_of(der: bytes) -> str:
    """The SHA-256 of a certificate in lower-case hexadecimal."""
    return hashlib.sha256(der).hexdigest()


def peer_certificate(secured: ssl.SSLObject) -> PeerCertificate | None:
    """The verified certificate of the peer; None when it gave none or was not verified.

    Raises OperationError when the certificate cannot be read.
    """
    chain = _verified_chain(secured)
    return certificate_of(chain) if chain else None


def certificate_of(chain: list[bytes]) -> PeerCertificate:
    """What a chain of certificates in DER, from the peer's own to the trusted one, says of the peer.

    Raises OperationError when one of them cannot be read.
    """
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        certificates = [x509.load_der_x509_certificate(der) for der in chain]
        leaf = certificates[0]
        names = leaf.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        return PeerCertificate(
            common_name=str(names[0].value) if names else "",
            san=_alternate_names(leaf),
            thumbprint=thumbprint_of(chain[0]),
            not_before_ns=SECOND_NS
            * max(int(one.not_valid_before_utc.timestamp()) for one in certificates),
            not_after_ns=SECOND_NS
            * min(int(one.not_valid_after_utc.timestamp()) for one in certificates),
            # Neither the peer's own nor the trusted one counts.
            chain_depth=max(0, len(chain) - 2),
            subject=leaf.subject.rfc4514_string(),
            # A certificate that is trusted as it stands there is an authority of its own.
            authorities=frozenset(_authority(one) for one in certificates[1:] or certificates),
        )
    except (
        *(ValueError, UnsupportedAlgorithm),
        *(x509.DuplicateExtension, x509.UnsupportedGeneralNameType),
    ) as error:
        raise OperationError(f"the certificate cannot be read: {error}") from error


def authorities_in(file: str) -> frozenset[bytes]:
    """The authorities of a PEM file, as a PeerCertificate names them.

    Raises OperationError naming the file when it cannot be read or holds none.
    """
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        found = x509.load_pem_x509_certificates(Path(file).read_bytes())
        return frozenset(_authority(one) for one in found)
    except (OSError, ValueError, UnsupportedAlgorithm) as error:
        why = error.strerror if isinstance(error, OSError) else "it holds no certificates"
        raise OperationError(f"cannot use authorities {file}: {why}") from error


def _authority(certificate: x509.Certificate) -> bytes:
    """Name and key: an authority is the same one in a renewed certificate, and in one that another signed."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(certificate.subject.public_bytes() + key).digest()


def _alternate_names(certificate: x509.Certificate) -> tuple[str, ...]:
    from cryptography import x509

    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return ()
    kinds = (x509.DNSName, x509.UniformResourceIdentifier, x509.RFC822Name)
    return tuple(str(name.value) for name in extension.value if isinstance(name, kinds))


def _verified_chain(secured: ssl.SSLObject) -> list[bytes]:
    """The chain that OpenSSL verified, in DER; empty without one."""
    if sys.version_info >= (3, 13):
        return secured.get_verified_chain()
    # What Python 3.13 made public is there before.
    inner = secured._sslobj  # type: ignore[attr-defined]  # noqa: SLF001
    return [one.public_bytes(_DER) for one in inner.get_verified_chain() or ()]


WINDOW_S: Final = 1.0


def _raise(line: str) -> None:
    raise_event(TLS_FAILED, line.removeprefix("vpnrouter: "))


@final
class HandshakeFailures:
    """Writes a line for each failure, limits.TLS_FAILURE_LINES a second; the rest is counted."""

    def __init__(self, say: Callable[[str], None] = _raise) -> None:
        self._say = say
        self._began_s = float("-inf")
        self._said = 0
        self._unsaid = 0

    def note(self, listener: str, peer: str, why: str, now_s: float) -> None:
        """Report a handshake that failed at `now_s` of a monotonic clock, a few times per window only."""
        if now_s - self._began_s >= WINDOW_S:
            self._began_s = now_s
            self._said = 0
        if self._said >= limits.TLS_FAILURE_LINES:
            self._unsaid += 1
            return
        self._said += 1
        if self._unsaid:
            self._say(f"vpnrouter: {self._unsaid} more TLS handshakes failed before")
            self._unsaid = 0
            self._said += 1
        self._say(f"vpnrouter: {listener}: TLS handshake with {peer} failed: {why}")


NO_CHECK_TIME: Final = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME of OpenSSL's x509_vfy.h, which Python has no name for."""


def listener_context(configured: ListenerTls) -> ssl.SSLContext:
    """The context of a TLS listener; raises OperationError naming the file that cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = (
        ssl.TLSVersion.TLSv1_3 if configured.min_version == "1.3" else ssl.TLSVersion.TLSv1_2
    )
    # Nothing is to be asked anew of a client that is in, least of all its certificate.
    context.options |= ssl.OP_NO_RENEGOTIATION
    password = "" if configured.key_password is None else configured.key_password.reveal()
    load_identity(context, configured.certificate, configured.key, password)
    if configured.client_ca is not None:
        context.verify_mode = ssl.CERT_OPTIONAL
        trust(context, configured.client_ca)
        # Whether dates matter differs from message VPN to message VPN: they are checked at login.
        context.verify_flags |= NO_CHECK_TIME
        # A resumed session is not verified again. TLS 1.3 then resumes none, TLS 1.2 only those that
        # this context remembers, and a new context remembers none: what a reload takes away is away.
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET
    if configured.client_crl is not None:
        revoke(context, configured.client_crl)
    return context


class OwnCertificate(NamedTuple):
    """A certificate that the router shows: its serial number, and until when it is valid, in seconds since 1970."""

    serial: int
    not_after_s: int


def own_certificate(file: str) -> OwnCertificate:
    """The certificate that stands first in a PEM file; raises OperationError naming the file."""
    from cryptography import x509

    try:
        first = x509.load_pem_x509_certificate(Path(file).read_bytes())
    except (OSError, ValueError) as error:
        raise OperationError(f"cannot use certificate {file}: {_why(error)}") from error
    return OwnCertificate(first.serial_number, int(first.not_valid_after_utc.timestamp()))


def load_identity(context: ssl.SSLContext, certificate: str, key: str, password: str) -> None:
    """Show `certificate` to peers; raises OperationError naming the files that cannot be used."""
    try:
        context.load_cert_chain(certificate, key, lambda: password)
    except (OSError, ValueError) as error:
        raise OperationError(
            f"cannot use certificate {certificate} with key {key}: {_why(error)}"
        ) from error


def trust(context: ssl.SSLContext, authorities: str) -> None:
    """Take certificates of these authorities; raises OperationError naming the file."""
    try:
        context.load_verify_locations(authorities)
    except (OSError, ValueError) as error:
        raise OperationError(f"cannot use authorities {authorities}: {_why(error)}") from error
    # Who stands in the file is trusted, a subordinate authority without its root as well.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


def revoke(context: ssl.SSLContext, lists: str) -> None:
    """Refuse what these revocation lists name; raises OperationError naming the file."""
    try:
        text = Path(lists).read_bytes()
        if b"CERTIFICATE-----" in text:
            # The loader would trust what it finds beside the lists.
            raise OperationError(
                f"cannot use revocation lists {lists}: it holds certificates as well"
            )
        context.load_verify_locations(lists)
    except (OSError, ValueError) as error:
        raise OperationError(f"cannot use revocation lists {lists}: {_why(error)}") from error
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


@final
class ServerTls:
    """The TLS of one listener. `context` is read at each accept, so replacing it hurts no connection.

    `failures` takes the handshakes that fail. Raises OperationError naming the file that cannot be used.
    """

    def __init__(self, configured: ListenerTls, failures: HandshakeFailures | None = None) -> None:
        self._written = configured
        self.failures = failures or HandshakeFailures()
        self._seen: dict[str, PeerCertificate] = {}
        self.context = listener_context(configured)
        self.own = own_certificate(configured.certificate)
        self.is_renewed = False
        """Whether it shows another certificate than before, which has not been told yet."""
        if configured.client_ca is not None:
            load_parser()

    def replace(self, other: ServerTls) -> None:
        """Shake hands with the context of another one from now on."""
        self.is_renewed = self.is_renewed or self.own != other.own
        self.context, self.own = other.context, other.own
        self._seen.clear()

    def reload(self) -> None:
        """Read all files again; on OperationError the context stays what it was."""
        self.replace(ServerTls(self._written))

    def peer(self, secured: ssl.SSLObject) -> PeerCertificate | None:
        """What the client of a finished handshake showed; None when nothing, or nothing to go by.

        A resumed session holds the client's certificate and not the chain that was verified; that is known
        from the full handshake before. Raises OperationError when the certificate cannot be read.
        """
        if secured.session_reused:
            der = secured.getpeercert(binary_form=True)
            return None if der is None else self._seen.get(thumbprint_of(der))
        found = peer_certificate(secured)
        if found is not None:
            # Again at the end: sessions that can be resumed are the latest.
            self._seen.pop(found.thumbprint, None)
            self._seen[found.thumbprint] = found
            if len(self._seen) > limits.TLS_REMEMBERED_PEERS:
                del self._seen[next(iter(self._seen))]
        return found


def _why(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


@final
class DialTls:
    """A context for dialling, and what the remote's certificate must have besides a valid signature."""

    __slots__ = ("context", "rules")

    def __init__(self, context: ssl.SSLContext, rules: TlsServerCert) -> None:
        self.context = context
        self.rules = rules

    def verify(self, secured: ssl.SSLObject) -> PeerCertificate:
        """Return the remote's certificate; raises OperationError where one that is genuine is not one that we take."""
        rules = self.rules
        found = peer_certificate(secured)
        if found is None:
            raise OperationError("the remote showed no certificate")
        if found.chain_depth > rules.max_chain_depth:
            raise OperationError(
                f"certificate chain too long: {found.chain_depth} between the remote's"
                f" own and the authority's, at most {rules.max_chain_depth} allowed"
            )
        if rules.trusted_common_names and found.common_name not in rules.trusted_common_names:
            raise OperationError(
                f"the common name of the remote's certificate is not trusted ({found.subject!r})"
            )
        return found


def client_context(
    server_cert: TlsServerCert,
    client_cert: ClientCertRemoteAuthentication | None = None,
    ciphers: str = DEFAULT_CIPHERS,
    alpn: Sequence[str] = (),
) -> DialTls:
    """Read what a bridge trusts and, with `client_cert`, what it shows; TLS 1.2 or newer. `alpn` are names of protocols
    to offer.

    Made anew for each try, it takes renewed files without a reload. Raises OperationError naming the file
    that cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    if ciphers != DEFAULT_CIPHERS:
        context.set_ciphers(ciphers)
    if alpn:
        context.set_alpn_protocols(list(alpn))
    context.check_hostname = server_cert.validate_name_enabled
    if server_cert.ca is None:
        context.load_default_certs()
    else:
        trust(context, server_cert.ca)
    if server_cert.crl is not None:
        revoke(context, server_cert.crl)
    if not server_cert.validate_date_enabled:
        context.verify_flags |= NO_CHECK_TIME
    if client_cert is not None and client_cert.certificate and client_cert.key:
        password = "" if client_cert.password is None else client_cert.password.reveal()
        load_identity(context, client_cert.certificate, client_cert.key, password)
    load_parser()
    return DialTls(context, server_cert)
