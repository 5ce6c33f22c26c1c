"""Trace rows of one message VPN: deliveries, discards, subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.discards import TRANSMIT_CONGESTION
from vpnrouter.core.traceparent import leaving
from vpnrouter.topics.grammar import MQTT
from vpnrouter.trace.events import DELIVER, DIRECT, DISCARD, EVENT_NAMES, NON_PERSISTENT, PERSISTENT
from vpnrouter.trace.recorder import Context
from vpnrouter.wire.mqtt.encode import encode_publish

if TYPE_CHECKING:
    from vpnrouter.core.message import Message
    from vpnrouter.core.subscriber import Subscriber, Subscription
    from vpnrouter.core.vpn import MessageVpn


def record(vpn: MessageVpn, context: Context, message: Message) -> None:
    """Record what `context` says of the traced `message`."""
    plane = vpn.plane
    plane.recorder.record(
        context,
        plane.wall_ns,
        message.topic,
        message.trace_high,
        message.trace_low,
        message.message_id,
        len(message.payload),
        plane.steady_ns - message.ingress_ns,
        message.origin_ts_ns,
    )


def kept_mode(message: Message) -> int:
    """The delivery mode of a message that an endpoint keeps, or has kept."""
    return PERSISTENT if message.persistent else NON_PERSISTENT


def outcome(vpn: MessageVpn, subscriber: Subscriber, message: Message, taken: int) -> None:
    """Record that the traced `message` was queued for `subscriber` (`taken` 1) or had no room (0)."""
    if not taken:
        refused = subscriber.outbox.losses
        if refused is not None:
            refused.told(1)
        lost(vpn, DISCARD, message, DIRECT, "", TRANSMIT_CONGESTION, subscriber)
        return
    context = subscriber.delivered
    if context is None or not message.came_as(context):
        context = Context(
            DELIVER,
            vpn.name,
            DIRECT,
            client=subscriber.client_name,
            hops=message.hops,
            path=">".join(message.path),
            origin_router=message.origin_router,
            origin_vpn=message.origin_vpn,
        )
        subscriber.delivered = context
    record(vpn, context, message)


def frame5(vpn: MessageVpn, subscriber: Subscriber, message: Message) -> bytes:
    """The MQTT 5 PUBLISH, QoS 0, for `subscriber`: that of a traced message may name the span of its delivery."""
    if message.traced:
        block = leaving(
            vpn.plane,
            message,
            message.block,
            vpn.name,
            EVENT_NAMES[DELIVER],
            subscriber.client_name,
            "",
        )
        if block is not message.block:
            return encode_publish(message.topic, message.payload, 5, block)
    return message.frame5()


def lost(
    vpn: MessageVpn,
    event: int,
    message: Message,
    mode: int,
    endpoint: str,
    reason: str,
    receiver: Subscriber | None = None,
    client: str = "",
    partition: int = -1,
) -> None:
    """Record that `message` was discarded or rejected; one that is not traced is added up (losses.py).

    `receiver` did not get it; `client` is whom it concerns. Without either it is who published it. Where
    one of them is a link's client, the row names the bridge.
    """
    plane = vpn.plane
    losses = plane.losses
    traced = message.traced
    if not traced and losses is None:
        return
    who = receiver or message.source
    if not client:
        client = message.source_name if who is None else who.client_name
    bridge = ""
    peer = ""
    if who is not None and who.is_link:
        bridge = who.bridge_of(receiver is None)
        peer = who.vpn_id
    path = ">".join(message.path) if message.path else ""
    if traced:
        peer_router, _, peer_vpn = peer.partition("/")
        context = Context(
            event,
            vpn.name,
            mode,
            client=client,
            endpoint=endpoint,
            bridge=bridge,
            peer_router=peer_router,
            peer_vpn=peer_vpn,
            hops=message.hops,
            path=path,
            reason=reason,
            origin_router=message.origin_router,
            origin_vpn=message.origin_vpn,
            partition=partition,
        )
        record(vpn, context, message)
    elif losses is not None:
        losses.add(
            (
                event,
                vpn.name,
                mode,
                client,
                endpoint,
                reason,
                bridge,
                peer,
                message.hops,
                path,
                message.topic,
            ),
            1,
        )


def subscribed(vpn: MessageVpn, event: int, subscription: Subscription) -> None:
    """Record that a subscription came or went."""
    plane = vpn.plane
    if not plane.tracing:
        return
    filter_ = subscription.filter
    context = Context(
        event,
        vpn.name,
        DIRECT,
        client=subscription.subscriber.client_name,
        topic_syntax="mqtt" if filter_.dialect == MQTT else "smf",
    )
    plane.recorder.record(context, plane.wall_ns, filter_.original.encode(), 0, 0, 0, 0, 0, 0)
