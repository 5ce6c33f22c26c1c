"""Applies a changed configuration to bridges, listeners, topic mappings and message VPNs; what can fail comes first."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Final, final

from vpnrouter.bridges.link import Link
from vpnrouter.bridges.peer_subscriptions import PeerSubscriptions
from vpnrouter.config.configured_connector import login_of, provider_clients_of
from vpnrouter.config.effects import Item
from vpnrouter.config.model import changed
from vpnrouter.core.amqp.subscriptions import judge
from vpnrouter.core.client_connection import ClientConnection
from vpnrouter.core.guaranteed.endpoint import endpoints_of
from vpnrouter.core.guaranteed.endpoint_settings import SUBSCRIPTION, endpoint_settings_of
from vpnrouter.core.login import rights_of
from vpnrouter.core.mqtt.session import MqttSession
from vpnrouter.core.timers import Job
from vpnrouter.errors import OperationError, Refused
from vpnrouter.events.table import PERMISSIONS, VPN_STATE
from vpnrouter.server.apply.assemble import acl_of, bounds_of, credentials_of, profile_of
from vpnrouter.server.events.event_context import raise_event_in
from vpnrouter.server.net.listeners import (
    BACKLOG,
    BoundListener,
    bind,
    keyed,
    reload_tls,
    served,
)
from vpnrouter.server.net.reactor import shown_address
from vpnrouter.server.net.tls import ServerTls
from vpnrouter.server.spool.endpoints import judge_endpoint
from vpnrouter.settings.listener import MANAGEMENT_PROTOCOLS
from vpnrouter.settings.schema import Effect
from vpnrouter.wire.link import codes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from vpnrouter.bridges.link_registry import LinkRegistry
    from vpnrouter.config.effects import Change
    from vpnrouter.config.msg_vpn import MsgVpn
    from vpnrouter.config.router import RouterConfig
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.subscriber import Subscriber
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.server.bridges.runner import BridgeRunner
    from vpnrouter.server.connectors.runner import ConnectorRunner
    from vpnrouter.server.net.listeners import ListenerSet
    from vpnrouter.settings.acl_profile import AclProfile
    from vpnrouter.settings.client_profile import ClientProfile
    from vpnrouter.settings.client_username import ClientUsername
    from vpnrouter.settings.listener import Listener
    from vpnrouter.topics.mapping import TopicMapping


def rename_outward(book: LinkRegistry) -> None:
    """Let each link that serves a bridge of a peer rename what leaves as `book.out_mappings` says now.

    What the peer asked for stands for other topics here under another mapping, so it is asked for anew. A
    peer for whom that is too much (its client profile bounds subscriptions) logs in again.
    """
    for link in list(book.serving.values()):
        peer = link.peer_half
        if peer is None or link.vpn is None:
            continue
        hello = peer.hello
        mapping = book.out_mapping(link.vpn.name, hello.router, hello.local_vpn)
        if _shown(mapping) == _shown(peer.mapping):
            continue
        peer.mapping = mapping
        if peer.flows is not None:
            peer.flows.rename(mapping)
        if not _ask_anew(link, mapping):
            code = codes.ADMINISTRATIVE
            link.goodbye(code, f"{codes.REASONS[code]}: other topic mapping")


def _shown(mapping: TopicMapping | None) -> list[tuple[str, str, list[int]]]:
    """The parts of a mapping by which two mappings are compared: label, filter and kinds of each rule."""
    rules = [] if mapping is None else mapping.rules
    return [(rule.label, rule.filter.text, list(rule.filter.kinds)) for rule in rules]


def _ask_anew(link: Link, mapping: TopicMapping | None) -> bool:
    """Put the subscriptions of the peer in terms of another mapping; False where one is not possible."""
    peer, client, admission = link.peer_half, link.client, link.admission
    before = None if peer is None else peer.attracted
    if peer is None or client is None or admission is None or before is None:
        return False
    client.vpn.drop(client)
    client.rename(mapping)
    peer.attracted = PeerSubscriptions(client, admission, mapping)
    try:
        for text, (flags, selector) in before.asked.items():
            peer.attracted.subscribe_one(flags, text, selector)
    except Refused:
        return False
    return True


Place = tuple[str, str]
"""A bridge: its message VPN and its name."""

_REMOTE_AT: Final = 5
"""Where the path of a change to a remote message VPN of a bridge says which one."""


def change_bridges(
    runners: list[BridgeRunner],
    before: RouterConfig,
    after: RouterConfig,
    found: Iterable[Change],
    begin: Callable[[str, str], BridgeRunner],
) -> None:
    """Bring `runners` from one configuration to another that differs by `found`.

    `begin` makes and starts the runner of one more bridge of `after`. Runners whose bridges did not change
    are not touched.
    """
    running = {bridge_item(runner): runner for runner in runners}
    there = bridge_items(after)
    stay: dict[Place, BridgeRunner] = {}
    for place, runner in running.items():
        if place in there:
            stay[place] = runner
        else:
            runner.remove()
            if runner.flow is not None:
                runner.flow.remove()
    moved = reconnects(stay, found)
    for place in stay:
        if before.msg_vpns[place[0]].enabled != after.msg_vpns[place[0]].enabled:
            moved.setdefault(place, False)
    # Two bridges may have changed roles: what each renames is forgotten before any is told anew.
    for place in moved:
        stay[place].links.forget()
    for (vpn_name, name), reconnect in moved.items():
        vpn = after.msg_vpns[vpn_name]
        runner = stay[vpn_name, name]
        runner.change(vpn.bridges[name], vpn.bridging.tls_server_cert, reconnect=reconnect)
    runners[:] = [stay[place] if place in stay else begin(*place) for place in there]


def change_connectors(
    runners: list[ConnectorRunner],
    after: RouterConfig,
    found: Iterable[Change],
    begin: Callable[[str, str], ConnectorRunner],
    leaving: list[ConnectorRunner],
) -> None:
    """Bring `runners` of connectors to the configuration `after`, which differs from the one before by `found`.

    `leaving` are those that were removed, until they have ended.
    """
    running = {(runner.vpn.name, runner.name): runner for runner in runners}
    there = [(vpn, name) for vpn, each in after.msg_vpns.items() for name in each.connectors]
    hit = {place for change in found for place in there if _connector_of(change, place)}
    logins = {connector_login(after, place) for place in there}
    for place, runner in running.items():
        if place not in there:
            runner.remove(bequeaths=runner.login in logins)
            leaving.append(runner)
        elif place in hit:
            vpn = after.msg_vpns[place[0]]
            runner.change(vpn.connectors[place[1]], vpn.bridging.tls_server_cert)
    runners[:] = [running.get(place) or begin(*place) for place in there]
    leaving[:] = [runner for runner in leaving if not runner.ended.is_set()]


def connector_login(config: RouterConfig, place: Place) -> tuple[str, str]:
    """Return the login of a connector, by which its session is known at the provider."""
    vpn_name, name = place
    connector = config.msg_vpns[vpn_name].connectors[name]
    return login_of(config.router.name, vpn_name, name, connector)


def _connector_of(change: Change, place: Place) -> bool:
    """Return whether a change is one for the connector at `place`."""
    path = change.path
    if path[0] != "msg_vpns" or len(path) < 3 or path[1] != place[0]:
        return False
    if path[2] == "connectors":
        return len(path) > 4 and path[3] == place[1]
    return path[2] in ("bridging", "enabled")


def bridge_item(runner: BridgeRunner) -> Place:
    """The bridge of a runner."""
    return runner.vpn.name, runner.name


def bridge_items(config: RouterConfig) -> list[Place]:
    """All bridges of a configuration, in its order."""
    return [(vpn_name, name) for vpn_name, vpn in config.msg_vpns.items() for name in vpn.bridges]


def reconnects(stay: dict[Place, BridgeRunner], found: Iterable[Change]) -> dict[Place, bool]:
    """The bridges among `stay` that `found` changes, and whether each has to reconnect."""
    moved: dict[Place, bool] = {}
    for change in found:
        if change.path[0] != "msg_vpns" or len(change.path) < 3:
            continue
        for place, runner in stay.items():
            if place[0] != change.path[1]:
                continue
            if change.path[2] == "bridging":
                moved[place] = moved.get(place, False) or _is_encrypted(runner)
            elif change.path[2] == "bridges" and place[1] == change.path[3]:
                moved[place] = moved.get(place, False) or _is_hit(runner, change)
    return moved


def _is_encrypted(runner: BridgeRunner) -> bool:
    return runner.half is not None and runner.half.link.tls


def _is_hit(runner: BridgeRunner, change: Change) -> bool:
    if change.kind is not Effect.RECONNECT_IF_USED:
        return change.kind is Effect.RECONNECT
    used = runner.machine.remotes.current
    remote = change.path[_REMOTE_AT]
    return (
        used is not None
        and isinstance(remote, Item)
        and remote.identity == (used.msg_vpn, used.location)
    )


@final
class ListenerChange:
    """What `listeners` asks of those that answer now.

    Making it binds new addresses and reads all TLS files again, old ones included. Raises OperationError
    naming what cannot be used; everything is as before then.
    """

    def __init__(self, answering: ListenerSet, listeners: Sequence[Listener]) -> None:
        self._answering = answering
        self._quiet: list[socket.socket] = []
        self._order = list(keyed(listeners))
        wanted = served(listeners)
        self._kept: dict[Item, BoundListener] = {}
        for key, answer in answering.open.items():
            listener = wanted.get(key)
            if listener is not None and _stays(answer.bound.configured, listener):
                self._kept[key] = answer.bound._replace(configured=listener)
        self._gone = [key for key in answering.open if key not in self._kept]
        self._new: dict[Item, BoundListener] = {}
        try:
            for key, listener in wanted.items():
                if key not in self._kept:
                    self._new[key] = self._bound(listener)
            # The last that can fail, since it takes effect at once.
            reload_tls(list(self._kept.values()))
        except BaseException:
            self._undo()
            raise

    def apply(self) -> None:
        """Close the listeners that are gone, change those that stay, and open the new ones."""
        answering = self._answering
        for key in self._gone:
            answering.end(key)
        for key, bound in self._kept.items():
            answering.change(key, bound)
        for key, bound in self._new.items():
            answering.begin(key, bound)
        answering.arrange(self._order)

    def abandon(self) -> None:
        """Leave the listeners as they were; TLS files that cannot be read any more stay as they were read."""
        self._undo()
        was = [self._answering.open[key].bound for key in self._kept]
        with contextlib.suppress(OperationError):
            reload_tls(was)

    def _bound(self, listener: Listener) -> BoundListener:
        context = None if listener.tls is None else ServerTls(listener.tls)
        if context is not None:
            for answer in self._answering.open.values():
                if answer.bound.context is not None:
                    # What is told of failed handshakes is bounded for all listeners together.
                    context.failures = answer.bound.context.failures
        sock = self._socket(listener)
        return BoundListener(listener, sock, shown_address(sock.getsockname()), context)

    def _socket(self, listener: Listener) -> socket.socket:
        """A socket bound to the listener's address, if need be in the place of one that goes."""
        address = listener.address
        rivals = []
        for key in self._gone:
            bound = self._answering.open[key].bound
            if address.port and bound.configured.address == address:
                # The very same address: who waits there to be accepted is not sent away.
                return bound.sock.dup()
            if address.port == bound.sock.getsockname()[1]:
                rivals.append(bound.sock)
        try:
            return bind(address.host, address.port)
        except OperationError:
            if not rivals:
                raise
        for sock in rivals:
            # Listens no more, but can go on if the rest comes to nothing.
            sock.shutdown(socket.SHUT_RDWR)
            self._quiet.append(sock)
        return bind(address.host, address.port)

    def _undo(self) -> None:
        for bound in self._new.values():
            bound.sock.close()
        for sock in self._quiet:
            sock.listen(BACKLOG)


def _stays(before: Listener, after: Listener) -> bool:
    """Whether a listener that answers can go on as it is.

    The bound of a management listener is fixed when it begins.
    """
    if before.protocol in MANAGEMENT_PROTOCOLS:
        return before.max_connection_count == after.max_connection_count
    return True


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
