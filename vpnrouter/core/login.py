"""May this client in? Message VPN, client username, ACL, limits: the same rules for every protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter.errors import Refused

if TYPE_CHECKING:
    from vpnrouter.core.access import AclProfile
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.credentials import ClientUsername
    from vpnrouter.core.profile import ClientProfile
    from vpnrouter.core.router import Router
    from vpnrouter.core.vpn import MessageVpn


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
) -> Admission:
    """Find out who wants in; where no password is to be verified, also whether he may.

    `peer` is the client's address as text, `holder` the connection whose client the login takes over,
    if any. Raises Refused with the field's reason. Where a password is to be verified, the rules are
    asked after it (`check_allowed`), so that nobody learns by their answers which usernames exist.
    """
    known = vpn.credentials.identify(username)
    acl = vpn.acl_profiles[known.acl_profile]
    profile = vpn.profiles[known.client_profile]
    given = password or b""
    needs = vpn.credentials.needs_password(known) and not vpn.credentials.remembered(known, given)
    admission = Admission(vpn, known, profile, acl, needs, given)
    if not needs:
        check_allowed(admission, peer, holder)
    return admission


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
        raise Refused("503 Too Many Clients", 0x97)
    per_username = admission.profile.max_connection_count_per_client_username
    if per_username and of_username >= per_username:
        raise Refused("503 Too Many Clients", 0x97)
