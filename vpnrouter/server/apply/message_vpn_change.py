"""Applies a changed configuration to a message VPN: its bounds, logins, profiles, and the rights of all who are in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.bridges.link import Link
from vpnrouter.config.configured_connector import provider_clients_of
from vpnrouter.config.model import changed
from vpnrouter.core.amqp.subscriptions import belong_to_providers, judge
from vpnrouter.core.client_connection import ClientConnection
from vpnrouter.core.guaranteed.endpoint import endpoints_of
from vpnrouter.core.guaranteed.endpoint_settings import SUBSCRIPTION, endpoint_settings_of
from vpnrouter.core.login import rights_of
from vpnrouter.core.mqtt.session import MqttSession
from vpnrouter.core.timers import Job
from vpnrouter.events.table import PERMISSIONS, VPN_STATE
from vpnrouter.server.apply.assemble import acl_of, bounds_of, credentials_of, profile_of
from vpnrouter.server.events.event_context import raise_event_in
from vpnrouter.server.spool.endpoints import judge_endpoint
from vpnrouter.wire.link import codes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vpnrouter.bridges.link_registry import LinkRegistry
    from vpnrouter.config.msg_vpn import MsgVpn
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.subscriber import Subscriber
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.settings.acl_profile import AclProfile
    from vpnrouter.settings.client_profile import ClientProfile
    from vpnrouter.settings.client_username import ClientUsername


CHANGES_TOLD: Final = 100
"""So many clients whose rights changed have an event of their own. One event has the number of the others."""


def change_message_vpn(
    vpn: MessageVpn, book: LinkRegistry, before: MsgVpn, after: MsgVpn, secret: bytes
) -> None:
    """Bring `vpn` from one configuration to another; its bridges are somebody else's."""
    vpn.take_bounds(bounds_of(after))
    vpn.session_terms = endpoint_settings_of(after.mqtt.session_queue)
    vpn.queue_terms = endpoint_settings_of(after.queue_defaults)
    if before.connectors != after.connectors:
        _change_provider_clients(vpn, after)
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
        raise_event_in(vpn.context, VPN_STATE, f"VPN {vpn.name} {state}", vpn.name)
    if goes_down:
        put_out(vpn, book, f"503 Message VPN Unavailable: {vpn.name} was disabled")
    if (
        before.acl_profiles != after.acl_profiles
        or before.client_profiles != after.client_profiles
        or before.authentication != after.authentication
        or _rights(before) != _rights(after)
    ):
        judge_all(vpn, book)


def _change_provider_clients(vpn: MessageVpn, after: MsgVpn) -> None:
    """Let clients that belong to providers of connectors, or did, log in again under what holds now."""
    names = set(vpn.provider_clients)
    vpn.provider_clients = provider_clients_of(after.connectors)
    for name in names | set(vpn.provider_clients):
        client = vpn.clients.get(name)
        if isinstance(client, MqttSession):
            client.belong_to_provider()
    belong_to_providers(vpn, names | set(vpn.provider_clients))


def judge_all(vpn: MessageVpn, book: LinkRegistry) -> None:
    """Apply changed client usernames, profiles and ACL profiles to all clients and sessions (promise OWNER), in slices.

    Clients that may not be connected any more are disconnected, sessions of removed client usernames end, and all
    others get their new rights.
    """
    vpn.context.work = 0
    job = RightsJob(vpn, book)
    if not job.step():
        vpn.context.jobs.add(job)


CLIENT_WORK: Final = 8
"""What it costs to judge a client or an endpoint, in parts of a turn (TurnContext.work)."""


@final
class RightsJob(Job):
    """Gives all who are in a message VPN the rights of its new configuration: in slices, since they may be thousands.

    Who logs in meanwhile has them already. Routes are forgotten in each slice: what they say of those that were judged
    does not hold any more.
    """

    __slots__ = ("_changed", "_clients", "_connections", "_endpoints", "_vpn")

    def __init__(self, vpn: MessageVpn, book: LinkRegistry) -> None:
        super().__init__()
        self._vpn = vpn
        self._changed = 0
        self._connections = _logged_in(vpn, book)[::-1]
        self._clients = list(vpn.clients.values())[::-1]
        self._endpoints = list(endpoints_of(vpn).values())[::-1]

    def step(self) -> bool:
        """Judge until this turn has done enough."""
        vpn = self._vpn
        context = vpn.context
        try:
            while not context.turn_spent:
                context.work += CLIENT_WORK
                if self._connections:
                    self._judge_connection(self._connections.pop())
                elif self._clients:
                    self._judge_client(self._clients.pop())
                elif self._endpoints:
                    self._judge_endpoint(self._endpoints.pop())
                else:
                    self._tell()
                    return True
        finally:
            vpn.forget_all_routes()
        return False

    def _judge_connection(self, connection: ClientConnection | Link) -> None:
        admission = connection.admission
        if admission is None or connection.closing:
            return
        name = admission.username.name
        rights = rights_of(self._vpn, name)
        if rights is not None:
            # Before it may be disconnected: its will is judged by the new rights as well.
            admission.take(rights)
            if isinstance(connection, ClientConnection):
                self._changed += connection.judge_again(rights, told=self._changed < CHANGES_TOLD)
        if rights is None or not rights.username.enabled:
            _disconnect(connection, f"403 Client Username Is Shutdown: {name}")
        elif not rights.acl.allows_connect(connection.peer):
            _disconnect(connection, f"403 Forbidden: ACL profile {rights.acl.name}")
        elif isinstance(connection, Link) and connection.peer_half is not None:
            connection.peer_half.judge()

    def _judge_client(self, client: Subscriber) -> None:
        if not isinstance(client, MqttSession) or not client.owner or client.gone:
            return
        rights = rights_of(self._vpn, client.owner)
        if rights is None:
            client.end(f"client username {client.owner} is gone")
        elif client.judge_again(rights, told=self._changed < CHANGES_TOLD):
            self._changed += 1

    def _judge_endpoint(self, endpoint: Endpoint) -> None:
        if endpoint.kind == SUBSCRIPTION:
            judge(endpoint)
        else:
            judge_endpoint(endpoint)

    def _tell(self) -> None:
        vpn = self._vpn
        if self._changed > CHANGES_TOLD:
            more = self._changed - CHANGES_TOLD
            text = f"VPN {vpn.name}: {more:,} more clients may do something else from now on"
            raise_event_in(vpn.context, PERMISSIONS, text, vpn.name)


def _asks_otherwise(before: MsgVpn, after: MsgVpn) -> bool:
    return (
        before.client_usernames != after.client_usernames
        or before.authentication != after.authentication
    )


def _rights(configured: MsgVpn) -> dict[str, ClientUsername]:
    """The client usernames without their passwords, which do not matter for clients that are logged in."""
    return {
        name: changed(username, password=None)
        for name, username in configured.client_usernames.items()
    }


def remove_message_vpn(vpn: MessageVpn, book: LinkRegistry) -> None:
    """Take `vpn` out of its router; its clients and those bridges of others that use it have to go."""
    vpn.enabled = False
    del book.router.vpns[vpn.name]
    raise_event_in(vpn.context, VPN_STATE, f"VPN {vpn.name} removed", vpn.name)
    put_out(vpn, book, f"503 Message VPN Unavailable: {vpn.name} was removed")
    for session in list(vpn.clients.values()):
        if isinstance(session, MqttSession):
            session.end()
    for key, record in list(book.records.items()):
        if record.facts.msg_vpn == vpn.name:
            del book.records[key]


def put_out(vpn: MessageVpn, book: LinkRegistry, why: str) -> None:
    """Disconnect all who are logged in to `vpn`."""
    for connection in _logged_in(vpn, book):
        _disconnect(connection, why)


def _logged_in(vpn: MessageVpn, book: LinkRegistry) -> list[ClientConnection | Link]:
    """The connections of clients, and of the bridges of others."""
    links = [link for link in book.serving.values() if link.vpn is vpn]
    clients = [client.client_connection() for client in vpn.clients.values()]
    return [*links, *(each for each in clients if isinstance(each, ClientConnection))]


def _disconnect(connection: ClientConnection | Link, why: str) -> None:
    if isinstance(connection, ClientConnection):
        connection.put_out(why)
    else:
        connection.goodbye(codes.ADMINISTRATIVE, why)


def _change_profiles(
    vpn: MessageVpn, before: Mapping[str, ClientProfile], after: Mapping[str, ClientProfile]
) -> None:
    vpn.profiles = {
        name: vpn.profiles[name] if before.get(name) == configured else profile_of(name, configured)
        for name, configured in after.items()
    }


def _change_acl_profiles(
    vpn: MessageVpn, before: Mapping[str, AclProfile], after: Mapping[str, AclProfile]
) -> None:
    # Rules that did not change stay the same objects: routes and clients remember decisions by the object.
    profiles = {}
    for name, configured in after.items():
        known = before.get(name)
        if known == configured:
            profiles[name] = vpn.acl_profiles[name]
            continue
        profiles[name] = fresh = acl_of(name, configured)
        if known is not None:
            old = vpn.acl_profiles[name]
            if known.publish_topic == configured.publish_topic:
                fresh.publish = old.publish
            if known.subscribe_topic == configured.subscribe_topic:
                fresh.subscribe = old.subscribe
            if known.subscribe_share_name == configured.subscribe_share_name:
                fresh.share_name = old.share_name
    vpn.acl_profiles = profiles
