"""A message VPN of a changed configuration: bounds, profiles and client usernames, and who has to go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.bridges.link import Link
from vpnrouter.core import client_events
from vpnrouter.core.login import rights_of
from vpnrouter.core.mqtt.connect import judge_again
from vpnrouter.core.mqtt.connection import MqttConnection
from vpnrouter.core.mqtt.session import MqttSession
from vpnrouter.events.table import PERMISSIONS, VPN_STATE
from vpnrouter.server.assemble import acl_of, bounds_of, credentials_of, profile_of
from vpnrouter.server.endpoint_terms import session_terms
from vpnrouter.server.endpoints import judge_endpoint
from vpnrouter.server.narrate import tell_of
from vpnrouter.wire.link import codes
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


CHANGES_TOLD: Final = 100
"""So many clients whose rights changed have an event of their own. One event has the number of the others."""


def change_message_vpn(
    vpn: MessageVpn, book: LinkBook, before: MsgVpn, after: MsgVpn, secret: bytes
) -> None:
    """Bring `vpn` from one configuration to another; its bridges are somebody else's."""
    vpn.take_bounds(bounds_of(after))
    vpn.session_terms = session_terms(after.mqtt.session_queue)
    _change_profiles(vpn, before.client_profiles, after.client_profiles)
    _change_acl_profiles(vpn, before.acl_profiles, after.acl_profiles)
    goes_down = before.enabled and not after.enabled
    vpn.credentials = (
        credentials_of(vpn.name, after, secret)
        if _asks_otherwise(before, after)
        else vpn.credentials
    )
    vpn.enabled = after.enabled
    if before.enabled != after.enabled:
        state = "up" if after.enabled else "down"
        tell_of(vpn.plane, VPN_STATE, f"VPN {vpn.name} {state}", vpn.name)
    if goes_down:
        put_out(vpn, book, f"503 Message VPN Unavailable: {vpn.name} was disabled")
    if (
        before.acl_profiles != after.acl_profiles
        or before.client_profiles != after.client_profiles
        or before.authentication != after.authentication
        or _rights(before) != _rights(after)
    ):
        judge_all(vpn, book)


def judge_all(vpn: MessageVpn, book: LinkBook) -> None:
    """Apply changed client usernames, profiles and ACL profiles to all clients and sessions (promise OWNER).

    Clients that may not be connected any more are disconnected, sessions of removed client usernames end, and all
    others get their new rights.
    """
    changed = 0
    for connection in _logged_in(vpn, book):
        admission = connection.admission
        if admission is None:
            continue
        name = admission.username.name
        rights = rights_of(vpn, name)
        if rights is not None and isinstance(connection, MqttConnection) and connection.session:
            # Before it may be disconnected: its will is judged by the new rights as well.
            changed += judge_again(connection.session, rights, told=changed < CHANGES_TOLD)
        if rights is None or not rights.username.enabled:
            _disconnect(connection, f"403 Client Username Is Shutdown: {name}")
        elif not rights.acl.allows_connect(connection.peer):
            _disconnect(connection, f"403 Forbidden: ACL profile {rights.acl.name}")
        else:
            admission.take(rights)
            if isinstance(connection, Link) and connection.outbound is not None:
                connection.outbound.judge()
    for client in list(vpn.clients.values()):
        if not isinstance(client, MqttSession) or not client.owner:
            continue
        rights = rights_of(vpn, client.owner)
        if rights is None:
            client_events.session_ended(client, f"client username {client.owner} is gone")
            client.end()
        elif judge_again(client, rights, told=changed < CHANGES_TOLD):
            changed += 1
    if changed > CHANGES_TOLD:
        text = f"VPN {vpn.name}: {changed - CHANGES_TOLD:,} more clients may do something else from now on"
        tell_of(vpn.plane, PERMISSIONS, text, vpn.name)
    for endpoint in vpn.endpoints.values():
        judge_endpoint(endpoint)
    vpn.forget_all_routes()


def _asks_otherwise(before: MsgVpn, after: MsgVpn) -> bool:
    return (
        before.client_usernames != after.client_usernames
        or before.authentication != after.authentication
    )


def _rights(written: MsgVpn) -> dict[str, ClientUsername]:
    """The client usernames without their passwords, which do not matter for clients that are logged in."""
    return {
        name: username.model_copy(update={"password": None})
        for name, username in written.client_usernames.items()
    }


def remove_message_vpn(vpn: MessageVpn, book: LinkBook) -> None:
    """Take `vpn` out of its router; its clients and those bridges of others that use it have to go."""
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
        connection.goodbye(codes.ADMINISTRATIVE, why)


def _change_profiles(
    vpn: MessageVpn, before: Mapping[str, ClientProfile], after: Mapping[str, ClientProfile]
) -> None:
    vpn.profiles = {
        name: vpn.profiles[name] if before.get(name) == written else profile_of(name, written)
        for name, written in after.items()
    }


def _change_acl_profiles(
    vpn: MessageVpn, before: Mapping[str, AclProfile], after: Mapping[str, AclProfile]
) -> None:
    # Rules that did not change stay the same objects: routes and clients remember decisions by the object.
    profiles = {}
    for name, written in after.items():
        known = before.get(name)
        if known == written:
            profiles[name] = vpn.acl_profiles[name]
            continue
        profiles[name] = fresh = acl_of(name, written)
        if known is not None:
            old = vpn.acl_profiles[name]
            if known.publish_topic == written.publish_topic:
                fresh.publish = old.publish
            if known.subscribe_topic == written.subscribe_topic:
                fresh.subscribe = old.subscribe
            if known.subscribe_share_name == written.subscribe_share_name:
                fresh.share_name = old.share_name
    vpn.acl_profiles = profiles
