"""From a finished TLS handshake to what the peer's certificate says."""

from __future__ import annotations

import hashlib
import ssl
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from vpnrouter.core.login import PeerCertificate
from vpnrouter.errors import OperationError

if TYPE_CHECKING:
    from cryptography import x509

    from vpnrouter.config.msg_vpn import TlsServerCert

SECOND_NS: Final = 1_000_000_000
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


def passes(
    shown: PeerCertificate | None, rules: TlsServerCert, names: tuple[str, ...], wall_ns: int
) -> bool:
    """Whether what a peer that dialled us has shown would do, by `rules`, if we had dialled it.

    Its chain has been verified by the listener. `names` are the router's and the host's, one of which it is to be
    made out to.
    """
    if shown is None or shown.chain_depth > rules.max_chain_depth:
        return False
    if rules.validate_date_enabled and not shown.not_before_ns <= wall_ns <= shown.not_after_ns:
        return False
    if rules.trusted_common_names and shown.common_name not in rules.trusted_common_names:
        return False
    named = {text.lower() for text in (shown.common_name, *shown.san)}
    return not rules.validate_name_enabled or any(name.lower() in named for name in names)


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
