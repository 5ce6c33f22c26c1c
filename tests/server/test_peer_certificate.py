"""What is read from the certificates of a finished handshake."""

import datetime as dt
import hashlib
import ssl

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from vpnrouter.errors import OperationError
from vpnrouter.server.net.tls import certificate_of, peer_certificate

SECOND_NS = 1_000_000_000


def der_of(pem: trustme.Blob) -> bytes:
    """A certificate in DER."""
    return ssl.PEM_cert_to_DER_cert(pem.bytes().decode())


def at(year: int) -> dt.datetime:
    """The beginning of a year."""
    return dt.datetime(year, 1, 1, tzinfo=dt.UTC)


def made(
    subject: x509.Name, names: list[x509.GeneralName], begin: int = 2020, end: int = 2040
) -> bytes:
    """A self-signed certificate in DER."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(at(begin))
        .not_valid_after(at(end))
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def shaken(server: ssl.SSLContext, client: ssl.SSLContext) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Both ends of a handshake in memory."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server.wrap_bio(up, down, server_side=True)
    theirs = client.wrap_bio(down, up, server_hostname="localhost")
    for _ in range(4):
        for end in (theirs, ours):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return ours, theirs


def test_names_thumbprint_and_dates() -> None:
    """The first common name, DNS names, URIs and e-mail addresses in order, SHA-256, ns."""
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "Works"),
            x509.NameAttribute(NameOID.COMMON_NAME, "first"),
            x509.NameAttribute(NameOID.COMMON_NAME, "second"),
        ]
    )
    der = made(
        subject,
        [
            x509.DirectoryName(subject),
            x509.UniformResourceIdentifier("urn:device:7"),
            x509.DNSName("seven.example"),
            x509.RFC822Name("seven@example.org"),
        ],
    )
    found = certificate_of([der])
    assert found.common_name == "first"
    assert found.san == ("urn:device:7", "seven.example", "seven@example.org")
    assert found.thumbprint == hashlib.sha256(der).hexdigest()
    assert found.not_before_ns == int(at(2020).timestamp()) * SECOND_NS
    assert found.not_after_ns == int(at(2040).timestamp()) * SECOND_NS
    assert found.chain_depth == 0
    assert "O=Works" in found.subject


def test_no_names_at_all() -> None:
    """A certificate without common name and alternate names names nobody."""
    found = certificate_of([made(x509.Name([]), [])])
    assert (found.common_name, found.san) == ("", ())


def test_dates_and_depth_are_those_of_the_chain() -> None:
    """A chain is valid while all of it is; its ends do not count for the depth."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "x")])
    spans = [(2020, 2040), (2022, 2035), (2021, 2050), (2019, 2060)]
    found = certificate_of([made(name, [], begin, end) for begin, end in spans])
    assert found.not_before_ns == int(at(2022).timestamp()) * SECOND_NS
    assert found.not_after_ns == int(at(2035).timestamp()) * SECOND_NS
    assert found.chain_depth == 2
    assert certificate_of([made(name, [])] * 2).chain_depth == 0


def test_bytes_that_are_no_certificate() -> None:
    """What cannot be read is one OperationError."""
    with pytest.raises(OperationError, match="the certificate cannot be read: "):
        certificate_of([b"0\x03\x02\x01\x07"])


def test_from_a_handshake() -> None:
    """The verified chain of the client is what counts; without a certificate there is None."""
    authority = trustme.CA()
    below = authority.create_child_ca()
    issued = below.issue_cert(common_name="app")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(server)
    authority.configure_trust(server)
    server.verify_mode = ssl.CERT_OPTIONAL
    client = ssl.create_default_context()
    authority.configure_trust(client)
    ours, theirs = shaken(server, client)
    assert peer_certificate(ours) is None
    remote = peer_certificate(theirs)
    assert remote is not None
    assert remote.san == ("localhost",)
    issued.configure_cert(client)
    ours, _ = shaken(server, client)
    found = peer_certificate(ours)
    assert found is not None
    assert (found.common_name, found.chain_depth) == ("app", 1)
    assert found.thumbprint == hashlib.sha256(der_of(issued.cert_chain_pems[0])).hexdigest()
