"""May this client in? Message VPN, client username, ACL, limits: the same rules for every protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.core import client_events
from vpnrouter.core.credentials import BAD_CREDENTIALS, BAD_PASSWORD, NOT_AUTHORIZED
from vpnrouter.errors import Refused

if TYPE_CHECKING:
    from vpnrouter.core.access import AclProfile
    from vpnrouter.core.certificate import PeerCertificate
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.credentials import ClientUsername, Credentials
    from vpnrouter.core.entrance import Entrance
    from vpnrouter.core.profile import ClientProfile
    from vpnrouter.core.router import Router
    from vpnrouter.core.vpn import MessageVpn

BASIC: Final = "basic"
CLIENT_CERTIFICATE: Final = "client-certificate"
"""The schemes of a login, as a bridge's `remote_authentication.scheme` names them."""


NOTHING_TO_PROVE: Final = "403 Forbidden: the client username has no password here to be proved"
"""Where everybody may come in, a remote that is asked for a proof has none."""

NOT_FOR_SCRAM: Final = (
    "403 Forbidden: the stored password is an scrypt hash, and bridges prove theirs by SCRAM-SHA-256:"
    " store what `vpnrouter hash-password --scram` makes, or the password itself"
)

SCRYPT: Final = "scrypt$"


@final
class Admission:
    """What a login came to; the password is still to be verified where `needs_password`."""

    __slots__ = ("acl", "needs_password", "password", "profile", "username", "vpn")

    def __init__(
        self,
        vpn: MessageVpn,
        username: ClientUsername,
        profile: ClientProfile,
        acl: AclProfile,
        needs_password: bool,
        password: bytes,
    ) -> None:
        self.vpn = vpn
        self.username = username
        self.profile = profile
        self.acl = acl
        self.needs_password = needs_password
        self.password = password

    def take(self, rights: Admission) -> None:
        """Let other rights of the same client username hold from now on."""
        self.username = rights.username
        self.profile = rights.profile
        self.acl = rights.acl


def choose_vpn(
    router: Router, listener_vpn: str, username: str | None
) -> tuple[MessageVpn, str | None]:
    """The message VPN of a login and the client username within it.

    The listener's VPN, or on a listener without one the part after the last `@` of the username.
    Raises Refused "403 Message VPN Not Allowed" or "503 Message VPN Unavailable".
    """
    name = listener_vpn
    if not name:
        if username is None or "@" not in username:
            raise Refused("403 Message VPN Not Allowed", 0x87)
        username, _, name = username.rpartition("@")
    vpn = router.vpns.get(name)
    if vpn is None:
        raise Refused("403 Message VPN Not Allowed", 0x87)
    if not vpn.enabled:
        raise Refused("503 Message VPN Unavailable", 0x88)
    return vpn, username or None


def admit(
    vpn: MessageVpn,
    username: str | None,
    password: bytes | None,
    peer: str,
    holder: Connection | None = None,
    certificate: PeerCertificate | None = None,
    scheme: str = "",
) -> Admission:
    """Find out who wants in; where no password is to be verified, also whether he may.

    `peer` is the client's address as text, `holder` the connection whose client the login takes over,
    if any, `certificate` what the peer showed in its TLS handshake. `scheme` is BASIC or
    CLIENT_CERTIFICATE where the protocol says it; "" leaves it to what the client gave.

    Raises Refused with the field's reason. Where a password is to be verified, the rules are asked after
    it (`check_allowed`), and an unknown username is refused there, so that nobody learns by the answers,
    or by the time that they take, which usernames exist.
    """
    credentials = vpn.credentials
    if _by_certificate(credentials, username, password, certificate, scheme):
        if certificate is None:
            raise Refused("403 Untrusted Certificate: none was given", NOT_AUTHORIZED)
        known = credentials.identify_certificate(certificate, vpn.plane.wall_ns)
        admission = _admission(vpn, known, False, b"")
        check_allowed(admission, peer, holder)
        return admission
    given = password or b""
    alone = credentials.without_password(username, given)
    if alone is not None:
        admission = _admission(vpn, alone, False, given)
        check_allowed(admission, peer, holder)
        return admission
    try:
        known = credentials.identify(username)
    except Refused:
        if not username:
            raise
        return _admission(vpn, credentials.decoy(username), True, given)
    needs = credentials.needs_password(known) and not credentials.remembered(known, given)
    admission = _admission(vpn, known, needs, given)
    if not needs:
        check_allowed(admission, peer, holder)
    return admission


def admit_proof(vpn: MessageVpn, username: str | None) -> Admission:
    """Find out who wants in with a proof of its password, which is still to be asked for and verified.

    Raises Refused where nothing can be proved. An unknown username is asked like any other.
    """
    credentials = vpn.credentials
    if credentials.client_cert is not None and not credentials.basic_enabled:
        raise Refused("403 Basic Authentication is Shutdown", NOT_AUTHORIZED)
    try:
        known = credentials.identify(username)
    except Refused:
        if not username:
            raise
        known = credentials.decoy(username)
    stored = known.password
    if stored is None:
        raise Refused(NOTHING_TO_PROVE, BAD_CREDENTIALS)
    if stored.startswith(SCRYPT):
        raise Refused(NOT_FOR_SCRAM, BAD_CREDENTIALS)
    return _admission(vpn, known, True, b"")


def _by_certificate(
    credentials: Credentials,
    username: str | None,
    password: bytes | None,
    certificate: PeerCertificate | None,
    scheme: str,
) -> bool:
    """Whether the certificate decides; raises Refused where what is asked for is shut down."""
    if credentials.client_cert is None:
        if scheme == CLIENT_CERTIFICATE:
            raise Refused("403 Client Certificate Authentication is Shutdown", NOT_AUTHORIZED)
        return False
    if scheme == CLIENT_CERTIFICATE:
        return True
    if credentials.basic_enabled:
        return not scheme and certificate is not None and not (username and password)
    if scheme == BASIC or certificate is None:
        # Basic authentication that is off lets everybody in only where nothing else is asked for.
        raise Refused("403 Basic Authentication is Shutdown", NOT_AUTHORIZED)
    return True


def _admission(vpn: MessageVpn, known: ClientUsername, needs: bool, given: bytes) -> Admission:
    acl = vpn.acl_profiles[known.acl_profile]
    profile = vpn.profiles[known.client_profile]
    return Admission(vpn, known, profile, acl, needs, given)


def rights_of(vpn: MessageVpn, name: str) -> Admission | None:
    """What a client username may do by what is configured now; None when it is not there any more.

    It holds for the connections that it has, and for what it left behind (promise OWNER).
    """
    known = vpn.credentials.of_name(name)
    return None if known is None else _admission(vpn, known, False, b"")


def check_verified(admission: Admission, peer: str, holder: Connection | None) -> None:
    """Raise Refused when a client whose password has been verified may not come in by what holds now.

    Meanwhile its client username may have gone, or got another password, profile or ACL profile.
    """
    vpn = admission.vpn
    if not vpn.enabled:
        raise Refused("503 Message VPN Unavailable", 0x88)
    rights = rights_of(vpn, admission.username.name)
    if rights is None or not rights.username.enabled:
        raise Refused("403 Client Username Is Shutdown", NOT_AUTHORIZED)
    if rights.username.password != admission.username.password:
        raise Refused(BAD_PASSWORD, BAD_CREDENTIALS)
    admission.take(rights)
    if admission.password:
        # Not what was proved without being shown.
        vpn.credentials.remember(admission.username, admission.password)
    check_allowed(admission, peer, holder)


def begin_verifying(connection: Connection, admission: Admission, entrance: Entrance) -> None:
    """Have the password of the admission of `connection` verified by the edge.

    Raises Refused where too many logins of this address or username have failed.
    """
    credentials = admission.vpn.credentials
    username = admission.username
    key = credentials.login_key(admission.vpn.name, username, admission.password)
    known = credentials.usernames.get(username.name) is username
    entrance.verify(connection, admission, key, known=known)


def check_allowed(admission: Admission, peer: str, holder: Connection | None) -> None:
    """Raise Refused when a client whose name is beyond doubt may still not come in.

    Its username is shut down, the ACL profile forbids the address, or the VPN or the username has no
    place left; `holder` gives its place up.
    """
    if not admission.username.enabled:
        raise Refused("403 Client Username Is Shutdown", 0x87)
    if not admission.acl.allows_connect(peer):
        raise Refused("403 Forbidden", 0x87)
    vpn = admission.vpn
    name = admission.username.name
    before = None if holder is None else holder.admission
    count = len(vpn.publishers)
    of_username = vpn.connections_of.get(name, 0)
    if before is not None:
        count -= 1
        if before.username.name == name:
            of_username -= 1
    bound = vpn.limits.max_connection_count
    if bound and count >= bound:
        client_events.no_connection_left(vpn, bound)
        raise Refused("503 Too Many Clients", 0x97)
    per_username = admission.profile.max_connection_count_per_client_username
    if per_username and of_username >= per_username:
        raise Refused("503 Too Many Clients", 0x97)
