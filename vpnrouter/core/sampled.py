"""The batch path for runs that hold messages picked for tracing.

The frames cross as ever; what is added is one ingress event for each message picked, and one event for
each receiver that says whether the message was taken for it or discarded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mypy_extensions import i64

from vpnrouter.core.discards import NO_SUBSCRIPTION_MATCH, TRANSMIT_CONGESTION
from vpnrouter.core.reframe import reframe
from vpnrouter.core.traces import record
from vpnrouter.trace.events import DELIVER, DIRECT, DISCARD, INGRESS, PERSISTENT
from vpnrouter.trace.recorder import Context

if TYPE_CHECKING:
    from vpnrouter.core.message import Message
    from vpnrouter.core.publisher import Publisher
    from vpnrouter.core.route import Route
    from vpnrouter.core.subscriber import Subscriber
    from vpnrouter.core.traceparent import TraceParent
    from vpnrouter.trace.sampler import Sampler


def trace(publisher: Publisher, message: Message, parent: TraceParent | None = None) -> None:
    """Make `message` a traced one and record its ingress: in a trace of its own, or in that of `parent`."""
    plane = publisher.vpn.plane
    number = plane.ids.next()
    message.trace_high = plane.ids.high
    message.trace_low = number
    message.message_id = plane.ids.message_id(number)
    message.ingress_ns = plane.steady_ns
    message.origin_ts_ns = plane.wall_ns
    context = publisher.context
    if message.qos or parent is not None:
        span = ""
        if parent is not None:
            message.trace_high = parent.high
            message.trace_low = parent.low
            span = f"{parent.span:016x}"
        context = Context(
            INGRESS,
            publisher.vpn.name,
            PERSISTENT if message.qos else DIRECT,
            client=context.client,
            parent_span_id=span,
        )
    record(publisher.vpn, context, message)


def forward_sampled(
    publisher: Publisher,
    sampler: Sampler,
    route: Route,
    run: bytes,
    count: i64,
    size: i64,
    start: i64,
) -> None:
    """Forward a run of `count` frames of `size` bytes along a plain route, and trace those picked.

    `start` is where the payload begins in each frame. Takes from `sampler`.
    """
    ids = publisher.vpn.plane.ids
    payload: i64 = size - start
    picked: list[tuple[int, int]] = []
    at: i64 = sampler.left - 1
    while at < count:
        number = ids.next()
        picked.append((at, number))
        _record(publisher, publisher.context, route.raw, number, payload)
        sampler.next()
        at += sampler.left
    sampler.left = at + 1 - count
    if route.empty:
        publisher.unmatched += count
        context = Context(
            DISCARD,
            publisher.vpn.name,
            DIRECT,
            client=publisher.subscriber.client_name,
            reason=NO_SUBSCRIPTION_MATCH,
        )
        for _, number in picked:
            _record(publisher, context, route.raw, number, payload)
        losses = publisher.vpn.plane.losses
        if losses is not None and len(picked) < count:
            losses.unmatched(publisher, route, count - len(picked))
        return
    publisher.delivered += count
    form4 = form5 = run
    if publisher.extra:
        if route.plain4:
            form4 = reframe(run, count, size, start, route.raw, 4)
    elif route.plain5:
        form5 = reframe(run, count, size, start, route.raw, 5)
    for subscriber in route.receivers4:
        _tell(
            publisher, subscriber, subscriber.outbox.offer(form4, count), picked, route.raw, payload
        )
    for subscriber in route.receivers5:
        _tell(
            publisher, subscriber, subscriber.outbox.offer(form5, count), picked, route.raw, payload
        )


def _tell(
    publisher: Publisher,
    subscriber: Subscriber,
    taken: int,
    picked: list[tuple[int, int]],
    topic: bytes,
    payload: i64,
) -> None:
    """Record for each picked message whether `subscriber`, who took the first `taken`, gets it."""
    name = publisher.vpn.name
    for at, number in picked:
        if at < taken:
            context = subscriber.delivered
            if context is None or context.hops:
                # The one that is remembered may be of messages that came over a bridge.
                context = Context(DELIVER, name, DIRECT, client=subscriber.client_name)
                subscriber.delivered = context
        else:
            context = Context(
                DISCARD, name, DIRECT, client=subscriber.client_name, reason=TRANSMIT_CONGESTION
            )
            refused = subscriber.outbox.losses
            if refused is not None:
                refused.told(1)
        _record(publisher, context, topic, number, payload)


def _record(
    publisher: Publisher, context: Context, topic: bytes, number: int, payload: int
) -> None:
    plane = publisher.vpn.plane
    now_ns = plane.wall_ns
    plane.recorder.record(
        context,
        now_ns,
        topic,
        plane.ids.high,
        number,
        plane.ids.message_id(number),
        payload,
        0,
        now_ns,
    )
