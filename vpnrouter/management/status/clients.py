"""Makes the status of clients, MQTT sessions and subscriptions."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, final

import trio

from vpnrouter import limits
from vpnrouter.bridges.link import Link
from vpnrouter.bridges.link_client import LinkClient
from vpnrouter.core.amqp.client import AmqpClient
from vpnrouter.core.amqp.sending_link import TopicSubscriber
from vpnrouter.core.client_connection import ClientConnection
from vpnrouter.core.discard_reasons import (
    NO_SUBSCRIPTION_MATCH,
    PUBLISH_TOPIC_ACL,
    REFUSED,
    TRANSMIT_CONGESTION,
)
from vpnrouter.core.guaranteed.counters import EndpointCounters
from vpnrouter.core.guaranteed.endpoint import endpoint_of
from vpnrouter.core.guaranteed.endpoint_settings import (
    KIND_NAMES,
    QUEUE,
    SUBSCRIPTION,
    TOPIC_ENDPOINT,
)
from vpnrouter.core.guaranteed.spool import spool_of
from vpnrouter.core.mqtt.session import MqttSession
from vpnrouter.core.route import build, point_to_point
from vpnrouter.core.subscriber import Subscription
from vpnrouter.management.status.queues import SyncedCallback
from vpnrouter.management.status.stats_baseline import reasons_since
from vpnrouter.settings.shown import fill, read
from vpnrouter.topics.grammar import MQTT, QUEUE_PREFIX, parse_topic
from vpnrouter.units import SECOND_NS
from vpnrouter.wire.link import codes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from vpnrouter.bridges.link_registry import LinkRegistry
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.publisher import Publisher
    from vpnrouter.core.subscriber import Subscriber
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.management.server_hooks import ServerHooks
    from vpnrouter.management.status.stats_baseline import EndpointBaselines


@dataclass(frozen=True, slots=True)
class SubscriptionStatus:
    """One subscription of a client, a queue, a topic endpoint or a bridge of another router."""

    msg_vpn_name: str
    subscription_topic: str
    """As the subscriber wrote it."""
    syntax: str
    """`mqtt` or `smf`."""
    holder: str
    """`client`, `queue`, `topic-endpoint`, `subscription` (of an AMQP client) or `bridge`."""
    name: str
    """Name of the client, queue, topic endpoint or bridge client."""
    qos: int = 0
    share_name: str = ""
    selector: str = ""
    client_username: str = ""
    """The client username that it belongs to, or that owns the queue; "" for none, and for bridges."""
    connected: bool = True
    """False for a session whose client is away: guaranteed messages are kept for it, Direct ones are not."""


def matching(vpn: MessageVpn, topic: str) -> list[Subscription]:
    """The subscriptions by which somebody is sent, or keeps, a message to `topic` that is published now.

    Of a shared subscription all members that may be chosen. No message is at hand: selectors, no-local and
    where a message has been decide later. The route is made afresh and left out of the cache: whoever looks
    drives nothing out. Raises TopicError for what is no topic.
    """
    raw = topic.encode()
    text = parse_topic(raw, vpn.limits.max_topic_levels, vpn.limits.max_topic_bytes)
    if text.startswith(QUEUE_PREFIX):
        route = point_to_point(text, raw, vpn.queue(text[len(QUEUE_PREFIX) :]))
        return [found for target in route.endpoints for found in target.subscriptions]
    matched = [found for found in vpn.trie.match(text) if isinstance(found, Subscription)]
    route = build(text, raw, [*matched], vpn.groups)
    receivers: set[Subscriber] = {*route.receivers4, *route.receivers5}
    for target in (*route.special, *route.links, *route.endpoints, *route.sessions):
        receivers.add(target.subscriber)
    excluded = route.excluded
    found = []
    for subscription in matched:
        subscriber = subscription.subscriber
        if subscription.exception or not (subscriber.connected or subscription.qos):
            continue
        chosen = (
            subscriber not in excluded if subscription.filter.share else subscriber in receivers
        )
        if chosen and (not isinstance(subscriber, LinkClient) or subscriber.wants(raw)):
            found.append(subscription)
    return found


CLIENT: Final = "client"
BRIDGE: Final = "bridge"
"""Holders of subscriptions besides endpoints, which are called by their kinds."""


class Counted(NamedTuple):
    """What one connection has counted; discards by reason."""

    rx_messages: int = 0
    rx_bytes: int = 0
    tx_messages: int = 0
    tx_bytes: int = 0
    rx_discards: dict[str, int] = {}  # noqa: RUF012 - never changed
    tx_discards: dict[str, int] = {}  # noqa: RUF012

    def since(self, base: Counted) -> Counted:
        """What was counted since the counts stood at `base`."""
        return Counted(
            self.rx_messages - base.rx_messages,
            self.rx_bytes - base.rx_bytes,
            self.tx_messages - base.tx_messages,
            self.tx_bytes - base.tx_bytes,
            reasons_since(self.rx_discards, base.rx_discards),
            reasons_since(self.tx_discards, base.tx_discards),
        )


NOTHING = Counted()


def counted_by(connection: Connection) -> Counted:
    """What the connection of a client has counted until now."""
    publisher = publisher_of(connection)
    if publisher is None:
        return NOTHING
    outbox = connection.outbox
    received = {
        NO_SUBSCRIPTION_MATCH: publisher.unmatched,
        PUBLISH_TOPIC_ACL: publisher.acl_denied,
        REFUSED: publisher.refused,
    }
    sent = {TRANSMIT_CONGESTION: outbox.discarded}
    if isinstance(connection, Link) and connection.client is not None:
        for reason, count in connection.client.discarded.counts.items():
            sent[reason] = sent.get(reason, 0) + count
    return Counted(
        publisher.messages,
        publisher.bytes_,
        outbox.messages,
        outbox.bytes_,
        {reason: count for reason, count in received.items() if count},
        {reason: count for reason, count in sent.items() if count},
    )


def publisher_of(connection: Connection) -> Publisher | None:
    """The publishing side of a client's connection; None before the login and after the end."""
    if isinstance(connection, ClientConnection):
        return connection.publisher
    return connection.sink if isinstance(connection, Link) else None


@final
class ClientLook:
    """A client and the connection that it has, if it has one, at `now_ns`; `base` is what is not shown of the counts.

    `transport` is the address of the peer, and the TLS version.
    """

    def __init__(
        self,
        msg_vpn: str,
        client: Subscriber,
        connection: Connection | None,
        base: Counted,
        now_ns: int,
        transport: tuple[str, str] = ("", ""),
    ) -> None:
        self.msg_vpn = msg_vpn
        self.client = client
        self.connection = connection
        self.transport = transport
        self.counted = NOTHING if connection is None else counted_by(connection).since(base)
        self.admission = (
            connection.admission if isinstance(connection, (ClientConnection, Link)) else None
        )
        self.session = client if isinstance(client, MqttSession) else None
        self.outbox_bytes = 0 if connection is None else connection.outbox.size
        since_ns = now_ns if connection is None else connection.since_ns
        self.uptime_s = max(0, now_ns - since_ns) // SECOND_NS

    @property
    def username(self) -> str:
        """The client username that it logged in with, or that its session belongs to."""
        if self.admission is not None:
            name: str = self.admission.username.name
            return name
        return "" if self.session is None else self.session.owner

    @property
    def keepalive_s(self) -> int:
        """Seconds, 0 for none."""
        connection = self.connection
        return connection.keepalive_s if isinstance(connection, ClientConnection) else 0

    @property
    def discarded(self) -> dict[str, int]:
        """Messages by reason, of both directions."""
        found = dict(self.counted.rx_discards)
        for why, count in self.counted.tx_discards.items():
            found[why] = found.get(why, 0) + count
        return found

    @property
    def slow(self) -> bool:
        """Whether its outbox is full, or had no room for a message since the counts began."""
        connection = self.connection
        if connection is None:
            return False
        lost = self.counted.tx_discards.get(TRANSMIT_CONGESTION, 0)
        return self.outbox_bytes >= connection.outbox.limit or lost > 0


def _memory(one: ClientLook) -> int:
    if one.session is not None:
        return one.session.memory_held
    account = None if one.connection is None else one.connection.account
    return 0 if account is None else account.held


def _platform(one: ClientLook) -> str:
    if isinstance(one.connection, ClientConnection):
        return one.connection.platform
    if one.session is None:
        return "vpnrouter link"
    return "MQTT 5" if one.session.level == 5 else "MQTT 3.1.1"


def _client_id(one: ClientLook) -> str:
    if isinstance(one.client, AmqpClient):
        return one.client.container
    return "" if one.session is None else one.session.client_name


def _subscription_count(one: ClientLook) -> int:
    client = one.client
    return client.subscriber_count if isinstance(client, AmqpClient) else len(client.subscriptions)


def _binds(one: ClientLook) -> int:
    connection = one.connection
    if isinstance(connection, ClientConnection):
        return connection.bind_count
    if one.session is not None:
        return 0 if one.session.outbound is None else len(one.session.outbound.flows)
    if isinstance(connection, Link) and connection.peer_half is not None:
        flows = connection.peer_half.flows
        return 0 if flows is None else len(flows.queues())
    return 0


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """One client as monitoring shows it, read from a ClientLook; names of the field's clients in snake_case. Counts
    are since it connected, or since they were cleared; `discarded` is by reason of core/discard_reasons.py, `refused`
    among them standing for reasons that only the message VPN tells apart. A link is a client too, of a bridge of
    another router or of an own one (`client_name` begins with `#bridge`).
    """

    msg_vpn_name: str = read(lambda one: one.msg_vpn, "")
    client_name: str = read(lambda one: one.client.client_name, "")
    client_username: str = read(lambda one: one.username, "")
    client_id: str = read(_client_id, "")
    """The client id of MQTT, or the container id of AMQP."""
    client_address: str = read(lambda one: one.transport[0], "")
    """`HOST:PORT`, "" for a session whose client is away."""
    client_profile_name: str = read(
        lambda one: "" if one.admission is None else one.admission.profile.name, ""
    )
    acl_profile_name: str = read(
        lambda one: "" if one.admission is None else one.admission.acl.name, ""
    )
    platform: str = read(_platform, "")
    """`MQTT 3.1.1`, `MQTT 5`, `AMQP 1.0` or `vpnrouter link`."""
    connected: bool = read(lambda one: one.connection is not None, True)
    clean_session: bool = read(lambda one: one.session is None or one.session.expiry_s == 0, True)
    keepalive: int = read(lambda one: one.keepalive_s)
    """Seconds, 0 for none."""
    tls_version: str = read(lambda one: one.transport[1], "")
    uptime: int = read(lambda one: one.uptime_s)
    """Seconds since it connected."""
    subscription_count: int = read(_subscription_count)
    rx_msg_count: int = read(lambda one: one.counted.rx_messages)
    rx_byte_count: int = read(lambda one: one.counted.rx_bytes)
    tx_msg_count: int = read(lambda one: one.counted.tx_messages)
    tx_byte_count: int = read(lambda one: one.counted.tx_bytes)
    rx_discarded_msg_count: int = read(lambda one: sum(one.counted.rx_discards.values()))
    tx_discarded_msg_count: int = read(lambda one: sum(one.counted.tx_discards.values()))
    discarded: dict[str, int] = read(lambda one: one.discarded, {})
    slow_subscriber: bool = read(lambda one: one.slow, False)
    """Its outbox is full, or had no room for a message since the counts began."""
    outbox_bytes: int = read(lambda one: one.outbox_bytes)
    """Bytes that wait to be sent to it."""
    memory_bytes: int = read(_memory)
    """Bytes that the router keeps in memory for it, of all kinds, as they count (core/memory_account.py)."""
    bind_count: int = read(_binds)
    """Flows that it has bound to queues and topic endpoints."""


@final
class SessionLook:
    """A session, and the queue behind its subscriptions with the counts to show, at one moment."""

    def __init__(self, session: MqttSession, cleared: EndpointBaselines) -> None:
        self.session = session
        self.endpoint = endpoint = endpoint_of(session)
        self.counts = EndpointCounters() if endpoint is None else cleared.counters(endpoint)

    @property
    def will_topic(self) -> str:
        """The topic of its will, "" without one."""
        will = self.session.will
        return "" if will is None else will.message.topic.decode()

    @property
    def unacked(self) -> int:
        """Messages that were sent and not acknowledged."""
        flows = () if self.endpoint is None else self.endpoint.flows
        return sum(len(flow.unacked) for flow in flows)


@dataclass(frozen=True, slots=True)
class MqttSessionStatus:
    """One MQTT session, read from a SessionLook; names of the field's sessions in snake_case. Counts are those of the
    queue behind its subscriptions of QoS 1 and 2, 0 while it has none, since the router started or they were cleared.
    """

    msg_vpn_name: str = read(lambda one: one.session.vpn.name, "")
    mqtt_session_client_id: str = read(lambda one: one.session.client_name, "")
    mqtt_session_virtual_router: str = "auto"
    """The field's sessions belong to one router of a redundant pair; ours to the router they are on."""
    enabled: bool = True
    client_name: str = read(lambda one: one.session.client_name, "")
    connected: bool = read(lambda one: one.session.connected, True)
    clean: bool = read(lambda one: one.session.expiry_s == 0, True)
    """It ends with its connection."""
    durable: bool = read(lambda one: one.session.durable, False)
    """It outlives the router."""
    session_expiry_interval: int = read(lambda one: one.session.expiry_s)
    """Seconds that it waits for its client; 4294967295 for ever."""
    owner: str = read(lambda one: one.session.owner, "")
    """The client username that it belongs to, "" where that is not known any more."""
    queue_name: str = read(lambda one: "" if one.endpoint is None else one.endpoint.name, "")
    """The queue of its subscriptions of QoS 1 and 2, "" while it has none."""
    will: bool = read(lambda one: one.session.will is not None, False)
    will_topic: str = read(lambda one: one.will_topic, "")
    subscription_count: int = read(lambda one: len(one.session.subscriptions))
    msg_count: int = read(lambda one: 0 if one.endpoint is None else one.endpoint.spooled_count)
    """Messages that are kept for the client now."""
    tx_unacked_msg_count: int = read(lambda one: one.unacked)
    """Those among them that were sent and not acknowledged."""
    spooled_msg_count: int = read(lambda one: one.counts.spooled)
    acked_msg_count: int = read(lambda one: one.counts.acked)
    redelivered_msg_count: int = read(lambda one: one.counts.redelivered)
    discarded_msg_count: int = read(
        lambda one: one.counts.discarded.total() + one.counts.refused.total()
    )


# -- subscriptions -------------------------------------------------------------------------------


def holder_of(subscriber: Subscriber) -> tuple[str, str]:
    """Kind and name of whoever holds a subscription, as `SubscriptionStatus` has them."""
    if subscriber.is_endpoint:
        # Only endpoints are marked so.
        endpoint: Endpoint = subscriber  # type: ignore[assignment]
        return KIND_NAMES[endpoint.kind], endpoint.name
    return BRIDGE if subscriber.is_link else CLIENT, subscriber.client_name


def _username_of(subscriber: Subscriber) -> str:
    if subscriber.is_endpoint:
        endpoint: Endpoint = subscriber  # type: ignore[assignment]
        return endpoint.attracts_for[0] or endpoint.settings.owner
    if isinstance(subscriber, MqttSession):
        return subscriber.owner
    if isinstance(subscriber, TopicSubscriber):
        return subscriber.link.client.username
    return subscriber.username if isinstance(subscriber, AmqpClient) else ""


def subscription_status(msg_vpn: str, subscription: Subscription) -> SubscriptionStatus:
    """One subscription."""
    filter_ = subscription.filter
    subscriber = subscription.subscriber
    holder, name = holder_of(subscriber)
    selector = subscription.selector
    return SubscriptionStatus(
        msg_vpn_name=msg_vpn,
        subscription_topic=subscription.key,
        syntax="mqtt" if filter_.dialect == MQTT else "smf",
        holder=holder,
        name=name,
        qos=subscription.qos,
        share_name=filter_.share,
        selector="" if selector is None else selector.text,
        client_username=_username_of(subscriber),
        connected=subscriber.connected,
    )


DISCONNECTED: Final = "disconnected by the operator"

PORTION: Final = 1_000
"""Subscriptions that are put in order before the router's other work has its turn."""


@final
class Clients:
    """The clients of a running router. Called in the router's own thread."""

    def __init__(
        self,
        book: LinkRegistry,
        edge: ServerHooks,
        cleared: EndpointBaselines,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._book = book
        self._router = book.router
        self._edge = edge
        self._cleared = cleared
        self._clock_ns = clock_ns
        # Names as they stood in the message VPN, and the same in order.
        self._ordered: dict[str, tuple[list[str], list[str]]] = {}
        # What is not shown of the counts, as long as the very connection lasts.
        self._bases: dict[tuple[str, str], tuple[Publisher, Counted]] = {}

    def _find(self, msg_vpn: str, client: str) -> Subscriber | None:
        vpn = self._router.vpns.get(msg_vpn)
        return None if vpn is None else vpn.clients.get(client)

    def _connection(self, client: Subscriber) -> Connection | None:
        connection = client.client_connection()
        if connection is not None or not client.is_link:
            return connection
        links = [half.link for bridge in self._edge.bridges for half in bridge.halves.values()]
        for link in (*self._book.serving.values(), *links):
            if link.client is client:
                return link
        return None

    # -- clients ---------------------------------------------------------------------------------

    def client_names(self, msg_vpn: str) -> Sequence[str]:
        """Names of all clients of a message VPN in order, those of sessions without a connection included."""
        vpn = self._router.vpns.get(msg_vpn)
        if vpn is None:
            self._ordered.pop(msg_vpn, None)
            return ()
        names = list(vpn.clients)
        known = self._ordered.get(msg_vpn)
        # Comparing ten thousand names takes a tenth of the time that sorting them does.
        if known is None or known[0] != names:
            known = (names, sorted(names))
            self._ordered[msg_vpn] = known
        return known[1]

    def client(self, msg_vpn: str, client: str) -> ClientStatus | None:
        """One client, with counts since they were cleared; None where there is none of that name."""
        found = self._find(msg_vpn, client)
        if found is None:
            return None
        connection = self._connection(found)
        base = NOTHING if connection is None else self._base(msg_vpn, client, connection)
        transport = ("", "") if connection is None else self._edge.transport(connection)
        look = ClientLook(msg_vpn, found, connection, base, self._clock_ns(), transport)
        return fill(ClientStatus, look)

    def _base(self, msg_vpn: str, client: str, connection: Connection) -> Counted:
        known = self._bases.get((msg_vpn, client))
        if known is None:
            return NOTHING
        publisher, base = known
        if publisher is publisher_of(connection):
            return base
        del self._bases[msg_vpn, client]
        return NOTHING

    def subscriptions(self, msg_vpn: str, client: str) -> Sequence[SubscriptionStatus]:
        """The subscriptions of one client, in order; none where there is no such client.

        For an AMQP client those of the endpoints that it consumes from come last, `name` is that of the endpoint.
        """
        found = self._find(msg_vpn, client)
        if found is None:
            return ()
        rows = _rows(msg_vpn, found)
        if isinstance(found, AmqpClient):
            for endpoint in found.subscribed_endpoints():
                rows += _rows(msg_vpn, endpoint)
        return rows

    def disconnect(self, msg_vpn: str, client: str) -> bool:
        """Disconnect a client, with the reason that an operator did it; False where none is connected."""
        found = self._find(msg_vpn, client)
        connection = None if found is None else self._connection(found)
        if connection is None:
            return False
        if isinstance(connection, ClientConnection):
            connection.put_out(DISCONNECTED)
        elif isinstance(connection, Link):
            connection.goodbye(codes.ADMINISTRATIVE, DISCONNECTED)
        self._edge.flush()
        return True

    def clear_stats(self, msg_vpn: str, client: str) -> bool:
        """Begin the counts of a client anew; False where there is none of that name."""
        found = self._find(msg_vpn, client)
        if found is None:
            return False
        connection = self._connection(found)
        publisher = None if connection is None else publisher_of(connection)
        key = (msg_vpn, client)
        self._bases.pop(key, None)
        if connection is not None and publisher is not None:
            if len(self._bases) >= limits.CLEARED_COUNTS:
                del self._bases[next(iter(self._bases))]
            self._bases[key] = (publisher, counted_by(connection))
        return True

    # -- subscriptions ---------------------------------------------------------------------------

    def subscription_count(self, msg_vpn: str) -> int:
        """How many subscriptions the message VPN has, those of the configuration included."""
        vpn = self._router.vpns.get(msg_vpn)
        if vpn is None:
            return 0
        # Subscriptions of the configuration are not counted: they have no bound.
        return vpn.subscription_count + sum(
            one.configured
            for (kind, _), each in vpn.endpoints.items()
            if kind in (QUEUE, TOPIC_ENDPOINT, SUBSCRIPTION)
            for one in each.subscriptions.values()
        )

    def holders(self, msg_vpn: str) -> Sequence[tuple[str, str]]:
        """The kind and name of each holder of subscriptions, in order: bridges, clients, endpoints."""
        vpn = self._router.vpns.get(msg_vpn)
        if vpn is None:
            return ()
        clients = vpn.clients
        names = [name for name in self.client_names(msg_vpn) if _held(clients[name])]
        bridges = [(BRIDGE, name) for name in names if clients[name].is_link]
        found = [(CLIENT, name) for name in names if not clients[name].is_link]
        ends = [
            holder_of(each)
            for (kind, _), each in vpn.endpoints.items()
            if kind in (QUEUE, TOPIC_ENDPOINT, SUBSCRIPTION) and each.subscriptions
        ]
        # `bridge` and `client` stand before all kinds of endpoints, and are in order by themselves.
        return [*bridges, *found, *sorted(ends)]

    def held(self, msg_vpn: str, holder: str, name: str) -> Sequence[SubscriptionStatus]:
        """The subscriptions of one holder, in order; none where there is no such holder."""
        vpn = self._router.vpns.get(msg_vpn)
        if vpn is None:
            return ()
        found: Subscriber | None
        if holder == "queue":
            found = vpn.endpoints.get((QUEUE, name))
        elif holder == "topic-endpoint":
            found = vpn.endpoints.get((TOPIC_ENDPOINT, name))
        elif holder == KIND_NAMES[SUBSCRIPTION]:
            found = vpn.endpoints.get((SUBSCRIPTION, name))
        else:
            found = vpn.clients.get(name)
        return () if found is None or holder_of(found)[0] != holder else _rows(msg_vpn, found)

    async def matches(self, msg_vpn: str, topic: str, most: int) -> Sequence[SubscriptionStatus]:
        """The first `most` subscriptions that match `topic` now, in order of holder and subscription.

        Other tasks have their turn in between. Raises TopicError when `topic` is not valid.
        """
        vpn = self._router.vpns.get(msg_vpn)
        if vpn is None:
            return ()
        found = matching(vpn, topic)
        first: list[tuple[str, str, str, int]] = []
        for begin in range(0, len(found), PORTION):
            await trio.lowlevel.checkpoint()
            end = min(begin + PORTION, len(found))
            first += [
                (*holder_of(found[at].subscriber), found[at].key, at) for at in range(begin, end)
            ]
            first.sort()
            del first[most:]
        return [subscription_status(msg_vpn, found[key[-1]]) for key in first]

    # -- MQTT sessions ---------------------------------------------------------------------------

    def _session(self, msg_vpn: str, client_id: str) -> MqttSession | None:
        found = self._find(msg_vpn, client_id)
        return found if isinstance(found, MqttSession) else None

    def session_names(self, msg_vpn: str) -> Sequence[str]:
        """Client ids of all MQTT sessions of a message VPN, in order."""
        vpn = self._router.vpns.get(msg_vpn)
        clients = {} if vpn is None else vpn.clients
        return [
            name
            for name in self.client_names(msg_vpn)
            if isinstance(clients[name], MqttSession) and not name.startswith("#")
        ]

    def session(self, msg_vpn: str, client_id: str) -> MqttSessionStatus | None:
        """One MQTT session; None where there is none."""
        session = self._session(msg_vpn, client_id)
        if session is None:
            return None
        return fill(MqttSessionStatus, SessionLook(session, self._cleared))

    def clear_session_stats(self, msg_vpn: str, client_id: str) -> bool:
        """Begin the counts of a session, its client and its queue anew; False where there is none."""
        session = self._session(msg_vpn, client_id)
        if session is None:
            return False
        endpoint = endpoint_of(session)
        if endpoint is not None:
            self._cleared.clear(endpoint)
        return self.clear_stats(msg_vpn, client_id)

    async def end_session(self, msg_vpn: str, client_id: str) -> bool:
        """End the session of a client that is not connected, and return when that is synced.

        False where there is no such session, or its client is connected.
        """
        session = self._session(msg_vpn, client_id)
        if session is None or session.connection is not None:
            return False
        session.end()
        context = self._router.context
        self._edge.flush()
        spool = spool_of(context)
        if spool is not None:
            receipt = SyncedCallback()
            spool.when_synced(receipt, 0)
            if context.committing is not None:
                context.committing.step()
            await receipt.done.wait()
        return True


def _held(subscriber: Subscriber) -> dict[str, Subscription]:
    return subscriber.held() if isinstance(subscriber, AmqpClient) else subscriber.subscriptions


def _rows(msg_vpn: str, subscriber: Subscriber) -> list[SubscriptionStatus]:
    held = _held(subscriber)
    return [subscription_status(msg_vpn, held[key]) for key in sorted(held)]
