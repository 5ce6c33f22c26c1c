"""`vpnrouter certs --output DIR`: a certificate authority and certificates for trials and tests of TLS.

`ca.pem` and `ca.key` are the authority, `crl.pem` what it revoked, NAME.pem and NAME.key what it issued.
Keys are EC P-256 and readable by their owner alone.
"""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from vpnrouter import limits
from vpnrouter.cli._output import print_json, print_lines
from vpnrouter.errors import OperationError

if TYPE_CHECKING:
    from collections.abc import Sequence


CA: Final = "ca"
CRL: Final = "crl.pem"

_AUTHORITY_DAYS: Final = 3_650
_SKEW: Final = timedelta(hours=1)
"""Certificates begin this much before they are made: clocks of different machines differ."""


@dataclass(frozen=True, slots=True)
class IssuedFile:
    """One file of the directory: what it is for, and when what is in it ends (ISO 8601)."""

    path: str
    purpose: str
    ends: str


class TrialAuthority:
    """The authority of one directory, the one that is there or a new one in memory; `now` is UTC.

    Raises OperationError when the files that are there cannot be used.
    """

    def __init__(self, directory: Path, now: datetime) -> None:
        self._directory = directory
        self._now = now
        certificate, key = directory / f"{CA}.pem", directory / f"{CA}.key"
        if certificate.exists() != key.exists():
            there, missing = (certificate, key) if certificate.exists() else (key, certificate)
            raise OperationError(f"{there} is there without {missing}: cannot issue certificates")
        self.is_new = not key.exists()
        if self.is_new:
            self._key = ec.generate_private_key(ec.SECP256R1())
            self._certificate = self._self_signed()
        else:
            self._certificate, self._key = _read_authority(certificate, key)
            if self._certificate.not_valid_after_utc <= now:
                raise OperationError(f"cannot use authority {certificate}: it has expired")

    def save(self) -> list[IssuedFile]:
        """Write a new authority and its empty revocation list; nothing for one that was there."""
        if not self.is_new:
            return []
        return [
            *self._save(CA, self._certificate, self._key, "authority", force=False),
            self.revoke([]),
        ]

    def server(
        self, name: str, hosts: Sequence[x509.GeneralName], days: int, *, force: bool
    ) -> list[IssuedFile]:
        """Issue and write the certificate of a router that is reached under these names and addresses, or, by
        bridges to `v:NAME`, under its own. Its bridges may log in with it too.
        """
        own = x509.DNSName(name)
        names = [*hosts, *([] if own in hosts else [own])]
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._issue(name, x509.SubjectAlternativeName(names), usages, days, force)

    def client(self, name: str, days: int, *, force: bool) -> list[IssuedFile]:
        """Issue and write a certificate that names the client username `name`."""
        return self._issue(name, None, [ExtendedKeyUsageOID.CLIENT_AUTH], days, force)

    def revoke(self, certificates: Sequence[Path]) -> IssuedFile:
        """Write the revocation list: what stood in it, and these.

        Raises OperationError when one of them cannot be read or is not this authority's.
        """
        path = self._directory / CRL
        until = self._certificate.not_valid_after_utc
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self._certificate.subject)
            .last_update(self._now - _SKEW)
            .next_update(until)
            .add_extension(x509.CRLNumber(int(self._now.timestamp() * 1000)), critical=False)
            .add_extension(self._issuer_key_id(), critical=False)
        )
        revoked = {one.serial_number: one for one in self._revoked(path)}
        for file in certificates:
            serial = self._own(file).serial_number
            revoked[serial] = (
                x509.RevokedCertificateBuilder()
                .serial_number(serial)
                .revocation_date(self._now)
                .build()
            )
        for one in revoked.values():
            builder = builder.add_revoked_certificate(one)
        signed = builder.sign(self._key, hashes.SHA256())
        _write(path, signed.public_bytes(serialization.Encoding.PEM), 0o644)
        return IssuedFile(str(path), f"revocation list, {len(revoked)} revoked", _shown(until))

    def _revoked(self, path: Path) -> list[x509.RevokedCertificate]:
        if not path.exists():
            return []
        try:
            return list(x509.load_pem_x509_crl(path.read_bytes()))
        except (OSError, ValueError) as error:
            raise OperationError(f"cannot read {path}: {_why(error)}") from error

    def _own(self, file: Path) -> x509.Certificate:
        try:
            certificate = x509.load_pem_x509_certificate(file.read_bytes())
        except (OSError, ValueError) as error:
            raise OperationError(f"cannot read certificate {file}: {_why(error)}") from error
        if certificate.issuer != self._certificate.subject:
            raise OperationError(f"{file} was not issued by the authority in {self._directory}")
        return certificate

    def _issue(
        self,
        name: str,
        names: x509.SubjectAlternativeName | None,
        usages: Sequence[x509.ObjectIdentifier],
        days: int,
        force: bool,
    ) -> list[IssuedFile]:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            self._builder(
                x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]),
                key,
                # Nothing is good for longer than its authority.
                min(self._now + timedelta(days=days), self._certificate.not_valid_after_utc),
            )
            .issuer_name(self._certificate.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(self._issuer_key_id(), critical=False)
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        purpose = "client" if names is None else "router"
        signed = builder.sign(self._key, hashes.SHA256())
        return self._save(name, signed, key, f"{purpose} {name}", force=force)

    def _self_signed(self) -> x509.Certificate:
        # A serial in the name keeps two trial authorities apart where both are trusted.
        common_name = f"vpnrouter trial CA {os.urandom(4).hex()}"
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        return (
            self._builder(subject, self._key, self._now + timedelta(days=_AUTHORITY_DAYS))
            .issuer_name(subject)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(authority=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, until: datetime
    ) -> x509.CertificateBuilder:
        public = key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._now - _SKEW)
            .not_valid_after(until)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        )

    def _issuer_key_id(self) -> x509.AuthorityKeyIdentifier:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())

    def _save(
        self,
        name: str,
        certificate: x509.Certificate,
        key: ec.EllipticCurvePrivateKey,
        purpose: str,
        *,
        force: bool,
    ) -> list[IssuedFile]:
        files = []
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        public = certificate.public_bytes(serialization.Encoding.PEM)
        for suffix, data, mode, what in (
            ("key", private, 0o600, "private key"),
            ("pem", public, 0o644, "certificate"),
        ):
            path = self._directory / f"{name}.{suffix}"
            if path.exists() and not force:
                raise OperationError(f"{path} is there already; --force replaces it")
            _write(path, data, mode)
            ends = _shown(certificate.not_valid_after_utc) if suffix == "pem" else ""
            files.append(IssuedFile(str(path), f"{purpose}: {what}", ends))
        return files


def _read_authority(
    certificate: Path, key: Path
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    try:
        read = x509.load_pem_x509_certificate(certificate.read_bytes())
        private = serialization.load_pem_private_key(key.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise OperationError(f"cannot use authority {certificate}: {_why(error)}") from error
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise OperationError(f"cannot use authority {certificate}: its key is none of P-256")
    if private.public_key() != read.public_key():
        raise OperationError(f"cannot use authority {certificate}: {key} is the key of another one")
    return read, private


def general_name(host: str) -> x509.GeneralName:
    """An address where it is one, else a DNS name; raises OperationError where it is neither."""
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        if host and not host.startswith("."):
            return x509.DNSName(host.encode("idna").decode())
    except UnicodeError:
        pass
    raise OperationError(f"{host!r} is neither a host name nor an address")


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _write(path: Path, data: bytes, mode: int) -> None:
    """Write a file completely or not at all. A key never has wider permissions, not even for a moment."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise OperationError(f"cannot write {path}: {_why(error)}") from error


def _shown(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


_NAME: Final = re.compile(r"[A-Za-z0-9_@+-][A-Za-z0-9._@+-]*")
"""A name is a common name and a file name."""

_HOSTS: Final = ("localhost", "127.0.0.1", "::1")


Output = Annotated[
    Path,
    typer.Option(
        help="Directory for the files; made when missing.", file_okay=False, show_default=False
    ),
]
Name = Annotated[
    list[str] | None,
    typer.Option(help="Issue a router's certificate. May stand several times."),
]
Host = Annotated[
    list[str] | None,
    typer.Option(
        help="Host name or address that the routers are reached under. May stand several times."
        f" Without it: {', '.join(_HOSTS)}."
    ),
]
Client = Annotated[
    list[str] | None,
    typer.Option(help="Issue a certificate for this client username. May stand several times."),
]
Revoke = Annotated[
    list[Path] | None,
    typer.Option(
        help="Put this certificate of the authority on its revocation list. May stand several"
        " times.",
        dir_okay=False,
    ),
]
Days = Annotated[
    int, typer.Option(min=1, max=3650, help="Days that the certificates are good for.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace certificates that are there.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the files as JSON.")]


def command(
    output: Output,
    name: Name = None,
    host: Host = None,
    client: Client = None,
    revoke: Revoke = None,
    days: Days = 365,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Make certificates for a trial of TLS.

    Makes an authority (ca.pem, ca.key, crl.pem) in the directory, or uses the one that is there, and
    issues NAME.pem with NAME.key for each --name and --client. Private keys are not encrypted: an
    authority for lasting use belongs elsewhere. Prints the files written. Exit code 1: a file is there
    already, or cannot be used or written.
    """
    servers, clients = name or [], client or []
    _check_names([*servers, *clients])
    hosts = [general_name(one) for one in host or _HOSTS]
    if not force:
        # Report this before anything is written.
        for owner in (*servers, *clients):
            for path in (output / f"{owner}.pem", output / f"{owner}.key"):
                if path.exists():
                    raise OperationError(f"{path} is there already; --force replaces it")
    try:
        output.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise OperationError(f"cannot make {output}: {error.strerror}") from error
    authority = TrialAuthority(output, datetime.now(UTC).replace(microsecond=0))
    files = authority.save()
    for owner in servers:
        files += authority.server(owner, hosts, days, force=force)
    for owner in clients:
        files += authority.client(owner, days, force=force)
    if revoke or not (output / "crl.pem").exists():
        files = [one for one in files if not one.path.endswith("crl.pem")]
        files.append(authority.revoke(revoke or []))
    _show(files, as_json=as_json)


def _check_names(names: list[str]) -> None:
    """Raise BadParameter for a name that cannot be a file and a common name, or that is there twice."""
    taken: set[str] = {"ca", "crl"}
    for name in names:
        if not _NAME.fullmatch(name) or len(name) > limits.COMMON_NAME_LENGTH:
            raise typer.BadParameter(
                f"{name!r}: a name has 1 to {limits.COMMON_NAME_LENGTH} of A-Z a-z 0-9 . _ @ + -"
            )
        if name.lower() in taken:
            raise typer.BadParameter(f"{name!r}: the name is taken, and so are its files")
        taken.add(name.lower())


def _show(files: list[IssuedFile], *, as_json: bool) -> None:
    if as_json:
        from dataclasses import asdict

        print_json([asdict(one) for one in files], 2)
        return
    rows = [("file", "what", "until"), *((one.path, one.purpose, one.ends) for one in files)]
    # No table of rich's: it would break paths at the width of the terminal.
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for path, what, until in rows:
        print_lines(f"{path:{widths[0]}}  {what:{widths[1]}}  {until}".rstrip())
