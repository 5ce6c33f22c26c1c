"""SUBSCRIBE and UNSUBSCRIBE: permission, limits, options, and retained messages for a new filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter.core import client_events
from vpnrouter.core.guaranteed.reasons import PERMISSION_DENIED
from vpnrouter.core.guaranteed.session_endpoints import have_room, make
from vpnrouter.core.jobs import Job
from vpnrouter.core.mqtt.bind import Wishes, allowed_filter, bind, binds, have_flow
from vpnrouter.core.mqtt.ingress import Answer
from vpnrouter.core.mqtt.outbound import Outbound
from vpnrouter.core.mqtt.retained_feed import send_retained
from vpnrouter.core.mqtt.session_store import (
    forget_subscription,
    keep,
    keep_subscription,
    number_of,
)
from vpnrouter.core.subscriber import Subscription
from vpnrouter.errors import Refused, TopicError
from vpnrouter.topics.grammar import MQTT, parse_filter
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
    from vpnrouter.core.mqtt.connection import MqttConnection
    from vpnrouter.core.mqtt.session import MqttSession

FILTER_WORK: Final = 5
"""What it costs to parse and check a filter, in parts of a turn (Plane.work)."""

V3_FAILURE: Final = 0x80
"""The one failure code of a 3.1.1 SUBACK (3.1.1, 3.9.3)."""


def handle_subscribe(connection: MqttConnection, packet: Subscribe) -> None:
    """Answer each filter with its own code; one that is refused hurts none of the others."""
    session = connection.session
    if session is not None:
        _begin(connection, Subscribing(connection, session, packet))


def handle_unsubscribe(connection: MqttConnection, packet: Unsubscribe) -> None:
    """Remove each filter; MQTT 5 says for each whether it existed."""
    session = connection.session
    if session is not None:
        _begin(connection, Unsubscribing(connection, session, packet))


def _begin(connection: MqttConnection, job: Job) -> None:
    """Run the job in this turn if it is short; otherwise the client's next packets wait for it (MQTT-4.6.0-1)."""
    if not job.step():
        connection.hold()
        connection.plane.jobs.add(job)


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
        """Handle filters until the plane is tired; after the last one, answer and read the client again."""
        connection = self._connection
        session = self._session
        if connection.session is not session:
            return True
        plane = connection.plane
        while len(self._codes) < self._count:
            if plane.tired:
                return False
            plane.work += FILTER_WORK
            self._codes.append(self._one(connection, session, len(self._codes)))
        self._answer(connection, session)
        if connection.held:
            connection.release()
        return True

    def party(self) -> Connection | None:
        """The connection that sent the packet."""
        return self._connection

    def _one(self, connection: MqttConnection, session: MqttSession, at: int) -> int:
        """Handle the filter at this position in the packet; its reason code."""
        raise AssertionError(self)

    def _answer(self, connection: MqttConnection, session: MqttSession) -> None:
        """Send SUBACK or UNSUBACK."""
        raise AssertionError(self)


@final
class Subscribing(_FilterJob):
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
        self._wishes = Wishes(packet.properties)

    def _one(self, connection: MqttConnection, session: MqttSession, at: int) -> int:
        """Subscribe to one filter."""
        request = self._packet.requests[at]
        try:
            if binds(request.filter):
                return bind(
                    connection,
                    session,
                    request.filter,
                    request.qos,
                    self._identifier,
                    self._wishes,
                )
            subscription = _subscription(connection, session, request, self._identifier)
            is_new = session.vpn.subscribe(subscription)
        except Refused as refusal:
            self._texts[refusal.reason] = None
            publisher = connection.publisher
            if (
                refusal.reason == PERMISSION_DENIED
                and binds(request.filter)
                and publisher is not None
                and not publisher.told & client_events.BIND_FAILED
            ):
                text = f"{refusal.why}: {request.filter}"
                client_events.once(publisher, client_events.BIND_FAILED, text)
            if connection.level == 3:
                # MQTT 3.1 has no failure code: as with other brokers, the filter seems granted, and nothing is sent.
                return request.qos
            return refusal.reason_code if connection.level == 5 else V3_FAILURE
        if session.outbound is not None:
            session.outbound.deliveries.clear()
        if session.durable:
            keep_subscription(session, subscription)
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
        spool = session.vpn.plane.spool
        if self._promised and spool is not None:
            # A subscription that outlives the router is granted when it is in the spool.
            spool.when_synced(Answer(connection, frame), 0)
        else:
            connection.outbox.control(frame)
        send_retained(session, self._wanted)


def _subscription(
    connection: MqttConnection, session: MqttSession, request: SubscriptionRequest, identifier: int
) -> Subscription:
    """The subscription for one request; raises Refused with the field's reason."""
    vpn = session.vpn
    admission = connection.admission
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
        allowed_filter(connection, session, filter_)
    return Subscription(
        filter_,
        session,
        _granted(connection, session, request.qos),
        request.no_local,
        request.retain_as_published,
        identifier,
    )


def _granted(connection: MqttConnection, session: MqttSession, asked: int) -> int:
    """The QoS to grant (MQTT-3.8.4-8); from 1 on the session has its endpoint afterwards.

    Raises Refused where there is no room for an endpoint or a flow.
    """
    spool = session.vpn.plane.spool
    admission = connection.admission
    if asked == 0 or spool is None or admission is None:
        return 0
    profile = admission.profile
    if not profile.allow_guaranteed_msg_receive_enabled:
        return 0
    if session.endpoint is not None:
        return asked
    if not profile.may_create(session.durable):
        return 0
    have_room(session.vpn, session.owner, profile.max_endpoint_count_per_client_username)
    have_flow(connection, session)
    number = number_of(session, spool)
    session.endpoint = make(
        spool, session.vpn, session.client_name, number, session.durable, session.owner
    )
    if session.durable:
        keep(session)
    if session.outbound is None:
        session.outbound = Outbound(session)
        session.outbound.plug(session.receive_maximum)
    else:
        session.outbound.bind_own(session.endpoint)
    return asked


@final
class Unsubscribing(_FilterJob):
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
                forget_subscription(session, text)
        if outbound is not None:
            outbound.deliveries.clear()
        return reason.SUCCESS if existed else reason.NO_SUBSCRIPTION_EXISTED

    def _answer(self, connection: MqttConnection, session: MqttSession) -> None:
        """Send UNSUBACK."""
        answer = Unsuback(self._packet.packet_id, self._codes)
        connection.outbox.control(encode(answer, connection.level))
