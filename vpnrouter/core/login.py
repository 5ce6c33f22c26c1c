"""May this client in? Message VPN, client username, ACL, limits: the same rules for every protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter.errors import Refused

if TYPE_CHECKING:
    from vpnrouter.core.access import AclProfile
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


def admit(vpn: MessageVpn, username: str | None, password: bytes | None, peer: str) -> Admission:
    """Check a login against the VPN's rules, all but the password itself.

    `peer` is the client's address as text. Raises Refused with the field's reason.
    """
    known = vpn.credentials.identify(username)
    acl = vpn.acl_profiles[known.acl_profile]
    if not acl.allows_connect(peer):
        raise Refused("403 Forbidden", 0x87)
    bound = vpn.limits.max_connection_count
    if bound and len(vpn.publishers) >= bound:
        raise Refused("503 Too Many Clients", 0x97)
    profile = vpn.profiles[known.client_profile]
    per_username = profile.max_connection_count_per_client_username
    if per_username and vpn.connections_of.get(known.name, 0) >= per_username:
        raise Refused("503 Too Many Clients", 0x97)
    given = password or b""
    needs = vpn.credentials.needs_password(known) and not vpn.credentials.remembered(known, given)
    return Admission(vpn, known, profile, acl, needs, given)
