"""TLS of listeners: contexts from files, and their replacement while connections last."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.errors import OperationError
from vpnrouter.server.handshake_failures import HandshakeFailures
from vpnrouter.server.peer_certificate import load_parser, peer_certificate, thumbprint_of

if TYPE_CHECKING:
    from vpnrouter.config.tls import ListenerTls
    from vpnrouter.core.login import PeerCertificate

NO_CHECK_TIME: Final = 0x200000
"""X509_V_FLAG_NO_CHECK_TIME of OpenSSL's x509_vfy.h, which Python has no name for."""


def listener_context(written: ListenerTls) -> ssl.SSLContext:
    """The context of a TLS listener; raises OperationError naming the file that cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = (
        ssl.TLSVersion.TLSv1_3 if written.min_version == "1.3" else ssl.TLSVersion.TLSv1_2
    )
    # Nothing is to be asked anew of a client that is in, least of all its certificate.
    context.options |= ssl.OP_NO_RENEGOTIATION
    password = "" if written.key_password is None else written.key_password.reveal()
    load_identity(context, written.certificate, written.key, password)
    if written.client_ca is not None:
        context.verify_mode = ssl.CERT_OPTIONAL
        trust(context, written.client_ca)
        # Whether dates matter differs from message VPN to message VPN: they are checked at login.
        context.verify_flags |= NO_CHECK_TIME
        # A resumed session is not verified again. TLS 1.3 then resumes none, TLS 1.2 only those that
        # this context remembers, and a new context remembers none: what a reload takes away is away.
        context.num_tickets = 0
        context.options |= ssl.OP_NO_TICKET
    if written.client_crl is not None:
        revoke(context, written.client_crl)
    return context


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

    def __init__(self, written: ListenerTls, failures: HandshakeFailures | None = None) -> None:
        self._written = written
        self.failures = failures or HandshakeFailures()
        self._seen: dict[str, PeerCertificate] = {}
        self.context = listener_context(written)
        if written.client_ca is not None:
            load_parser()

    def fresh(self) -> ssl.SSLContext:
        """A context from the files as they are now; raises OperationError when one cannot be used."""
        return listener_context(self._written)

    def replace(self, context: ssl.SSLContext) -> None:
        """Shake hands with this context from now on."""
        self.context = context
        self._seen.clear()

    def reload(self) -> None:
        """Read all files again; on OperationError the context stays what it was."""
        self.replace(self.fresh())

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
