"""Authenticates the clients of one message VPN, by password or certificate.

Checking a scrypt hash takes tens of milliseconds on purpose. The core therefore only returns *what* must be verified;
the edge does it in a worker thread and reports back. Verified passwords are remembered by digest, so that a
reconnecting fleet does not pay again.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core import scram
from vpnrouter.core.guaranteed.endpoint_settings import DELETE
from vpnrouter.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vpnrouter.core.guaranteed.endpoint_settings import EndpointSettings


@dataclass(frozen=True, slots=True)
class PeerCertificate:
    """A certificate whose chain leads to an authority that the listener trusts; its dates have not been checked.

    `common_name` is the subject's first one, or "". `san` holds DNS names, URIs and e-mail addresses in the
    certificate's order. `thumbprint` is the SHA-256 of its DER in lower-case hexadecimal. The dates (ns since the
    epoch) are the latest beginning and the earliest end in the chain. `chain_depth` counts the certificates between
    this one and the trusted authority's. `subject` is the name in the form of RFC 4514. `authorities` has a digest of
    name and public key of each authority in the chain, the trusted one included.
    """

    common_name: str
    san: tuple[str, ...]
    thumbprint: str
    not_before_ns: int
    not_after_ns: int
    chain_depth: int
    subject: str
    authorities: frozenset[bytes] = frozenset()


ANONYMOUS: Final = "#anonymous"
"""The client username of a client that gave none where basic authentication is off."""

DEFAULT: Final = "default"
"""The client username whose profiles hold for names that are not configured."""

BAD_CREDENTIALS: Final = 0x86
NOT_AUTHORIZED: Final = 0x87
"""Reason codes that MQTT 5 and links share."""

BAD_PASSWORD: Final = "403 Forbidden"  # noqa: S105 - the answer to one
"""One answer for unknown name and wrong password, so that names cannot be found out by trying."""


@final
@dataclass(slots=True, eq=False, repr=False)
class ClientUsername:
    """One configured client username.

    `password` is a scrypt hash, a SCRAM verifier or plain text; with None nobody logs in by password. Without
    `password_required` the name alone is enough. `listed` is False for the built-in `default`.
    """

    name: str
    password: str | None = None
    client_profile: str = "default"
    acl_profile: str = "default"
    enabled: bool = True
    guaranteed_endpoint_permission_override_enabled: bool = False
    password_required: bool = True
    listed: bool = True

    def permission_on(self, settings: EndpointSettings) -> int:
        """Return the permission (guaranteed/endpoint_settings.py) at an endpoint: its owner may do everything."""
        owns = settings.owner and settings.owner == self.name
        if owns or self.guaranteed_endpoint_permission_override_enabled:
            return DELETE
        return settings.permission


NAMES_NOBODY: Final = "403 Forbidden: the certificate names no client username"
OF_OTHER_AUTHORITY: Final = "403 Forbidden: the certificate is of no authority in client_cert.ca"
"""Why a certificate is refused. The client is told the first text in either case; the second is for the event."""

COMMON_NAME: Final = "common-name"
THUMBPRINT: Final = "certificate-thumbprint"
ALTERNATE_NAME: Final = "subject-alternate-name"

SALT_BYTES: Final = 16
"""Of a salt that is made here."""

NO_SUCH_DIGEST: Final = "A" * 43
"""32 zero bytes in the base64 of a password hash: no password is known, or ever will be, to have it."""


@final
class ClientCertRules:
    """The rules of a message VPN for client certificates.

    `username_source` is COMMON_NAME, THUMBPRINT or ALTERNATE_NAME. `max_chain_depth` bounds the certificates between
    the client's own and the authority's. One of `authorities` (as in PeerCertificate) has to be in the chain; None
    allows all that the listener trusts.
    """

    __slots__ = ("authorities", "max_chain_depth", "username_source", "validate_date_enabled")

    def __init__(
        self,
        username_source: str = COMMON_NAME,
        max_chain_depth: int = 3,
        validate_date_enabled: bool = True,
        authorities: frozenset[bytes] | None = None,
    ) -> None:
        self.authorities = authorities
        self.username_source = username_source
        self.max_chain_depth = max_chain_depth
        self.validate_date_enabled = validate_date_enabled

    def name_of(self, certificate: PeerCertificate) -> str:
        """The client username that a certificate names, "" when it names none."""
        if self.username_source == THUMBPRINT:
            return certificate.thumbprint
        if self.username_source == ALTERNATE_NAME:
            return certificate.san[0] if certificate.san else ""
        return certificate.common_name

    def check(self, certificate: PeerCertificate, wall_ns: int) -> None:
        """Raise Refused with the field's reason when a certificate may not be used at `wall_ns`."""
        if certificate.chain_depth > self.max_chain_depth:
            raise Refused("403 Certificate Chain Too Long", NOT_AUTHORIZED)
        if self.validate_date_enabled:
            if wall_ns < certificate.not_before_ns:
                raise Refused("403 Certificate Not Yet Valid", NOT_AUTHORIZED)
            if wall_ns > certificate.not_after_ns:
                raise Refused("403 Certificate Expired", NOT_AUTHORIZED)


@final
class Credentials:
    """The client usernames of one message VPN, and the rules for logging in with them.

    `client_cert` is None where certificates are not accepted. `refuses` is the reason why these stand in for the
    credentials of a message VPN that accepts no logins, else "".
    """

    def __init__(
        self,
        basic_enabled: bool,
        usernames: Iterable[ClientUsername] = (),
        secret: bytes = b"",
        client_cert: ClientCertRules | None = None,
    ) -> None:
        self.basic_enabled = basic_enabled
        self.client_cert = client_cert
        self.refuses = ""
        self.usernames = {username.name: username for username in usernames}
        self._verified: dict[str, bytes] = {}
        # Keyed, so that a memory image does not hand out plain digests of passwords.
        self._secret = secret or b"vpnrouter"
        self._stored = [
            username.password for username in self.usernames.values() if username.password
        ]

    def identify(self, name: str | None) -> ClientUsername:
        """The client username that applies to a login.

        Raises Refused with the field's reason when it is not known here. With basic
        authentication off, a name that is configured still selects its profiles.
        """
        known = self.usernames.get(name or "")
        if known is not None:
            if self.basic_enabled and known.password is None:
                raise Refused(BAD_PASSWORD, BAD_CREDENTIALS)
            return known
        if self.basic_enabled:
            raise Refused(BAD_PASSWORD, BAD_CREDENTIALS)
        return self._unlisted(name)

    def without_password(self, name: str | None, given: bytes) -> ClientUsername | None:
        """Return the client username that may log in by its name alone, or None."""
        known = self.usernames.get(name or "")
        if known is None or known.password_required or given or not self.basic_enabled:
            return None
        return known

    def of_name(self, name: str) -> ClientUsername | None:
        """Return the present settings of a client username that logged in before; None when it was removed."""
        known = self.usernames.get(name)
        if known is not None:
            return known
        if self.basic_enabled or self.client_cert is not None:
            return None
        return self._unlisted(name)

    def _unlisted(self, name: str | None) -> ClientUsername:
        default = self.usernames.get(DEFAULT)
        if default is None:
            return ClientUsername(name or ANONYMOUS)
        return ClientUsername(
            name or ANONYMOUS, None, default.client_profile, default.acl_profile, default.enabled
        )

    def named_by(self, certificate: PeerCertificate) -> ClientUsername:
        """Return the client username that a certificate names. Raises Refused with the field's reason.

        `default` does not apply, or every certificate of the authority would do. The name is proven, so its owner may
        learn that it is not known here, unless the message VPN does not accept the authority.
        """
        rules = self.client_cert
        if rules is None:
            raise Refused("403 Client Certificate Authentication is Shutdown", NOT_AUTHORIZED)
        known = self.usernames.get(rules.name_of(certificate))
        if known is None or not known.listed:
            raise Refused(NAMES_NOBODY, NOT_AUTHORIZED)
        if rules.authorities is not None and rules.authorities.isdisjoint(certificate.authorities):
            raise Refused(NAMES_NOBODY, NOT_AUTHORIZED, OF_OTHER_AUTHORITY)
        return known

    def check_certificate(self, certificate: PeerCertificate, wall_ns: int) -> None:
        """Raise Refused with the field's reason when a certificate may not be used at `wall_ns`."""
        if self.client_cert is not None:
            self.client_cert.check(certificate, wall_ns)

    def unknown_vpn_credentials(self, msg_vpn: str, why: str) -> Credentials:
        """Return credentials that refuse everybody for `why`; verifying a password takes as long as with these."""
        secret = hmac.digest(self._secret, b"no message VPN\0" + msg_vpn.encode(), "sha256")
        found = Credentials(True, (), secret)
        found.refuses = why
        found._stored = self._stored
        return found

    def decoy(self, name: str) -> ClientUsername:
        """A client username for a name that has no password here; no password verifies for it.

        Verifying one takes as long as for a name that is known, or names could be found out with a watch.
        Where stored passwords differ in cost, unknown names do so alike, each always in the same way.
        """
        digest = hmac.new(self._secret, b"decoy" + name.encode(), hashlib.sha256)
        stored = digest.hexdigest()
        if self._stored:
            likeness = self._stored[int.from_bytes(digest.digest()[:8], "big") % len(self._stored)]
            if likeness.startswith("scrypt$"):
                stored = likeness.rpartition("$")[0] + "$" + NO_SUCH_DIGEST
            elif likeness.startswith(scram.PREFIX):
                like = scram.parse_stored(likeness)
                salt = self._drawn(b"decoy salt", name, len(like.salt))
                nobody = scram.Verifier(like.iterations, salt, bytes(32), bytes(32))
                stored = scram.stored_text(nobody)
        return ClientUsername(name, stored)

    def verifier(self, username: ClientUsername) -> scram.Verifier | None:
        """What is stored for SCRAM; None where the password is stored as text, and has to be derived."""
        stored = username.password or ""
        return scram.parse_stored(stored) if stored.startswith(scram.PREFIX) else None

    @property
    def provable(self) -> bool:
        """Return whether every stored password can be proved by SCRAM, which an scrypt hash cannot."""
        hashed = [stored for stored in self._stored if stored.startswith("scrypt$")]
        return self.basic_enabled and bool(self._stored) and not hashed

    def salt_of(self, username: ClientUsername) -> bytes:
        """The salt for a password that is stored as text: always the same one for a name, known or not."""
        return self._drawn(b"salt", username.name, SALT_BYTES)

    def _drawn(self, what: bytes, name: str, size: int) -> bytes:
        """Bytes that look drawn, and are the same each time: at most 64."""
        return hmac.digest(self._secret, what + b"\0" + name.encode(), "sha512")[:size]

    def needs_password(self, username: ClientUsername) -> bool:
        """Whether a password must be verified for this login."""
        return self.basic_enabled

    def remembered(self, username: ClientUsername, given: bytes) -> bool:
        """Whether this very password of the client username was verified before."""
        digest = self._verified.get(username.name)
        return digest is not None and hmac.compare_digest(digest, self._digest(username, given))

    def remember(self, username: ClientUsername, given: bytes) -> None:
        """Note that the edge verified `given` for `username`."""
        if len(self._verified) >= limits.REMEMBERED_PASSWORDS:
            self._verified.clear()
        self._verified[username.name] = self._digest(username, given)

    def assigned_client_id(self, number: int) -> str:
        """Return a client id for a client that gave none, made from a number that is used once.

        128 bits of a keyed digest: other clients' ids and their number cannot be guessed.
        """
        digest = hmac.new(self._secret, f"client id {number}".encode(), hashlib.sha256)
        return f"auto-{digest.hexdigest()[:32]}"

    def login_key(self, msg_vpn: str, username: ClientUsername, given: bytes) -> bytes:
        """A key for a login while it is verified: logins with the same key need one verification."""
        parts = (b"login", msg_vpn.encode(), username.name.encode(), given)
        stored = (username.password or "").encode()
        return hmac.new(self._secret, stored + b"\0" + b"\0".join(parts), hashlib.sha256).digest()

    def _digest(self, username: ClientUsername, given: bytes) -> bytes:
        # The stored hash is part of it: a changed password forgets what was verified.
        stored = (username.password or "").encode()
        return hmac.new(self._secret, stored + b"\0" + given, hashlib.sha256).digest()
