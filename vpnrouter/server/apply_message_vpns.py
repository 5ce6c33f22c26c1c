"""A message VPN of a changed configuration: bounds, profiles and client usernames, and who has to go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.bridges.link import Link
from vpnrouter.core.credentials import DEFAULT
from vpnrouter.core.mqtt.connection import MqttConnection
from vpnrouter.core.mqtt.session import MqttSession
from vpnrouter.events.table import VPN_STATE
from vpnrouter.server.assemble import acl_of, bounds_of, credentials_of, profile_of
from vpnrouter.server.endpoint_terms import session_terms
from vpnrouter.server.narrate import tell_of
from vpnrouter.wire.link import close_codes
from vpnrouter.wire.mqtt import reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vpnrouter.bridges.book import LinkBook
    from vpnrouter.config.acl_profile import AclProfile
    from vpnrouter.config.client_profile import ClientProfile
    from vpnrouter.config.client_username import ClientUsername
    from vpnrouter.config.msg_vpn import MsgVpn
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.vpn import MessageVpn

COUNTS: Final = (
    "max_connection_count_per_client_username",
    "max_egress_flow_count",
    "max_endpoint_count_per_client_username",
    "max_subscription_count",
)
"""What of a client profile also holds at once for those who are logged in."""


def change_message_vpn(
    vpn: MessageVpn, book: LinkBook, before: MsgVpn, after: MsgVpn, secret: bytes
) -> None:
    """Bring `vpn` from one configuration to another; its bridges are somebody else's."""
    vpn.take_bounds(bounds_of(after))
    vpn.session_terms = session_terms(after.mqtt.session_queue)
    _change_profiles(vpn, book, before.client_profiles, after.client_profiles)
    _change_acl_profiles(vpn, before.acl_profiles, after.acl_profiles)
    shut = _shut(before.client_usernames, after.client_usernames)
    goes_down = before.enabled and not after.enabled
    for name, username in vpn.credentials.usernames.items():
        if goes_down or name in shut:
            # Whoever's password is being verified just now holds this very object.
            username.enabled = False
    if (
        goes_down
        or before.client_usernames != after.client_usernames
        or before.authentication != after.authentication
    ):
        vpn.credentials = credentials_of(after, secret)
    vpn.enabled = after.enabled
    if before.enabled != after.enabled:
        state = "up" if after.enabled else "down"
        tell_of(vpn.plane, VPN_STATE, f"VPN {vpn.name} {state}", vpn.name)
    if goes_down:
        put_out(vpn, book, f"503 Message VPN Unavailable: {vpn.name} was disabled")
    elif shut:
        for connection in _logged_in(vpn, book):
            name = "" if connection.admission is None else connection.admission.username.name
            if name in shut or (DEFAULT in shut and name not in after.client_usernames):
                _disconnect(connection, f"403 Client Username Is Shutdown: {name}")


def remove_message_vpn(vpn: MessageVpn, book: LinkBook) -> None:
    """Take `vpn` out of its router; its clients and those bridges of others that use it have to go."""
    for username in vpn.credentials.usernames.values():
        username.enabled = False
    vpn.enabled = False
    del book.router.vpns[vpn.name]
    tell_of(vpn.plane, VPN_STATE, f"VPN {vpn.name} removed", vpn.name)
    put_out(vpn, book, f"503 Message VPN Unavailable: {vpn.name} was removed")
    for session in list(vpn.clients.values()):
        if isinstance(session, MqttSession):
            session.end()
    for key, record in list(book.records.items()):
        if record.facts.msg_vpn == vpn.name:
            del book.records[key]


def put_out(vpn: MessageVpn, book: LinkBook, why: str) -> None:
    """Disconnect all who are logged in to `vpn`."""
    for connection in _logged_in(vpn, book):
        _disconnect(connection, why)


def _logged_in(vpn: MessageVpn, book: LinkBook) -> list[Connection]:
    """The connections of clients, and of the bridges of others."""
    found: list[Connection] = [link for link in book.serving.values() if link.vpn is vpn]
    sessions = [client for client in vpn.clients.values() if isinstance(client, MqttSession)]
    found += [session.connection for session in sessions if session.connection is not None]
    return found


def _disconnect(connection: Connection, why: str) -> None:
    if isinstance(connection, MqttConnection):
        connection.fail(reason.ADMINISTRATIVE_ACTION, why)
    elif isinstance(connection, Link):
        connection.goodbye(close_codes.ADMINISTRATIVE, why)


def _shut(before: Mapping[str, ClientUsername], after: Mapping[str, ClientUsername]) -> set[str]:
    """Client usernames that are gone, or off and were not."""
    return {
        name
        for name, written in before.items()
        if name not in after or (written.enabled and not after[name].enabled)
    }


def _change_profiles(
    vpn: MessageVpn,
    book: LinkBook,
    before: Mapping[str, ClientProfile],
    after: Mapping[str, ClientProfile],
) -> None:
    if before == after:
        return
    # Whoever is logged in holds the profile of the login, of whichever configuration that was.
    held = [vpn.profiles]
    held += [
        {admission.profile.name: admission.profile}
        for admission in (connection.admission for connection in _logged_in(vpn, book))
        if admission is not None
    ]
    fresh = {name: profile_of(name, written) for name, written in after.items()}
    for profiles in held:
        for name, profile in profiles.items():
            if name in fresh:
                for count in COUNTS:
                    setattr(profile, count, getattr(fresh[name], count))
    kept = {name: vpn.profiles[name] for name in after if before.get(name) == after[name]}
    vpn.profiles = {**fresh, **kept}


def _change_acl_profiles(
    vpn: MessageVpn, before: Mapping[str, AclProfile], after: Mapping[str, AclProfile]
) -> None:
    # What did not change stays the same object: routes remember who allowed them.
    vpn.acl_profiles = {
        name: vpn.acl_profiles[name] if before.get(name) == written else acl_of(name, written)
        for name, written in after.items()
    }
