"""The batch path of Direct messages: from a received chunk to outboxes, without an object per message.

A QoS 0 PUBLISH is a topic slice, a look-up in the VPN's route cache, and an append of the frame as it
came to each receiver's outbox. Frames that follow each other with the same topic and size, as a busy
publisher sends them, form a run and cross as one slice. What is rarer (properties, retain, a bad
topic, a sampled message with unusual receivers) is left to the caller, one frame at a time.

The frame form is MQTT's: type byte, variable length, topic length, topic, [property length,] payload.
A link's DIRECT frame has the form of MQTT 5, so that the same code serves bridges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from mypy_extensions import i64

from vpnrouter.core.deliver import NOBODY, OFFERED, deliver_special
from vpnrouter.core.guaranteed.permissions import may_put
from vpnrouter.core.message import Message
from vpnrouter.core.reframe import reframe
from vpnrouter.core.route import Route
from vpnrouter.core.runs import COMPILED, WORD, run_length
from vpnrouter.core.sampled import forward_sampled, trace
from vpnrouter.core.subscriber import FRAME_OWN
from vpnrouter.errors import TopicError
from vpnrouter.limits import TURN_OFFERS

if TYPE_CHECKING:
    from vpnrouter.core.publisher import Publisher

PUBLISH_QOS0: Final = 0x30
"""PUBLISH, QoS 0, neither duplicate nor retained (MQTT 3.1.1, 3.3.1); and the link's DIRECT."""


def scan(publisher: Publisher, buf: bytes, pos: i64, end: i64) -> i64:
    """Forward the plain Direct frames that begin at `pos`; return where the first other byte stands.

    Stops at an incomplete frame, at any other packet, at frames that need the careful path, and when this turn
    has done enough: the caller looks at what stands there. Raises nothing: what is wrong is left standing.
    """
    vpn = publisher.vpn
    routes = vpn.cache.entries
    slots = vpn.slots
    rule = publisher.rule
    plane = vpn.plane
    losses = plane.losses
    emits = plane.emits
    picking = publisher.picking
    sampler = publisher.sampler
    extra: i64 = publisher.extra
    max_frame: i64 = publisher.max_frame
    offers: i64 = 0
    while end - pos > 4:
        if buf[pos] != PUBLISH_QOS0:
            return pos
        length: i64 = buf[pos + 1]
        body: i64 = pos + 2
        if length > 127:
            second: i64 = buf[pos + 2]
            length = (length & 127) | (second & 127) << 7
            body = pos + 3
            if second == 0:
                return pos
            if second > 127:
                third: i64 = buf[pos + 3]
                if third > 127 or third == 0:
                    return pos
                length |= third << 14
                body = pos + 4
        following: i64 = body + length
        size: i64 = following - pos
        if following > end or size > max_frame or length < 2:
            return pos
        high: i64 = buf[body]
        low: i64 = buf[body + 1]
        topic_end: i64 = body + 2 + (high << 8 | low)
        start: i64 = topic_end + extra
        if start > following or (extra == 1 and buf[topic_end] != 0):
            return pos
        topic_size: i64 = topic_end - body - 2
        near = slots.find(buf, body + 2, topic_size) if COMPILED and topic_size >= WORD else None
        if near is not None:
            route = near
        else:
            topic = buf[body + 2 : topic_end]
            found = routes.get(topic)
            if found is not None:
                route = cast(Route, found)
                if COMPILED and topic_size >= WORD:
                    slots.put(route)
            else:
                if plane.work > plane.allowance:
                    return pos
                try:
                    route = vpn.resolve(topic)
                except TopicError:
                    return pos
        if rule is not None and route.allowed_by is not rule and not publisher.allowed(route):
            return pos
        plain = route.plain
        if not plain and route.guard is not None and not may_put(route, publisher.username, rule):
            return pos
        if picking is not None:
            sampler = publisher.sampler_for(route)
        left: i64 = sampler.left
        count: i64 = 1
        if end - following >= size:
            most: i64 = (end - pos) // size
            if (emits or not plain) and most >= left:
                # On an unusual route a sampled message stands alone: a run ends before it. So it does where
                # it leaves with a property that the others have not.
                most = left - 1
            if most > 1:
                count = run_length(buf, pos, start - pos, size, most)
                following = pos + count * size
        run = buf[pos:following]
        publisher.messages += count
        publisher.bytes_ += following - pos
        if left <= count:
            if plain and not emits:
                forward_sampled(publisher, sampler, route, run, count, size, start - pos)
            else:
                sampler.next()
                _traced(publisher, route, run, start - pos)
        else:
            sampler.left = left - count
            if not plain:
                _everyone(publisher, route, run, count, size, start - pos)
            elif extra:
                for outbox in route.plain5:
                    outbox.offer(run, count)
                if route.plain4:
                    other = reframe(run, count, size, start - pos, route.raw, 4)
                    for outbox in route.plain4:
                        outbox.offer(other, count)
                    publisher.delivered += count
                elif route.plain5:
                    publisher.delivered += count
                else:
                    publisher.unmatched += count
                    if losses is not None:
                        losses.unmatched(publisher, route, count)
            else:
                for outbox in route.plain4:
                    outbox.offer(run, count)
                if route.plain5:
                    other = reframe(run, count, size, start - pos, route.raw, 5)
                    for outbox in route.plain5:
                        outbox.offer(other, count)
                    publisher.delivered += count
                elif route.plain4:
                    publisher.delivered += count
                else:
                    publisher.unmatched += count
                    if losses is not None:
                        losses.unmatched(publisher, route, count)
        pos = following
        offers += len(route.plain4) + len(route.plain5)
        if offers > TURN_OFFERS:
            plane.work += plane.allowance + 1
            return pos
    return pos


def _traced(publisher: Publisher, route: Route, frame: bytes, start: i64) -> None:
    """Forward one frame, picked for tracing, along a route that has more than plain receivers."""
    message = Message(route.raw, frame[start:], b"", False, publisher.subscriber)
    trace(publisher, message)
    publisher.arrived(message)
    publisher.publish(message)


def _everyone(
    publisher: Publisher, route: Route, run: bytes, count: i64, size: i64, start: i64
) -> None:
    """Forward a run to a route that has links, groups or special receivers besides the plain ones."""
    form5 = run if publisher.extra else b""
    form4 = b"" if publisher.extra else run
    offered = False
    if route.plain4:
        if not form4:
            form4 = reframe(run, count, size, start, route.raw, 4)
        for outbox in route.plain4:
            outbox.offer(form4, count)
        offered = True
    link = None if publisher.subscriber.is_link else route.one_link
    if link is not None and link.frame == FRAME_OWN:
        link = None
    if route.plain5 or link is not None:
        if not form5:
            form5 = reframe(run, count, size, start, route.raw, 5)
        for outbox in route.plain5:
            outbox.offer(form5, count)
        if link is not None:
            link.outbox.offer(form5, count)
            link.offered += count
        offered = True
    if offered:
        publisher.delivered += count
    if not (route.special or route.groups or route.endpoints or (link is None and route.links)):
        return
    vpn = publisher.vpn
    at = 0
    for _ in range(count):
        message = Message(route.raw, run[at + start : at + size], b"", False, publisher.subscriber)
        publisher.arrived(message)
        outcome = deliver_special(vpn, route, message, link is not None)
        if not offered:
            if outcome == OFFERED:
                publisher.delivered += 1
            elif outcome == NOBODY:
                publisher.unmatched += 1
                losses = vpn.plane.losses
                if losses is not None:
                    losses.unmatched(publisher, route, 1)
            else:
                publisher.refused += 1
        at += size
