"""Logins: message VPN, client username, ACL and limits, the same rules for every protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.core.access import AclProfile
from vpnrouter.core.credentials import (
    BAD_CREDENTIALS,
    BAD_PASSWORD,
    DEFAULT,
    NOT_AUTHORIZED,
    Credentials,
)
from vpnrouter.core.profile import ClientProfile
from vpnrouter.core.verifications import PendingLogin
from vpnrouter.core.vpn import MessageVpn
from vpnrouter.errors import Refused
from vpnrouter.events import table

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.credentials import ClientUsername, PeerCertificate
    from vpnrouter.core.pre_login_limits import PreLoginLimits
    from vpnrouter.core.router import Router


BASIC: Final = "basic"
CLIENT_CERTIFICATE: Final = "client-certificate"
"""The schemes of a login, as a bridge's `remote_authentication.scheme` names them."""


NO_SUCH_VPN: Final = "403 Message VPN Not Allowed"
VPN_UNAVAILABLE: Final = "503 Message VPN Unavailable"
UNAVAILABLE: Final = 0x88
NO_BASIC: Final = "403 Basic Authentication is Shutdown"
NO_CERTIFICATES: Final = "403 Client Certificate Authentication is Shutdown"
NONE_GIVEN: Final = "403 Untrusted Certificate: none was given"
SHUT_DOWN: Final = "403 Client Username Is Shutdown"

NOTHING_TO_PROVE: Final = "403 Forbidden: the client username has no password here to be proved"
"""Where everybody may come in, a remote that is asked for a proof has none."""

NOT_FOR_SCRAM: Final = (
    "403 Forbidden: the stored password is an scrypt hash, and bridges prove theirs by SCRAM-SHA-256:"
    " store what `vpnrouter hash-password --scram` makes, or the password itself"
)

SCRYPT: Final = "scrypt$"


@final
class Admission:
    """What a login came to; the password is still to be verified where `needs_password`.

    `why`, if any, is the true reason why no password will do: `username` only stands in for one.
    """

    __slots__ = ("acl", "needs_password", "password", "profile", "username", "vpn", "why")

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
        self.why = vpn.credentials.refuses

    def may_share(self, share: str, client_id: str) -> bool:
        """Return whether client profile and ACL profile let a client share subscriptions of this name."""
        if not self.profile.allow_shared_subscriptions_enabled:
            return False
        rule = self.acl.share_name.bound(self.username.name, client_id)
        return rule is None or rule.allows_topic(share)

    def take(self, rights: Admission) -> None:
        """Replace the rights by newer ones of the same client username."""
        self.username = rights.username
        self.profile = rights.profile
        self.acl = rights.acl


def choose_vpn(
    router: Router, listener_vpn: str, username: str | None
) -> tuple[MessageVpn, str | None]:
    """The message VPN of a login and the client username within it.

    The listener's VPN, or on a listener without one the part after the last `@` of the username (`named_vpn`).
    Raises Refused where the username names none, and where the listener's own one is not in service.
    """
    if not listener_vpn:
        if username is None or "@" not in username:
            raise Refused(NO_SUCH_VPN, NOT_AUTHORIZED)
        username, _, name = username.rpartition("@")
        return named_vpn(router, name), username or None
    vpn = router.vpns.get(listener_vpn)
    if vpn is None:
        raise Refused(NO_SUCH_VPN, NOT_AUTHORIZED)
    if not vpn.enabled:
        raise Refused(VPN_UNAVAILABLE, UNAVAILABLE)
    return vpn, username or None


_ACL_PROFILES: Final[dict[str, AclProfile]] = {DEFAULT: AclProfile(DEFAULT, False)}
_PROFILES: Final[dict[str, ClientProfile]] = {DEFAULT: ClientProfile(DEFAULT)}
"""Of message VPNs that are none."""


def named_vpn(router: Router, name: str) -> MessageVpn:
    """Return the message VPN that a peer names before login.

    For one that does not exist, or is disabled and needs no password, return a stand-in that refuses everybody after as
    long as a wrong password takes. So peers cannot learn which message VPNs exist.
    """
    like = router.vpns.get(name)
    if like is not None:
        credentials = like.credentials
        if like.enabled or credentials.basic_enabled or credentials.client_cert is not None:
            return like
        unknown_vpn_credentials = credentials.unknown_vpn_credentials(name, VPN_UNAVAILABLE)
    elif router.vpns:
        # Always the same one for a name.
        vpns = list(router.vpns.values())
        unknown_vpn_credentials = vpns[hash(name) % len(vpns)].credentials.unknown_vpn_credentials(
            name, NO_SUCH_VPN
        )
    else:
        unknown_vpn_credentials = Credentials(True).unknown_vpn_credentials(name, NO_SUCH_VPN)
    return MessageVpn(name, router.context, unknown_vpn_credentials, _PROFILES, _ACL_PROFILES)


def admit(
    vpn: MessageVpn,
    username: str | None,
    password: bytes | None,
    peer: str,
    holder: Admission | None = None,
    certificate: PeerCertificate | None = None,
    scheme: str = "",
    *,
    hides: bool = False,
) -> Admission:
    """Identify a client; where no password is to be verified, also check its rights. Raises Refused.

    `peer` is the client's address as text, `holder` the admission of the connection that the login takes over, if any,
    `certificate` the one of the TLS handshake. `scheme` is BASIC or CLIENT_CERTIFICATE where the protocol names it,
    else "".

    Where a password is to be verified, the rules are checked after it (`check_verified`), and an unknown username is
    refused there, so that neither answers nor their timing tell which usernames exist. With `hides`, on listeners that
    serve all message VPNs, this holds for all unproven clients, so that it stays hidden which message VPNs exist.
    """
    if scheme == CLIENT_CERTIFICATE and certificate is None:
        # Said of no message VPN.
        raise Refused(NONE_GIVEN, NOT_AUTHORIZED)
    credentials = vpn.credentials
    given = password or b""
    proved = False
    try:
        by_certificate = _by_certificate(credentials, username, password, certificate, scheme)
        if by_certificate and certificate is not None:
            known = credentials.named_by(certificate)
            proved = True
            credentials.check_certificate(certificate, vpn.context.wall_ns)
            admission = _admission(vpn, known, False, b"")
        else:
            alone = credentials.without_password(username, given)
            if alone is not None:
                admission = _admission(vpn, alone, False, given)
            else:
                try:
                    known = credentials.identify(username)
                except Refused:
                    return _nobody(vpn, username, given, credentials.refuses)
                if credentials.needs_password(known):
                    proved = credentials.remembered(known, given)
                    if not proved:
                        return _admission(vpn, known, True, given)
                admission = _admission(vpn, known, False, given)
        _check_may(admission, peer)
    except Refused as refusal:
        if proved or not hides:
            raise
        return _nobody(vpn, username, given, credentials.refuses or refusal.why)
    _check_room(admission, holder)
    return admission


def _nobody(vpn: MessageVpn, username: str | None, given: bytes, why: str) -> Admission:
    """An Admission that is refused for `why` after a password check; raises Refused without a name.

    The check makes the refusal take as long as that of a wrong password.
    """
    if not username:
        raise Refused(BAD_PASSWORD, BAD_CREDENTIALS, why)
    admission = _admission(vpn, vpn.credentials.decoy(username), True, given)
    admission.why = why
    return admission


def admit_proof(vpn: MessageVpn, username: str | None) -> Admission:
    """Identify a client that will prove its password. Raises Refused where nothing can be proved.

    An unknown username is challenged like any other, also in a message VPN that does not exist or accepts no passwords.
    """
    credentials = vpn.credentials
    if credentials.client_cert is not None and not credentials.basic_enabled:
        admission = _nobody(vpn, username, b"", NO_BASIC)
    else:
        try:
            admission = _admission(vpn, credentials.identify(username), True, b"")
        except Refused:
            admission = _nobody(vpn, username, b"", credentials.refuses)
    stored = admission.username.password
    if stored is None:
        raise Refused(NOTHING_TO_PROVE, BAD_CREDENTIALS)
    if stored.startswith(SCRYPT):
        raise Refused(NOT_FOR_SCRAM, BAD_CREDENTIALS, admission.why)
    return admission


def _by_certificate(
    credentials: Credentials,
    username: str | None,
    password: bytes | None,
    certificate: PeerCertificate | None,
    scheme: str,
) -> bool:
    """Return whether the certificate decides. Raises Refused where the requested scheme is shut down."""
    if credentials.client_cert is None:
        if scheme == CLIENT_CERTIFICATE:
            raise Refused(NO_CERTIFICATES, NOT_AUTHORIZED)
        return False
    if scheme == CLIENT_CERTIFICATE:
        return True
    if credentials.basic_enabled:
        return not scheme and certificate is not None and not (username and password)
    if scheme == BASIC or certificate is None:
        # Basic authentication that is off lets everybody in only where nothing else is asked for.
        raise Refused(NO_BASIC, NOT_AUTHORIZED)
    return True


def _admission(vpn: MessageVpn, known: ClientUsername, needs: bool, given: bytes) -> Admission:
    acl = vpn.acl_profiles[known.acl_profile]
    profile = vpn.profiles[known.client_profile]
    return Admission(vpn, known, profile, acl, needs, given)


def rights_of(vpn: MessageVpn, name: str) -> Admission | None:
    """Return the configured rights of a client username, None when it was removed.

    They apply to its connections and to what it left behind (promise OWNER).
    """
    known = vpn.credentials.of_name(name)
    return None if known is None else _admission(vpn, known, False, b"")


def report_rights(vpn: MessageVpn, name: str, rights: Admission, changed: list[str]) -> None:
    """Raise the event of changed rights of a client; `changed` names which."""
    events = vpn.context.events
    if events is not None:
        text = (
            f"VPN {vpn.name} client {name} username {rights.username.name}:"
            f" may do something else from now on: {', '.join(changed)}"
            f" (ACL profile {rights.acl.name}, client profile {rights.profile.name})"
        )
        events.raise_event(table.PERMISSIONS, vpn.name, name, text)


def check_verified(admission: Admission, peer: str, holder: Admission | None) -> None:
    """Raise Refused when a client with a verified password may not log in under the present settings.

    Its client username may have been removed or changed while the password was being verified.
    """
    if admission.why:
        raise Refused(BAD_PASSWORD, BAD_CREDENTIALS, admission.why)
    vpn = admission.vpn
    if not vpn.enabled:
        raise Refused(VPN_UNAVAILABLE, UNAVAILABLE)
    rights = rights_of(vpn, admission.username.name)
    if rights is None or not rights.username.enabled:
        raise Refused(SHUT_DOWN, NOT_AUTHORIZED)
    if rights.username.password != admission.username.password:
        raise Refused(BAD_PASSWORD, BAD_CREDENTIALS)
    admission.take(rights)
    if admission.password:
        # Not what was proved without being shown.
        vpn.credentials.remember(admission.username, admission.password)
    _check_may(admission, peer)
    _check_room(admission, holder)


def begin_verifying(connection: Connection, admission: Admission, entrance: PreLoginLimits) -> None:
    """Have the password of the admission of `connection` verified by the edge.

    Raises Refused where too many logins of this address or username have failed.
    """
    credentials = admission.vpn.credentials
    username = admission.username
    vpn = admission.vpn.name
    given = admission.password
    key = credentials.login_key(vpn, username, given)
    login = PendingLogin(entrance.verifications, connection, vpn, username.name, key)
    login.verifies(username.password or "", given)
    known = credentials.usernames.get(username.name) is username
    entrance.verify(login, known=known)


def _check_may(admission: Admission, peer: str) -> None:
    """Raise Refused when the message VPN or the username is shut down, or the ACL profile forbids the address."""
    if not admission.vpn.enabled:
        raise Refused(VPN_UNAVAILABLE, UNAVAILABLE)
    if not admission.username.enabled:
        raise Refused(SHUT_DOWN, NOT_AUTHORIZED)
    if not admission.acl.allows_connect(peer):
        raise Refused("403 Forbidden", NOT_AUTHORIZED)


def _check_room(admission: Admission, holder: Admission | None) -> None:
    """Raise Refused when the message VPN or the username is full; the place of `holder` becomes free."""
    vpn = admission.vpn
    name = admission.username.name
    count = len(vpn.publishers)
    of_username = vpn.connections_of.get(name, 0)
    if holder is not None:
        count -= 1
        if holder.username.name == name:
            of_username -= 1
    bound = vpn.limits.max_connection_count
    if bound and count >= bound:
        text = f"max_connection_count {bound:,} reached; logins are refused"
        vpn.report_once(table.CONNECTIONS_EXCEEDED, text)
        raise Refused("503 Too Many Clients", 0x97)
    per_username = admission.profile.max_connection_count_per_client_username
    if per_username and of_username >= per_username:
        raise Refused("503 Too Many Clients", 0x97)
