"""Makes the status of client usernames, client profiles and ACL profiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from vpnrouter.core.credentials import DEFAULT
from vpnrouter.settings.client_profile import ClientProfile
from vpnrouter.settings.schema import showing, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vpnrouter.core.router import Router
    from vpnrouter.core.vpn import MessageVpn


@dataclass(frozen=True, slots=True)
class ClientUsernameStatus:
    """One client username; names of the field's in snake_case, `connection_count` is ours."""

    msg_vpn_name: str
    client_username: str
    enabled: bool = True
    dynamic: bool = False
    """It is not configured: `default` stands for it."""
    client_profile_name: str = ""
    acl_profile_name: str = ""
    guaranteed_endpoint_permission_override_enabled: bool = False
    connection_count: int = 0
    """Connections that are logged in with it, bridges of other routers included."""
    endpoint_count: int = 0
    """Endpoints that its clients made, such as those behind MQTT sessions."""


@dataclass(frozen=True, slots=True)
@showing(ClientProfile)
class ClientProfileStatus:
    """One client profile, with the attributes that are configured."""

    msg_vpn_name: str
    client_profile_name: str
    client_username_count: int = 0
    """Client usernames that have it."""
    connection_count: int = 0
    """Connections of client usernames that have it now; each keeps the profile that it logged in with."""


@dataclass(frozen=True, slots=True)
class AclProfileStatus:
    """One ACL profile; names of the field's in snake_case, actions are `allow` or `disallow`."""

    msg_vpn_name: str
    acl_profile_name: str
    client_connect_default_action: str = "allow"
    publish_topic_default_action: str = "allow"
    subscribe_topic_default_action: str = "allow"
    subscribe_share_name_default_action: str = "allow"
    client_username_count: int = 0
    """Client usernames that have it."""
    connection_count: int = 0
    """Connections of client usernames that have it now."""


_ACTIONS = {True: "allow", False: "disallow"}


@final
class Profiles:
    """Client usernames, client profiles and ACL profiles of all message VPNs of a router."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def username_names(self, msg_vpn: str) -> Sequence[str]:
        """Client usernames that are configured or connected, in order."""
        vpn = self._router.vpns.get(msg_vpn)
        if vpn is None:
            return ()
        return sorted(vpn.credentials.usernames.keys() | vpn.connections_of.keys())

    def username(self, msg_vpn: str, username: str) -> ClientUsernameStatus | None:
        """One client username; None where it is neither configured nor connected."""
        vpn = self._router.vpns.get(msg_vpn)
        if vpn is None:
            return None
        known = vpn.credentials.usernames.get(username)
        connections = vpn.connections_of.get(username, 0)
        if known is None and not connections:
            return None
        used = known or vpn.credentials.usernames.get(DEFAULT)
        return ClientUsernameStatus(
            msg_vpn_name=msg_vpn,
            client_username=username,
            enabled=used is None or used.enabled,
            dynamic=known is None,
            client_profile_name=DEFAULT if used is None else used.client_profile,
            acl_profile_name=DEFAULT if used is None else used.acl_profile,
            guaranteed_endpoint_permission_override_enabled=known is not None
            and known.guaranteed_endpoint_permission_override_enabled,
            connection_count=connections,
            endpoint_count=vpn.endpoints_of.get(username, 0),
        )

    def client_profiles(self, msg_vpn: str) -> Sequence[ClientProfileStatus]:
        """The client profiles of a message VPN; none where it does not exist."""
        vpn = self._router.vpns.get(msg_vpn)
        if vpn is None:
            return ()
        names = {name: each.client_profile for name, each in vpn.credentials.usernames.items()}
        usernames, connections = _uses(vpn, names)
        return [
            ClientProfileStatus(
                msg_vpn_name=msg_vpn,
                client_profile_name=name,
                **shown(ClientProfile, each),
                client_username_count=usernames.get(name, 0),
                connection_count=connections.get(name, 0),
            )
            for name, each in vpn.profiles.items()
        ]

    def acl_profiles(self, msg_vpn: str) -> Sequence[AclProfileStatus]:
        """The ACL profiles of a message VPN; none where it does not exist."""
        vpn = self._router.vpns.get(msg_vpn)
        if vpn is None:
            return ()
        names = {name: each.acl_profile for name, each in vpn.credentials.usernames.items()}
        usernames, connections = _uses(vpn, names)
        return [
            AclProfileStatus(
                msg_vpn_name=msg_vpn,
                acl_profile_name=name,
                client_connect_default_action=_ACTIONS[each.connect_default_allow],
                publish_topic_default_action=_ACTIONS[each.publish.default_allow],
                subscribe_topic_default_action=_ACTIONS[each.subscribe.default_allow],
                subscribe_share_name_default_action=_ACTIONS[each.share_name.default_allow],
                client_username_count=usernames.get(name, 0),
                connection_count=connections.get(name, 0),
            )
            for name, each in vpn.acl_profiles.items()
        ]


def _uses(vpn: MessageVpn, names: dict[str, str]) -> tuple[dict[str, int], dict[str, int]]:
    """Client usernames and connections by profile; `names` is the profile of each client username.

    Counted over client usernames and not over clients: of those there may be ten thousand.
    """
    usernames: dict[str, int] = {}
    for profile in names.values():
        usernames[profile] = usernames.get(profile, 0) + 1
    # A name that is not configured has the profiles of `default`.
    fallback = names.get(DEFAULT, DEFAULT)
    connections: dict[str, int] = {}
    for username, count in vpn.connections_of.items():
        profile = names.get(username, fallback)
        connections[profile] = connections.get(profile, 0) + count
    return usernames, connections
