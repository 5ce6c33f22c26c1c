"""Handles SUBSCRIBE and UNSUBSCRIBE, binds consumers to endpoints, and sends retained messages in slices.

Some filters bind a consumer to an endpoint instead of subscribing to topics.

    $queue/NAME                    consume from the queue NAME
    $browse/NAME                   look at the messages of the queue NAME, and leave them there
    $topic-endpoint/NAME/FILTER    consume from the topic endpoint NAME, whose one subscription is FILTER

In NAME `%23` stands for `#`, `%2B` for `+` and `%25` for `%`.
User properties of the SUBSCRIBE apply to all of these in it: `selector` lets only matching messages through, `browse`
(`true`) makes a browser of a consumer, `replay-from` (`beginning`, an RFC 3339 date, or `id:N` for what came behind
message N) starts a replay to the queue. Every delivery has QoS 1 at least. A browser also sees messages that consumers
hold, and gets new ones some ten times a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.endpoint import endpoint_named, endpoint_of
from vpnrouter.core.guaranteed.endpoint_settings import (
    CONSUME,
    MODIFY_TOPIC,
    QUEUE,
    READ_ONLY,
    TOPIC_ENDPOINT,
)
from vpnrouter.core.guaranteed.refusals import PERMISSION_DENIED, not_there
from vpnrouter.core.guaranteed.replay import parse_start
from vpnrouter.core.guaranteed.spool import spool_of
from vpnrouter.core.mqtt.consumer_flow import MqttFlow
from vpnrouter.core.mqtt.qos_receiver import FrameWhenSynced
from vpnrouter.core.mqtt.qos_sender import QosSender
from vpnrouter.core.publisher import BIND_FAILED, SUBSCRIBE_DENIED
from vpnrouter.core.retained import forget_expired
from vpnrouter.core.subscriber import Subscription
from vpnrouter.core.timers import Job
from vpnrouter.errors import Refused, SelectorError, TopicError
from vpnrouter.selectors import parse_selector
from vpnrouter.topics.grammar import MQTT, QUEUE_PREFIX, parse_filter
from vpnrouter.wire.mqtt import reason
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import (
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsuback,
    Unsubscribe,
)

if TYPE_CHECKING:
    from vpnrouter.core.connection import Connection
    from vpnrouter.core.context import RouterContext
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message
    from vpnrouter.core.mqtt.connection import MqttConnection
    from vpnrouter.core.mqtt.session import MqttSession
    from vpnrouter.selectors import Selector
    from vpnrouter.topics.grammar import Filter
    from vpnrouter.topics.index import IndexWalk
    from vpnrouter.wire.mqtt.properties import Properties


BROWSE_PREFIX: Final = "$browse/"
TOPIC_ENDPOINT_PREFIX: Final = "$topic-endpoint/"

SELECTOR: Final = "selector"
BROWSE: Final = "browse"
REPLAY_FROM: Final = "replay-from"
"""User properties of SUBSCRIBE."""

BAD_SELECTOR: Final = "400 Bad Selector"
BAD_REPLAY_START: Final = "400 Bad Replay Start"


def binds(text: str) -> bool:
    """Whether this filter binds a consumer to a queue or topic endpoint, or browses a queue."""
    return text.startswith((QUEUE_PREFIX, BROWSE_PREFIX, TOPIC_ENDPOINT_PREFIX))


@final
class SubscribeProperties:
    """The user properties of one SUBSCRIBE that apply to the consumers that it binds.

    Each is parsed once, when a filter needs it.
    """

    __slots__ = ("_read", "_refused", "_replay", "_selector", "_selector_text", "browse")

    def __init__(self, properties: Properties) -> None:
        self._selector_text = ""
        self._replay = ""
        self.browse = False
        for name, text in properties.user_properties:
            if name == SELECTOR:
                self._selector_text = text or self._selector_text
            elif name == BROWSE:
                self.browse = text.lower() in ("true", "1")
            elif name == REPLAY_FROM:
                self._replay = self._replay or text
        self._read = False
        self._selector: Selector | None = None
        self._refused = ""

    def selector(self, context: RouterContext) -> Selector | None:
        """Return the selector, None without one. Raises Refused for a bad one."""
        if not self._read and self._selector_text:
            self._read = True
            # Half a microsecond for each character.
            context.work += len(self._selector_text) >> 1
            try:
                self._selector = parse_selector(self._selector_text)
            except SelectorError as error:
                self._refused = f"{BAD_SELECTOR}: {error}"
        if self._refused:
            raise Refused(self._refused, reason.IMPLEMENTATION_SPECIFIC_ERROR)
        return self._selector

    def replay_from(self) -> tuple[int, int] | None:
        """Return the time and the message id to replay from, None without them. Raises Refused for a bad start."""
        if not self._replay:
            return None
        try:
            return parse_start(self._replay)
        except ValueError as error:
            raise Refused(
                f"{BAD_REPLAY_START}: {error}", reason.IMPLEMENTATION_SPECIFIC_ERROR
            ) from error


LATER_NS: Final = 100_000_000
"""Time after which a client that had no room is looked at again."""

STEPS: Final = 64
"""Topics that are matched before the work of this turn is checked again."""

MESSAGE_WORK: Final = 5
"""What one retained message costs without its bytes, in parts of a turn (RouterContext.work)."""

FRAME_BYTES: Final = 64
"""Bytes of a PUBLISH without topic, payload and properties, at most."""


def send_retained(session: MqttSession, subscriptions: list[Subscription]) -> None:
    """Send `session` the retained messages of its new subscriptions."""
    retained = session.vpn.retained
    if not subscriptions or not len(retained):
        return
    feed = session.feed
    if feed is None:
        feed = RetainedFeed(session)
        session.feed = feed
    for subscription in subscriptions:
        feed.want(subscription)
    if not feed.step():
        session.vpn.context.jobs.add(feed)


@final
class RetainedFeed(Job):
    """The retained messages that one session still has to be sent, filter by filter, each filter once.

    A message published with QoS 1 or 2 goes through the session's endpoint, others are Direct. A client without room
    gets the rest when it has room; one that is away gets the rest of its endpoint's when it is back.
    """

    __slots__ = ("_found", "_session", "_since", "_subscription", "_waits", "_walk", "_wanted")

    def __init__(self, session: MqttSession) -> None:
        super().__init__()
        self._session = session
        # Filter as written → subscription, and `Retained.last` when it was made.
        self._wanted: dict[str, tuple[Subscription, int]] = {}
        self._subscription: Subscription | None = None
        self._since = 0
        self._walk: IndexWalk | None = None
        self._found: list[bytes] = []
        self._waits = False
        session.vpn.retained.watch()

    def want(self, subscription: Subscription) -> None:
        """Add one more subscription."""
        key = subscription.key
        current = self._subscription
        if current is not None and current.key == key:
            self._next()
        self._wanted.pop(key, None)
        self._wanted[key] = (subscription, self._session.vpn.retained.last)

    def step(self) -> bool:
        """Send retained messages until this turn has done enough, or the client has no room."""
        session = self._session
        context = session.vpn.context
        while not context.turn_spent:
            if session.gone:
                self._end()
                return True
            if self._waits or not session.connected:
                # The timer, or the client when it is back, adds the job again.
                return True
            subscription = self._subscription
            if (
                subscription is not None
                and session.subscriptions.get(subscription.key) is not subscription
            ):
                self._next()
            if self._found:
                if self._send(self._found[-1]):
                    self._found.pop()
                else:
                    self._wait()
                continue
            walk = self._walk
            if walk is not None and not walk.done:
                steps = walk.steps
                self._found = walk.go_on(STEPS)
                context.work += (walk.steps - steps) >> 2
                continue
            if not self._begin():
                self._end()
                return True
            if session.vpn.retained.expired:
                forget_expired(session.vpn)
        return False

    def go_on(self) -> None:
        """Continue: the client is back, has ended, or may have room."""
        self._waits = False
        self._session.vpn.context.jobs.add(self)

    def on_timer(self, kind: int, now_ns: int) -> None:
        """Look again whether the client has room."""
        self.go_on()

    def owning_connection(self) -> Connection | None:
        """The client's connection, None while it is away."""
        return self._session.connection

    def _begin(self) -> bool:
        """Go on with the next subscription that still exists; False when there is none."""
        self._next()
        session = self._session
        while self._wanted:
            key = next(iter(self._wanted))
            subscription, since = self._wanted.pop(key)
            if session.subscriptions.get(key) is not subscription:
                continue
            self._subscription = subscription
            self._since = since
            filter_ = subscription.filter
            if filter_.literal:
                self._found = [filter_.text.encode()]
            else:
                self._walk = session.vpn.retained.walk(filter_)
            return True
        return False

    def _next(self) -> None:
        self._subscription = None
        self._walk = None
        self._found = []

    def _end(self) -> None:
        if self._session.vpn.retained.expired:
            forget_expired(self._session.vpn)
        if self._session.feed is self:
            self._session.feed = None
            self._session.vpn.retained.unwatch()

    def _wait(self) -> None:
        self._waits = True
        context = self._session.vpn.context
        context.timers.arm(context.now_ns + LATER_NS, self, 0)

    def _send(self, topic: bytes) -> bool:
        """Send the retained message of one topic, if any; False where the client has no room yet."""
        session = self._session
        subscription = self._subscription
        vpn = session.vpn
        context = vpn.context
        message = vpn.retained.message(topic, self._since, context.now_ns)
        if message is None or subscription is None:
            context.work += 1
            return True
        if subscription.no_local and vpn.local_name(message.source_name) == session.local_name:
            return True
        if session.rule is not None and not session.rule.allows_topic(topic.decode()):
            context.work += 1
            return True
        spool = spool_of(context)
        endpoint = endpoint_of(session)
        context.work += MESSAGE_WORK + len(message.payload) // 1024
        if message.qos and subscription.qos and spool is not None and endpoint is not None:
            if not self._may_place(endpoint, message):
                return False
            copy = message.copy()
            copy.retain = True
            copy.snapshot = True
            spool.place(endpoint, copy)
            return True
        outbox = session.outbox
        size = len(message.payload) + len(topic) + len(message.block) + FRAME_BYTES
        if outbox.size and outbox.size + size > outbox.limit // 2:
            return False
        identifiers = [subscription.identifier] if subscription.identifier else []
        session.send(message, True, identifiers)
        return True

    def _may_place(self, endpoint: Endpoint, message: Message) -> bool:
        """True when one more message has room, and little waits for the client to take it."""
        spool = endpoint.spool
        size = message.size
        if endpoint.spooled_count == 0:
            # A message without room in an empty endpoint will never have any: it is discarded, and counted.
            return True
        return (
            endpoint.spooled_count < limits.RETAINED_AHEAD
            and endpoint.spooled_bytes + size <= self._session.outbox.limit
            and spool.ledger.pending_bytes <= limits.PROMOTION_BYTES
            and not spool.down
            and not spool.obstacle(endpoint.vpn, size)
            and not endpoint.obstacle(message, size)
        )


FILTER_WORK: Final = 5
"""What it costs to parse and check a filter, in parts of a turn (RouterContext.work)."""

V3_FAILURE: Final = 0x80
"""The one failure code of a 3.1.1 SUBACK (3.1.1, 3.9.3)."""


class _FilterJob(Job):
    """One SUBSCRIBE or UNSUBSCRIBE, filter by filter. All of them are answered together."""

    __slots__ = ("_codes", "_connection", "_count", "_session")

    def __init__(self, connection: MqttConnection, session: MqttSession, count: int) -> None:
        super().__init__()
        self._connection = connection
        self._session = session
        self._count = count
        self._codes: list[int] = []

    def step(self) -> bool:
        """Handle filters until this turn has done enough; after the last one, answer and read the client again."""
        connection = self._connection
        session = self._session
        if connection.session is not session:
            return True
        context = connection.context
        while len(self._codes) < self._count:
            if context.turn_spent:
                return False
            context.work += FILTER_WORK
            self._codes.append(self._one(connection, session, len(self._codes)))
        self._answer(connection, session)
        connection.keep_packet(0)
        if connection.held:
            connection.release()
        return True

    def owning_connection(self) -> Connection | None:
        """The connection that sent the packet."""
        return self._connection

    def _one(self, connection: MqttConnection, session: MqttSession, at: int) -> int:
        """Handle the filter at this position in the packet; its reason code."""
        raise AssertionError(self)

    def _answer(self, connection: MqttConnection, session: MqttSession) -> None:
        """Send SUBACK or UNSUBACK."""
        raise AssertionError(self)


@final
class SubscribeJob(_FilterJob):
    """One SUBSCRIBE. Retained messages come after the answer."""

    __slots__ = ("_identifier", "_packet", "_promised", "_texts", "_wanted", "_wishes")

    def __init__(self, connection: MqttConnection, session: MqttSession, packet: Subscribe) -> None:
        super().__init__(connection, session, len(packet.requests))
        self._packet = packet
        identifiers = packet.properties.subscription_identifiers
        self._identifier = identifiers[0] if identifiers else 0
        # Each reason stands here once: those of thousands of filters would not fit into a string.
        self._texts: dict[str, None] = {}
        self._wanted: list[Subscription] = []
        self._promised = False
        self._wishes = SubscribeProperties(packet.properties)

    def _one(self, connection: MqttConnection, session: MqttSession, at: int) -> int:
        """Subscribe to one filter."""
        request = self._packet.requests[at]
        try:
            if binds(request.filter):
                return self._bind(request.filter, request.qos)
            subscription = self._subscription(request)
            is_new = session.vpn.subscribe(subscription)
        except Refused as refusal:
            self._texts[refusal.reason] = None
            publisher = connection.publisher
            if (
                refusal.reason == PERMISSION_DENIED
                and binds(request.filter)
                and publisher is not None
                and not publisher.told & BIND_FAILED
            ):
                text = f"{refusal.why}: {request.filter}"
                publisher.report_once(BIND_FAILED, text)
            if connection.level == 3:
                # MQTT 3.1 has no failure code: as with other brokers, the filter seems granted, and nothing is sent.
                return request.qos
            return refusal.reason_code if connection.level == 5 else V3_FAILURE
        if session.outbound is not None:
            session.outbound.deliveries.clear()
        if session.durable:
            session.keep_subscription(subscription)
            if subscription.qos:
                self._promised = True
        handling = request.retain_handling
        if not subscription.filter.share and (handling == 0 or (handling == 1 and is_new)):
            self._wanted.append(subscription)
        return subscription.qos

    def _answer(self, connection: MqttConnection, session: MqttSession) -> None:
        """Send SUBACK, for a durable promise when it is synced, and then retained messages."""
        answer = Suback(self._packet.packet_id, self._codes)
        if self._texts and connection.level == 5 and connection.wants_problem_information:
            answer.properties.reason_string = "; ".join(self._texts)
        frame = encode(answer, connection.level)
        if session.max_packet and len(frame) > session.max_packet:
            answer.properties.reason_string = None
            frame = encode(answer, connection.level)
        spool = spool_of(session.vpn.context)
        if self._promised and spool is not None:
            # A subscription that outlives the router is granted when it is in the spool.
            spool.when_synced(FrameWhenSynced(connection, frame), 0)
        else:
            connection.outbox.control(frame)
        send_retained(session, self._wanted)

    def _bind(self, text: str, qos: int) -> int:
        """Bind a consumer as the filter `text` says; the QoS granted. Raises Refused with the field's reason."""
        connection = self._connection
        session = self._session
        vpn = session.vpn
        admission = connection.admission
        spool = spool_of(vpn.context)
        if spool is None or admission is None:
            raise Refused(refusals.SERVICE_UNAVAILABLE, reason.IMPLEMENTATION_SPECIFIC_ERROR)
        if not admission.profile.allow_guaranteed_msg_receive_enabled:
            raise Refused(refusals.PERMISSION_DENIED, reason.NOT_AUTHORIZED)
        browsing = self._wishes.browse
        topics = ""
        if text.startswith(TOPIC_ENDPOINT_PREFIX):
            name, _, topics = text[len(TOPIC_ENDPOINT_PREFIX) :].partition("/")
            endpoint = endpoint_named(vpn, TOPIC_ENDPOINT, name)
            if endpoint is None:
                raise not_there(TOPIC_ENDPOINT, admission.username)
        else:
            if text.startswith(BROWSE_PREFIX):
                browsing = True
                name = text[len(BROWSE_PREFIX) :]
            else:
                name = text[len(QUEUE_PREFIX) :]
            endpoint = endpoint_named(vpn, QUEUE, name)
            if endpoint is None:
                raise not_there(QUEUE, admission.username)
        permission = admission.username.permission_on(endpoint.settings)
        # Before anything that differs from what is said of one that is not there, or that may cost time.
        endpoint.permit(permission, READ_ONLY if browsing else CONSUME)
        if not endpoint.durable:
            # A temporary queue is for the connection that made it, which is one of AMQP.
            raise Refused(PERMISSION_DENIED, reason.NOT_AUTHORIZED)
        selector = self._wishes.selector(vpn.context)
        replay_from = self._wishes.replay_from()
        if endpoint.kind == TOPIC_ENDPOINT and permission >= CONSUME:
            self._let_attract(endpoint, topics, permission)
        if session.durable:
            session.number_in(spool)
        if session.outbound is None:
            session.outbound = QosSender(session)
            session.outbound.plug(session.receive_maximum)
        outbound = session.outbound
        granted = max(1, qos)
        # A filter that is there already is replaced, as a subscription is (MQTT-3.8.4-3).
        if not outbound.leave(text):
            self._have_flow()
        flow = MqttFlow(outbound, endpoint, text, granted, selector, browsing)
        flow.identifier = self._identifier
        if browsing:
            if replay_from is not None:
                raise Refused(refusals.REPLAY_BROWSER, reason.NOT_AUTHORIZED)
            if not flow.take_selector():
                raise Refused(refusals.TOO_MANY_FLOWS, reason.QUOTA_EXCEEDED)
            outbound.flows[text] = flow
        else:
            # Before it is bound: whatever raises, it is let go of with the connection.
            outbound.flows[text] = flow
            try:
                endpoint.bind(flow, permission, CONSUME)
                if replay_from is not None:
                    flow.start_replay(replay_from)
            except Refused:
                outbound.flows.pop(text, None)
                raise
            connection.guaranteed = True
        flow.wake()
        return granted

    def _have_flow(self) -> None:
        """Raise Refused when the client has as many flows as its client profile allows.

        The bound of the message VPN is for the flows of queues and topic endpoints (Endpoint.bind).
        """
        admission = self._connection.admission
        outbound = self._session.outbound
        if admission is None or outbound is None:
            return
        most = admission.profile.max_egress_flow_count
        count = len(outbound.flows) + (0 if outbound.own is None else 1)
        if count >= most:
            raise Refused(refusals.TOO_MANY_FLOWS, reason.QUOTA_EXCEEDED)

    def _let_attract(self, endpoint: Endpoint, text: str, permission: int) -> None:
        """Let a topic endpoint have the one subscription that a consumer wants of it."""
        session = self._session
        vpn = session.vpn
        try:
            filter_ = parse_filter(
                text,
                MQTT,
                max_levels=vpn.limits.max_topic_levels,
                max_bytes=vpn.limits.max_topic_bytes,
            )
        except TopicError as error:
            raise Refused("400 Subscription Parse Error", reason.TOPIC_FILTER_INVALID) from error
        if filter_.share or binds(filter_.text):
            raise Refused("400 Subscription Parse Error", reason.TOPIC_FILTER_INVALID)
        self._check_filter(filter_)
        same = filter_.original in endpoint.subscriptions
        if same and endpoint.flows:
            return
        if endpoint.subscriptions and not same:
            if endpoint.flows:
                raise Refused(refusals.SUBSCRIPTION_MISMATCH, reason.NOT_AUTHORIZED)
            if permission < MODIFY_TOPIC:
                raise Refused(refusals.PERMISSION_DENIED, reason.NOT_AUTHORIZED)
            vpn.drop(endpoint)
        if not same:
            vpn.subscribe(Subscription(filter_, endpoint))
        endpoint.attracts_for = (session.owner, session.client_name)
        endpoint.rule = session.rule
        vpn.forget_routes(endpoint)
        endpoint.define(filter_.original)

    def _check_filter(self, filter_: Filter) -> None:
        """Raise Refused when the client's ACL profile does not let it subscribe to `filter_`."""
        session = self._session
        admission = self._connection.admission
        if admission is None:
            return
        rule = session.rule
        if (rule is not None and not rule.allows_filter(filter_)) or (
            filter_.share and not admission.may_share(filter_.share, session.client_name)
        ):
            self._denied(filter_)
            raise Refused("403 Subscription ACL Denied", reason.NOT_AUTHORIZED)

    def _denied(self, filter_: Filter) -> None:
        publisher = self._connection.publisher
        if publisher is not None and not publisher.told & SUBSCRIBE_DENIED:
            text = f"403 Subscription ACL Denied: {filter_.original}"
            publisher.report_once(SUBSCRIBE_DENIED, text)

    def _subscription(self, request: SubscriptionRequest) -> Subscription:
        """The subscription for one request; raises Refused with the field's reason."""
        session = self._session
        vpn = session.vpn
        admission = self._connection.admission
        try:
            filter_ = parse_filter(
                request.filter,
                MQTT,
                max_levels=vpn.limits.max_topic_levels,
                max_bytes=vpn.limits.max_topic_bytes,
            )
        except TopicError as error:
            raise Refused("400 Subscription Parse Error", reason.TOPIC_FILTER_INVALID) from error
        if binds(filter_.text):
            raise Refused("503 Service Unavailable", reason.IMPLEMENTATION_SPECIFIC_ERROR)
        if admission is not None:
            profile = admission.profile
            if filter_.share and not profile.allow_shared_subscriptions_enabled:
                raise Refused("403 Permission Denied", reason.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED)
            bound = profile.max_subscription_count
            if (
                bound
                and len(session.subscriptions) >= bound
                and request.filter not in session.subscriptions
            ):
                raise Refused("400 Max Num Subscriptions Exceeded", reason.QUOTA_EXCEEDED)
            self._check_filter(filter_)
        return Subscription(
            filter_,
            session,
            self._granted(request.qos),
            # What its own broker gets over a connector, the client of that broker must not get too.
            request.no_local or session.is_bridge or session.local_name != session.client_name,
            request.retain_as_published or session.is_bridge,
            self._identifier,
        )

    def _granted(self, asked: int) -> int:
        """The QoS to grant (MQTT-3.8.4-8); from 1 on the session has its endpoint afterwards.

        Raises Refused where there is no room for an endpoint or a flow.
        """
        session = self._session
        spool = spool_of(session.vpn.context)
        admission = self._connection.admission
        if asked == 0 or spool is None or admission is None:
            return 0
        profile = admission.profile
        if not profile.allow_guaranteed_msg_receive_enabled:
            return 0
        if session.endpoint is not None:
            return asked
        if not profile.may_create(session.durable):
            return 0
        most = profile.max_endpoint_count_per_client_username
        session.vpn.check_endpoint_count(session.owner, most)
        self._have_flow()
        session.number_in(spool)
        endpoint = session.make_endpoint(spool)
        if session.durable:
            endpoint.define()
            session.keep()
        if session.outbound is None:
            session.outbound = QosSender(session)
            session.outbound.plug(session.receive_maximum)
        else:
            session.outbound.bind_own(endpoint)
        return asked


@final
class UnsubscribeJob(_FilterJob):
    """One UNSUBSCRIBE."""

    __slots__ = ("_packet",)

    def __init__(
        self, connection: MqttConnection, session: MqttSession, packet: Unsubscribe
    ) -> None:
        super().__init__(connection, session, len(packet.filters))
        self._packet = packet

    def _one(self, connection: MqttConnection, session: MqttSession, at: int) -> int:
        """Remove one subscription, or leave one endpoint."""
        text = self._packet.filters[at]
        outbound = session.outbound
        if binds(text):
            existed = outbound is not None and outbound.leave(text)
        else:
            existed = session.vpn.unsubscribe(session, text)
            if existed and session.durable:
                session.forget_subscription(text)
        if outbound is not None:
            outbound.deliveries.clear()
        return reason.SUCCESS if existed else reason.NO_SUBSCRIPTION_EXISTED

    def _answer(self, connection: MqttConnection, session: MqttSession) -> None:
        """Send UNSUBACK."""
        answer = Unsuback(self._packet.packet_id, self._codes)
        connection.outbox.control(encode(answer, connection.level))
