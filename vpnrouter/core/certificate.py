"""What a peer's certificate says of it, once a TLS handshake proved that the certificate is the peer's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PeerCertificate:
    """A certificate whose chain leads to an authority that the listener trusts.

    Its dates have not been checked: whether they matter is up to the message VPN that its owner logs in
    to. `common_name` is the subject's first one, "" without. `san` holds DNS names, URIs and e-mail
    addresses in the certificate's order. `thumbprint` is the SHA-256 of its DER in lower-case hexadecimal.
    The dates, in ns since the epoch, are those of the whole chain: the latest beginning and the earliest
    end. `chain_depth` counts the certificates between this one and the trusted authority's. `subject` is
    the name in the form of RFC 4514, for people. `authorities` are those of the chain, the trusted one among
    them: of each a digest of its name and its public key.
    """

    common_name: str
    san: tuple[str, ...]
    thumbprint: str
    not_before_ns: int
    not_after_ns: int
    chain_depth: int
    subject: str
    authorities: frozenset[bytes] = frozenset()
