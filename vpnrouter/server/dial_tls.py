"""The dialling end of TLS: how a bridge makes sure of the remote router, and shows who it is."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, final

import trio

from vpnrouter.config.bridge import DEFAULT_CIPHERS
from vpnrouter.errors import OperationError
from vpnrouter.server.handshake import Secured, shake_hands
from vpnrouter.server.peer_certificate import load_parser, peer_certificate
from vpnrouter.server.tls import NO_CHECK_TIME, load_identity, revoke, trust
from vpnrouter.server.tls_reason import HUNG_UP, is_hung_up, tls_reason

if TYPE_CHECKING:
    from vpnrouter.config.bridge import ClientCertRemoteAuthentication
    from vpnrouter.config.msg_vpn import TlsServerCert


@final
class DialTls:
    """A context for dialling, and what is asked of the remote's certificate besides its signature."""

    __slots__ = ("context", "rules")

    def __init__(self, context: ssl.SSLContext, rules: TlsServerCert) -> None:
        self.context = context
        self.rules = rules


def client_context(
    server_cert: TlsServerCert,
    client_cert: ClientCertRemoteAuthentication | None = None,
    ciphers: str = DEFAULT_CIPHERS,
) -> DialTls:
    """Read what a bridge trusts and, with `client_cert`, what it shows; TLS 1.2 or newer.

    Made anew for each try, it takes renewed files without a reload. Raises OperationError naming the file
    that cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ciphers != DEFAULT_CIPHERS:
        context.set_ciphers(ciphers)
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


async def secure(stream: trio.SocketStream, tls: DialTls, server_name: str) -> Secured:
    """Shake hands over a connected transport with the router at `server_name`, the host dialled.

    Raises OperationError with one line that says why it failed; the transport is closed then, as it is on
    cancellation. A remote that refuses our certificate says so here with TLS 1.2, and with TLS 1.3 at the
    first read (`tls_reason`).
    """
    try:
        # A zone (fe80::1%eth0) and the dot of a rooted name stand in no certificate.
        secured = trio.SSLStream(
            stream,
            tls.context,
            server_hostname=server_name.partition("%")[0].removesuffix("."),
        )
        await shake_hands(secured)
        _check(secured._ssl_object, tls.rules)  # noqa: SLF001
    except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
        await trio.aclose_forcefully(stream)
        why = tls_reason(error)
        if is_hung_up(error) and secured._ssl_object.cipher() is None:  # noqa: SLF001
            # A plain listener of ours does so (LINK-11), and most others.
            why = HUNG_UP
        raise OperationError(f"TLS handshake failed: {why}") from error
    except ValueError as error:
        await trio.aclose_forcefully(stream)
        raise OperationError(f"TLS handshake failed: {server_name}: not a host name") from error
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise
    return secured


def _check(secured: ssl.SSLObject, rules: TlsServerCert) -> None:
    """Raise OperationError where a certificate that is genuine is not one that we take."""
    found = peer_certificate(secured)
    if found is None:
        raise OperationError("TLS handshake failed: the remote showed no certificate")
    if found.chain_depth > rules.max_chain_depth:
        raise OperationError(
            f"TLS handshake failed: certificate chain too long: {found.chain_depth} between the remote's"
            f" own and the authority's, at most {rules.max_chain_depth} allowed"
        )
    if rules.trusted_common_names and found.common_name not in rules.trusted_common_names:
        raise OperationError(
            "TLS handshake failed: the common name of the remote's certificate is not trusted"
            f" ({found.subject!r})"
        )
