"""SUBSCRIBE and UNSUBSCRIBE: permission, limits, options, and retained messages for a new filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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

QUEUE_PREFIX: Final = "$queue/"
"""Filters that bind a consumer flow to a queue."""


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
    for request in packet.requests:
        try:
            subscription = _subscription(connection, session, request, identifier)
            is_new = session.vpn.subscribe(subscription)
        except Refused as refusal:
            codes.append(refusal.reason_code if connection.level == 5 else V3_FAILURE)
            texts.append(refusal.reason)
            continue
        codes.append(reason.SUCCESS)
        handling = request.retain_handling
        if not subscription.filter.share and (handling == 0 or (handling == 1 and is_new)):
            wanted.append(subscription)
    answer = Suback(packet.packet_id, codes)
    if texts and connection.level == 5 and connection.wants_problem_information:
        # Each reason once: thousands of refused filters would not fit a string.
        answer.properties.reason_string = "; ".join(dict.fromkeys(texts))
    frame = encode(answer, connection.level)
    if session.max_packet and len(frame) > session.max_packet:
        answer.properties.reason_string = None
        frame = encode(answer, connection.level)
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
    if filter_.text.startswith(QUEUE_PREFIX):
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
        acl = admission.acl
        if not acl.subscribe.unrestricted:
            rule = acl.subscribe.bind(admission.username.name, session.client_name)
            if not rule.allows_filter(filter_):
                raise Refused("403 Subscription ACL Denied", reason.NOT_AUTHORIZED)
        if filter_.share and not acl.share_name.unrestricted:
            rule = acl.share_name.bind(admission.username.name, session.client_name)
            if not rule.allows_topic(filter_.share):
                raise Refused("403 Subscription ACL Denied", reason.NOT_AUTHORIZED)
    # Every QoS is granted as 0 while the router offers Direct delivery only (MQTT-3.8.4-8).
    return Subscription(
        filter_,
        session,
        0,
        request.no_local,
        request.retain_as_published,
        identifier,
    )


def _send_retained(session: MqttSession, subscription: Subscription) -> None:
    identifiers = [subscription.identifier] if subscription.identifier else []
    for message in session.vpn.retained.matching(subscription.filter, session.vpn.plane.now_ns):
        if subscription.no_local and message.source_name == session.client_name:
            continue
        session.send(message, True, identifiers)


def handle_unsubscribe(connection: MqttConnection, packet: Unsubscribe) -> None:
    """Remove each filter; MQTT 5 says for each whether it existed."""
    session = connection.session
    if session is None:
        return
    codes: list[int] = []
    for text in packet.filters:
        existed = session.vpn.unsubscribe(session, text)
        codes.append(reason.SUCCESS if existed else reason.NO_SUBSCRIPTION_EXISTED)
    connection.outbox.control(encode(Unsuback(packet.packet_id, codes), connection.level))
