"""SUBSCRIBE and UNSUBSCRIBE: permission, limits, options, and retained messages for a new filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.core.guaranteed.session_endpoints import have_room, make
from vpnrouter.core.mqtt.bind import Wishes, allowed_filter, bind, binds, have_flow
from vpnrouter.core.mqtt.ingress import Answer
from vpnrouter.core.mqtt.outbound import Outbound
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
from vpnrouter.wire.mqtt.subscription_packets import (
    Suback,
    Subscribe,
    SubscriptionRequest,
    Unsuback,
    Unsubscribe,
)

if TYPE_CHECKING:
    from vpnrouter.core.mqtt.connection import MqttConnection
    from vpnrouter.core.mqtt.session import MqttSession

V3_FAILURE: Final = 0x80
"""The one failure code of a 3.1.1 SUBACK (3.1.1, 3.9.3)."""


def handle_subscribe(connection: MqttConnection, packet: Subscribe) -> None:
    """Answer each filter with its own code; one that is refused hurts none of the others."""
    session = connection.session
    if session is None:
        return
    identifiers = packet.properties.subscription_identifiers
    identifier = identifiers[0] if identifiers else 0
    codes: list[int] = []
    texts: list[str] = []
    wanted: list[Subscription] = []
    promised = False
    wishes = Wishes(packet.properties)
    for request in packet.requests:
        try:
            if binds(request.filter):
                codes.append(
                    bind(
                        connection,
                        session,
                        request.filter,
                        request.qos,
                        identifier,
                        wishes,
                    )
                )
                continue
            subscription = _subscription(connection, session, request, identifier)
            is_new = session.vpn.subscribe(subscription)
        except Refused as refusal:
            codes.append(refusal.reason_code if connection.level == 5 else V3_FAILURE)
            texts.append(refusal.reason)
            continue
        codes.append(subscription.qos)
        if session.durable:
            keep_subscription(session, subscription)
            if subscription.qos:
                promised = True
        handling = request.retain_handling
        if not subscription.filter.share and (handling == 0 or (handling == 1 and is_new)):
            wanted.append(subscription)
    if session.outbound is not None:
        session.outbound.deliveries.clear()
    answer = Suback(packet.packet_id, codes)
    if texts and connection.level == 5 and connection.wants_problem_information:
        # Each reason once: thousands of refused filters would not fit a string.
        answer.properties.reason_string = "; ".join(dict.fromkeys(texts))
    frame = encode(answer, connection.level)
    if session.max_packet and len(frame) > session.max_packet:
        answer.properties.reason_string = None
        frame = encode(answer, connection.level)
    spool = session.vpn.plane.spool
    if promised and spool is not None:
        # A subscription that is to outlive the router is granted when it is in the spool.
        spool.when_synced(Answer(connection, frame), 0)
    else:
        connection.outbox.control(frame)
    for subscription in wanted:
        _send_retained(session, subscription)


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


def _send_retained(session: MqttSession, subscription: Subscription) -> None:
    """Send what is retained: what was published with QoS 1 or 2 through the endpoint, all else as Direct."""
    identifiers = [subscription.identifier] if subscription.identifier else []
    spool = session.vpn.plane.spool
    endpoint = session.endpoint
    for message in session.vpn.retained.matching(subscription.filter, session.vpn.plane.now_ns):
        if subscription.no_local and message.source_name == session.client_name:
            continue
        if message.qos and subscription.qos and spool is not None and endpoint is not None:
            copy = message.copy()
            copy.retain = True
            copy.snapshot = True
            spool.place(endpoint, copy)
        else:
            session.send(message, True, identifiers)


def handle_unsubscribe(connection: MqttConnection, packet: Unsubscribe) -> None:
    """Remove each filter; MQTT 5 says for each whether it existed."""
    session = connection.session
    if session is None:
        return
    codes: list[int] = []
    for text in packet.filters:
        if binds(text):
            existed = session.outbound is not None and session.outbound.leave(text)
        else:
            existed = session.vpn.unsubscribe(session, text)
            if existed and session.durable:
                forget_subscription(session, text)
        codes.append(reason.SUCCESS if existed else reason.NO_SUBSCRIPTION_EXISTED)
    if session.outbound is not None:
        session.outbound.deliveries.clear()
    connection.outbox.control(encode(Unsuback(packet.packet_id, codes), connection.level))
