"""Attaches links: finds or makes what their addresses name, and answers, or refuses them (AMQP 1.0, 2.6.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.amqp import termini
from vpnrouter.core.amqp.errors import condition_of, error
from vpnrouter.core.amqp.link import LINK_COST, REFUSED_COST, Link, Resumption
from vpnrouter.core.amqp.receiving_link import SECOND, ReceivingLink
from vpnrouter.core.amqp.sending_link import AmqpFlow, SendingLink, TopicSubscriber
from vpnrouter.core.amqp.subscriptions import (
    EndpointSubscription,
    filter_of,
    find_durable,
    subscribe,
)
from vpnrouter.core.conversion import TOPIC_SCHEME
from vpnrouter.core.credentials import NOT_AUTHORIZED
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.endpoint import Endpoint, endpoints_of
from vpnrouter.core.guaranteed.endpoint_settings import (
    CONSUME,
    NO_ACCESS,
    QUEUE,
    READ_ONLY,
)
from vpnrouter.core.guaranteed.refusals import TEMPORARY, not_there
from vpnrouter.core.known_deliveries import KNOWS
from vpnrouter.core.memory_account import OUTGROWN
from vpnrouter.core.publisher import BIND_FAILED
from vpnrouter.core.subscriber import Subscription
from vpnrouter.core.unsettled_deliveries import UnsettledDeliveries
from vpnrouter.errors import ProtocolError, Refused, TopicError
from vpnrouter.topics.grammar import queue_topic
from vpnrouter.wire.amqp import conditions
from vpnrouter.wire.amqp.frames import encode
from vpnrouter.wire.amqp.performatives import Attach, Coordinator, Detach, Flow, Source, Target
from vpnrouter.wire.amqp.types import MapWalk, RawMap, Symbol
from vpnrouter.wire.mqtt.reason import QUOTA_EXCEEDED

if TYPE_CHECKING:
    from vpnrouter.core.amqp.client import AmqpClient
    from vpnrouter.core.amqp.session import AmqpSession
    from vpnrouter.core.amqp.termini import Node, Wish

SETTLED: Final = 1
"""Mode of a sender (2.8.2)."""

OUTCOMES: Final = (
    "amqp:accepted:list",
    "amqp:rejected:list",
    "amqp:released:list",
    "amqp:modified:list",
)


def attach(session: AmqpSession, packet: Attach) -> None:
    """Attach a link, or refuse it with an error that says why."""
    client = session.connection.client
    if client is None:
        return
    connection = session.connection
    if len(packet.name.encode()) + NAME_FRAME_BYTES > connection.max_frame:
        # Not even a refusal, which has the name, could be told.
        connection.give_back(REFUSED_COST)
        connection.fail(conditions.FRAME_SIZE_TOO_SMALL, "2.7.1: no frame for the name of the link")
        return
    if connection.crowded() or not connection.take(LINK_COST - REFUSED_COST):
        refused = RefusedLink(session, client, packet)
        _refuse(session, refused, packet, conditions.RESOURCE_LIMIT_EXCEEDED, OUTGROWN)
        return
    try:
        _check(session, packet)
        session.connection.context.work += WORK
        if packet.role:
            _Sending(session, client, packet).attach()
        else:
            _receive(session, client, packet)
    except ProtocolError as problem:
        link = _ended(session, client, packet)
        _refuse(session, link, packet, problem.reason_code, str(problem))
    except Refused as refusal:
        publisher = session.connection.publisher
        if (
            refusal.reason == refusals.PERMISSION_DENIED
            and publisher is not None
            and not publisher.told & BIND_FAILED
        ):
            publisher.report_once(BIND_FAILED, f"{refusal.why}: link {packet.name}")
        code = condition_of(refusal.reason, refusal.reason_code)
        _refuse(session, _ended(session, client, packet), packet, code, refusal.reason)


def _check(session: AmqpSession, packet: Attach) -> None:
    if session.connection.link_count >= limits.AMQP_LINKS:
        raise Refused(f"a connection has at most {limits.AMQP_LINKS:,} links", QUOTA_EXCEEDED)
    if len(packet.name.encode()) > limits.AMQP_LINK_NAME_BYTES:
        raise ProtocolError(
            conditions.INVALID_FIELD,
            f"2.6.1: the name of a link has at most {limits.AMQP_LINK_NAME_BYTES:,} bytes",
        )


def _fits(session: AmqpSession, answer: Attach) -> None:
    """Raise ProtocolError where the client takes no frame that is large enough for an answer (2.7.1)."""
    most = session.connection.max_frame
    if most < limits.AMQP_FRAME_BYTES and len(encode(answer, session.channel)) > most:
        raise ProtocolError(
            conditions.FRAME_SIZE_TOO_SMALL, f"2.7.1: the answer has more than {most:,} bytes"
        )


NAME_FRAME_BYTES: Final = 80
"""Bytes of a frame that refuses a link, without the link's name."""

WORK: Final = 40
"""What a link costs to attach, in parts of a turn (TurnContext.work)."""


@final
class RefusedLink(Link):
    """A link that was refused: its handle is taken until the client has detached it too."""

    __slots__ = ()

    def __init__(self, session: AmqpSession, client: AmqpClient, packet: Attach) -> None:
        # Its name may be a long one, and is of no use.
        super().__init__(session, client, "", packet.handle, detached=True)
        session.add(self)

    def flow(self, packet: Flow) -> None:
        """Nothing flows."""

    def let_go(self, *, closed: bool) -> None:
        """Nothing is held."""


def _ended(session: AmqpSession, client: AmqpClient, packet: Attach) -> Link:
    """Return the link that was made and could not be bound, or one that stands for it."""
    link = session.links.get(packet.handle)
    if link is None:
        session.connection.give_back(LINK_COST - REFUSED_COST)
        link = RefusedLink(session, client, packet)
    return link


def _refuse(session: AmqpSession, link: Link, packet: Attach, condition: int, text: str) -> None:
    """Answer with a link that has no terminus, and end it (2.6.3)."""
    link.detached = True
    count = 0 if packet.role else None
    session.say(Attach(packet.name, packet.handle, not packet.role, initial_delivery_count=count))
    session.say(Detach(packet.handle, True, error(condition, text)))


# -- links that the client sends over ----------------------------------------------------------------


def _receive(session: AmqpSession, client: AmqpClient, packet: Attach) -> None:
    target = packet.target
    if packet.initial_delivery_count is None:
        raise ProtocolError(conditions.INVALID_FIELD, "2.7.3: a sender says its delivery-count")
    topic = b""
    made: Endpoint | None = None
    controls = isinstance(target, Coordinator)
    if isinstance(target, Target):
        if target.dynamic:
            address, made = _temporary(client, target)
            target = target._replace(address=address)
            topic = _topic_of(termini.node_of(address, target.capabilities))
        else:
            topic = _topic_of(termini.node_of(target.address, target.capabilities))
        if topic and made is None:
            _may_publish(client, topic)
    elif not controls:
        raise ProtocolError(
            conditions.NOT_IMPLEMENTED, "3.5.4: a target is a node or a coordinator"
        )
    if controls and client.spool is None:
        raise Refused(refusals.SERVICE_UNAVAILABLE, QUOTA_EXCEEDED)
    link = ReceivingLink(
        session,
        client,
        packet.name,
        packet.handle,
        topic,
        count=packet.initial_delivery_count,
        unsettled=_resumed(client, packet) if packet.rcv_settle_mode == SECOND else None,
        controls=controls,
    )
    link.temporary = made
    if isinstance(target, Target):
        link.vague = not termini.says_kind(target.address, target.capabilities)
        link.lasts_s = -1 if target.expiry_policy == "never" else target.timeout
        # What is not settled is lost with the router.
        target = target._replace(durable=min(target.durable, 1))
        if KNOWS in (packet.desired_capabilities or []):
            link.know_again()
    answer = Attach(
        packet.name,
        packet.handle,
        True,
        packet.snd_settle_mode,
        packet.rcv_settle_mode,
        packet.source,
        target,
        max_message_size=link.most,
        offered_capabilities=None if link.known is None else [Symbol(KNOWS)],
        properties=None if link.known is None else {Symbol(KNOWS): link.known.most},
    )
    session.add(link)
    try:
        _fits(session, answer)
        if made is not None:
            link.count_endpoint()
    except Exception:
        session.remove(link)
        raise
    walk = _unsettled(packet)
    if walk is None or link.unsettled is None:
        link.compared(answer)
    else:
        session.connection.work_on(Resumption(link, answer, walk))


def _unsettled(packet: Attach) -> MapWalk | None:
    """Return a walk over what the client says of deliveries that are not settled, None where it says nothing."""
    if not isinstance(packet.unsettled, RawMap):
        return None
    walk = MapWalk(packet.unsettled)
    return walk if walk.left else None


def _resumed(client: AmqpClient, packet: Attach) -> UnsettledDeliveries:
    """Return what is known of the deliveries of a link that settles second: it may have been attached before."""
    vpn = client.vpn
    key = (client.username, client.container, packet.name)
    found = vpn.links_away.take(key, vpn.context.now_ns)
    return UnsettledDeliveries() if found is None or _unsettled(packet) is None else found


def _topic_of(node: Node) -> bytes:
    """Return the topic that is published to; b"" for the anonymous relay.

    Raises ProtocolError for a queue whose name begins with `#`.
    """
    if node.kind == termini.QUEUE:
        if node.name.startswith("#"):
            raise ProtocolError(
                conditions.NOT_ALLOWED, "only the router sends to a queue whose name begins with #"
            )
        return queue_topic(node.name).encode()
    return node.name.encode()


def _may_publish(client: AmqpClient, topic: bytes) -> None:
    """Raise Refused where the client may not publish to the topic at all, ProtocolError where it is none."""
    publisher = client.connection.publisher
    if publisher is None:
        return
    try:
        route = client.vpn.route(topic)
    except TopicError as problem:
        raise ProtocolError(conditions.INVALID_FIELD, f"400 Topic Parse Error: {problem}") from None
    if not publisher.allowed(route):
        raise Refused(refusals.ACL_DENIED, NOT_AUTHORIZED)
    if not route.may_put(publisher.username, publisher.rule):
        raise Refused(refusals.PERMISSION_DENIED, NOT_AUTHORIZED)
    if route.missing_queue:
        if publisher.may_learn(route):
            raise Refused(refusals.QUEUE_NOT_FOUND, NOT_AUTHORIZED)
        raise Refused(refusals.PERMISSION_DENIED, NOT_AUTHORIZED, refusals.QUEUE_NOT_FOUND)


# -- links that the client is sent messages over -----------------------------------------------------


@final
class _Sending:
    """One link over which the client wants to be sent messages."""

    __slots__ = ("_client", "_link", "_made", "_packet", "_session", "_source")

    def __init__(self, session: AmqpSession, client: AmqpClient, packet: Attach) -> None:
        self._session = session
        self._client = client
        self._packet = packet
        self._source: Source | None = None
        self._made: Endpoint | None = None
        source = packet.source
        self._link = SendingLink(
            session,
            client,
            packet.name,
            packet.handle,
            presettled=packet.snd_settle_mode == SETTLED,
            outcome=source.default_outcome if isinstance(source, Source) else None,
        )
        self._link.most = packet.max_message_size

    def attach(self) -> None:
        """Bind or subscribe, and answer. Raises ProtocolError and Refused."""
        source = self._packet.source
        if source is None:
            self._look_up()
            return
        if not isinstance(source, Source):
            raise ProtocolError(conditions.NOT_IMPLEMENTED, "3.5.3: a source is a node")
        session, link, client = self._session, self._link, self._client
        if source.dynamic:
            address, self._made = _temporary(client, source)
            source = source._replace(address=address)
        client.vpn.context.work += termini.work_of(source)
        wish = termini.wish_of(source, self._packet.name)
        source = source._replace(filter=wish.filters)
        link.temporary = self._made
        session.add(link)
        synced = True
        try:
            _fits(session, self._answer(source))
            if self._made is not None:
                link.count_endpoint()
            synced = self._connect(wish)
        except Exception:
            session.remove(link)
            raise
        answer = self._answer(source)
        walk = None if link.consumer is None else _unsettled(self._packet)
        # A durable subscription is granted when it is in the spool, and so is what the client has settled.
        if walk is None or not synced:
            link.answer(answer, synced=synced)
        else:
            session.connection.work_on(Resumption(link, answer, walk))

    def _connect(self, wish: Wish) -> bool:
        """Give the link its consumer or its subscriber; False where that has to be synced before it is told."""
        client, link = self._client, self._link
        if wish.node.kind == termini.ANONYMOUS:
            raise ProtocolError(conditions.INVALID_FIELD, "3.5.3: a source without an address")
        if wish.node.kind == termini.QUEUE:
            self._bind(wish)
            return True
        named = wish.subscription != ""
        if not named and (link.presettled or not self._keeps()):
            link.presettled = True
            filter_ = filter_of(client, wish.node.name)
            subscriber = TopicSubscriber(link, no_local=client.no_local(wish.no_local))
            client.vpn.subscribe(Subscription(filter_, subscriber, selector=wish.selector))
            client.subscriber_count += 1
            link.subscriber = subscriber
            return True
        self._have_flow()
        if not client.receives:
            raise Refused(refusals.PERMISSION_DENIED, NOT_AUTHORIZED)
        if not named:
            link.count_endpoint()
        flow, made = subscribe(link, wish)
        client.egress_flows += 1
        link.consumer = flow
        return not made

    def _keeps(self) -> bool:
        """Return whether messages are kept for the link until it has settled them. Direct ones are all others get."""
        client = self._client
        if client.spool is None or not client.receives:
            return False
        return client.profile.may_create(False)

    def _bind(self, wish: Wish) -> None:
        """Bind the link to a queue, or let it look at one. Raises Refused."""
        client, link = self._client, self._link
        admission = client.connection.admission
        if client.spool is None or admission is None:
            raise Refused(refusals.SERVICE_UNAVAILABLE, QUOTA_EXCEEDED)
        if not client.receives:
            raise Refused(refusals.PERMISSION_DENIED, NOT_AUTHORIZED)
        endpoint = endpoints_of(client.vpn).get((QUEUE, wish.node.name))
        if endpoint is None:
            raise not_there(QUEUE, admission.username, wish.node.name)
        permission = admission.username.permission_on(endpoint.settings)
        # Before anything that differs from what is said of one that is not there.
        endpoint.permit(permission, READ_ONLY if wish.browse else CONSUME)
        if not endpoint.durable and wish.node.name not in client.connection.temporary:
            raise Refused(refusals.PERMISSION_DENIED, NOT_AUTHORIZED)
        self._have_flow()
        flow = AmqpFlow(link, endpoint, wish.selector, browsing=wish.browse)
        if wish.browse:
            if not flow.take_selector():
                raise Refused(refusals.TOO_MANY_FLOWS, QUOTA_EXCEEDED)
        else:
            endpoint.bind(flow, permission, CONSUME)
            client.connection.guaranteed = True
        client.egress_flows += 1
        link.consumer = flow

    def _have_flow(self) -> None:
        most = self._client.profile.max_egress_flow_count
        if self._client.egress_flows >= most:
            raise Refused(refusals.TOO_MANY_FLOWS, QUOTA_EXCEEDED)

    def _look_up(self) -> None:
        """Find the durable subscription that the link's name stands for: the client wants to end it, or to see it."""
        client, link, packet = self._client, self._link, self._packet
        name = termini.subscription_of(packet.name)
        everywhere = packet.name.partition("|")[2] == "global"
        endpoint = find_durable(client, name, everywhere=everywhere)
        if endpoint is None:
            raise ProtocolError(
                conditions.NOT_FOUND, f"{client.container} has no durable subscription {name}"
            )
        if endpoint.flows:
            raise ProtocolError(
                conditions.RESOURCE_LOCKED, f"the subscription {name} has a consumer"
            )
        link.looked_up = EndpointSubscription(endpoint, True)
        client.subscriber_count += 1
        self._session.add(link)
        texts = [held.filter.original for held in endpoint.subscriptions.values()]
        address = TOPIC_SCHEME + texts[0] if texts else None
        link.attached = True
        self._session.say(
            self._answer(
                Source(
                    address,
                    durable=2,
                    expiry_policy="never",
                    distribution_mode="copy",
                    capabilities=[Symbol("topic")],
                )
            )
        )

    def _answer(self, source: Source) -> Attach:
        packet = self._packet
        mode = SETTLED if self._link.presettled else packet.snd_settle_mode
        if source.outcomes is None:
            source = source._replace(outcomes=[Symbol(name) for name in OUTCOMES])
        return Attach(
            packet.name,
            packet.handle,
            False,
            mode,
            packet.rcv_settle_mode,
            source,
            packet.target,
            initial_delivery_count=0,
        )


# -- temporary queues and topics ---------------------------------------------------------------------


def _temporary(client: AmqpClient, terminus: Source | Target) -> tuple[str, Endpoint | None]:
    """Make a dynamic node: a temporary queue, or the name of a topic; its address. Raises Refused."""
    vpn = client.vpn
    name = f"{TEMPORARY}{vpn.context.router_name}/{vpn.context.ids.next():016x}"
    if termini.makes_topic(terminus):
        return TOPIC_SCHEME + name, None
    spool = client.spool
    profile = client.profile
    if spool is None:
        raise Refused(refusals.SERVICE_UNAVAILABLE, QUOTA_EXCEEDED)
    if not profile.may_create(False):
        raise Refused(refusals.PERMISSION_DENIED, NOT_AUTHORIZED)
    vpn.check_endpoint_count(client.username, profile.max_endpoint_count_per_client_username)
    settings = vpn.queue_terms.copy()
    settings.owner = client.username
    settings.permission = NO_ACCESS
    endpoint = Endpoint(spool, vpn, QUEUE, name, spool.number(), settings, False)
    endpoint.takes_from_all = True
    vpn.endpoints[QUEUE, name] = endpoint
    vpn.count_endpoint(client.username, 1)
    vpn.forget_queue(name)
    client.connection.temporary[name] = None
    return termini.shown(termini.Node(termini.QUEUE, name)), endpoint
