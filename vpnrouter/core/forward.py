"""Forwards Direct messages in batches: from a received chunk to outboxes, without an object for each message.

A QoS 0 PUBLISH is a topic slice, a look-up in the message VPN's route cache, and an append of the received frame to
each receiver's outbox. Consecutive frames that go to the same receivers, whatever their topics and sizes, cross as one
slice. Rarer ones (properties, retain, a bad topic, a sampled message with unusual receivers) are left to the caller,
frame by frame. For messages of a run that are picked for tracing, one ingress event is added each, and one event for
each receiver.

The frame form is MQTT's: type byte, variable length, topic length, topic, [property length,] payload.
A link's DIRECT frame has the form of MQTT 5, so that the same code serves bridges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast, final

from librt.strings import BytesWriter, read_i64_le
from mypy_extensions import i64

from vpnrouter.core.conversion import MEASURE
from vpnrouter.core.deliver import NOBODY, OFFERED, deliver_special
from vpnrouter.core.discard_reasons import NO_SUBSCRIPTION_MATCH, TRANSMIT_CONGESTION
from vpnrouter.core.message import Message
from vpnrouter.core.route import Route
from vpnrouter.core.subscriber import FRAME_OWN
from vpnrouter.core.tracing import record
from vpnrouter.errors import TopicError
from vpnrouter.limits import TURN_OFFERS
from vpnrouter.trace.events import DELIVER, DIRECT, DISCARD, INGRESS, PERSISTENT
from vpnrouter.trace.recorder import Context
from vpnrouter.wire.copying import COMPILED, WORD, copy_bytes
from vpnrouter.wire.mqtt.encode import publish_prefix
from vpnrouter.wire.varint import frame_end

if TYPE_CHECKING:
    from vpnrouter.core.outbox import Outbox
    from vpnrouter.core.publisher import Publisher
    from vpnrouter.core.subscriber import Subscriber
    from vpnrouter.core.tracing import TraceParent
    from vpnrouter.trace.sampler import Sampler


PUBLISH_QOS0: Final = 0x30
"""PUBLISH, QoS 0, neither duplicate nor retained (MQTT 3.1.1, 3.3.1); and the link's DIRECT."""


def run_length(buf: bytes, pos: i64, head: i64, size: i64, most: i64) -> i64:
    """Count the frames of `size` bytes from `pos` on whose first `head` bytes equal the first one's, 1..`most`.

    The caller has checked that `most` whole frames of that size are in `buf`.
    """
    count: i64 = 1
    at: i64 = pos + size
    if not COMPILED or head < WORD:
        prefix = buf[pos : pos + head]
        while count < most and buf.startswith(prefix, at):
            at += size
            count += 1
        return count
    last: i64 = head - WORD
    while count < most:
        offset: i64 = 0
        while offset < last:
            if read_i64_le(buf, at + offset) != read_i64_le(buf, pos + offset):
                return count
            offset += WORD
        # The last word overlaps the one before where the head is no multiple of eight.
        if read_i64_le(buf, at + last) != read_i64_le(buf, pos + last):
            return count
        at += size
        count += 1
    return count


FEWEST: Final = 256
"""Places in a new table: many message VPNs see few topics."""

MOST: Final = 65_536
"""Places in the largest table, as many as the route cache has entries."""

_MIX: Final = 0x1E3779B97F4A7C15


@final
class RouteTable:
    """A hash table of cached routes, found without cutting out a topic or hashing bytes.

    A topic's slot comes from three of its eight-byte words; the route there is taken when its topic equals the bytes in
    the chunk. A route is trusted only while its `stamp` is current: it goes up when the route cache drops anything.
    Interpreted, a dictionary is cheaper, and the table is not used.
    """

    __slots__ = ("_filled", "_mask", "_places", "stamp")

    def __init__(self) -> None:
        self._places: list[Route | None] = [None] * FEWEST
        self._mask: i64 = FEWEST - 1
        self._filled: i64 = 0
        self.stamp: i64 = 1

    def find(self, buf: bytes, pos: i64, size: i64) -> Route | None:
        """The route of the topic in `buf[pos:pos + size]` (at least 8 bytes), or None if not here."""
        place = self._place(buf, pos, size)
        route = self._places[place]
        if route is None:
            return None
        if route.stamp == self.stamp and _same(route.raw, buf, pos, size):
            return route
        route = self._places[place ^ 1]
        if route is not None and route.stamp == self.stamp and _same(route.raw, buf, pos, size):
            return route
        return None

    def put(self, route: Route) -> None:
        """Remember a route that was found in the cache just now."""
        size: i64 = len(route.raw)
        if self._filled > self._mask and self._mask + 1 < MOST:
            # More routes were put than there are places: they push each other out.
            self._mask = self._mask * 4 + 3
            self._places = [None] * (self._mask + 1)
            self._filled = 0
        route.stamp = self.stamp
        place = self._place(route.raw, 0, size)
        there = self._places[place]
        if there is not None and there.stamp == self.stamp:
            # Two topics may share a place: the older one moves to its neighbour.
            self._places[place ^ 1] = there
        self._places[place] = route
        self._filled += 1

    def drop(self) -> None:
        """The cache dropped something: trust no route until it is found there again."""
        self.stamp += 1
        self._filled = 0

    def _place(self, buf: bytes, pos: i64, size: i64) -> i64:
        first: i64 = read_i64_le(buf, pos)
        middle: i64 = read_i64_le(buf, pos + ((size - WORD) >> 1))
        last: i64 = read_i64_le(buf, pos + size - WORD)
        # Digits that count topics stand in high bytes, and a product only carries upwards: fold down.
        mixed: i64 = first * 3 + middle * 5 + last * _MIX
        mixed ^= mixed >> 32
        mixed *= _MIX
        mixed ^= mixed >> 32
        return mixed & self._mask


def _same(raw: bytes, buf: bytes, pos: i64, size: i64) -> bool:
    """True when `buf[pos:pos + size]` is `raw`."""
    if len(raw) != size:
        return False
    offset: i64 = 0
    last: i64 = size - WORD
    while offset < last:
        if read_i64_le(raw, offset) != read_i64_le(buf, pos + offset):
            return False
        offset += WORD
    return read_i64_le(raw, last) == read_i64_le(buf, pos + last)


def reframe(run: bytes, count: i64, size: i64, start: i64, topic: bytes, level: int) -> bytes:
    """A run of `count` frames of `size` bytes in the other protocol level's form.

    `start` is where the payload begins in each frame.
    """
    prefix = publish_prefix(topic, size - start, level)
    if count == 1:
        return prefix + run[start:]
    parts: list[bytes] = []
    at: i64 = 0
    for _ in range(count):
        parts.append(prefix)
        parts.append(run[at + start : at + size])
        at += size
    return b"".join(parts)


def reframe_mixed(run: bytes, level: int) -> bytes:
    """Whole frames of any sizes in the other protocol level's form."""
    out = BytesWriter()
    at: i64 = 0
    end: i64 = len(run)
    while at < end:
        following = frame_end(run, at)
        body: i64 = at + 2
        while run[body - 1] > 127:
            body += 1
        high: i64 = run[body]
        low: i64 = run[body + 1]
        topic_end: i64 = body + 2 + (high << 8 | low)
        out.append(PUBLISH_QOS0)
        left: i64 = following - body - 1
        if level == 5:
            left += 2
        while left > 127:
            out.append(left & 127 | 128)
            left >>= 7
        out.append(left)
        copy_bytes(out, run, body, topic_end)
        if level == 5:
            out.append(0)
            copy_bytes(out, run, topic_end, following)
        else:
            copy_bytes(out, run, topic_end + 1, following)
        at = following
    return out.getvalue()


def trace(
    publisher: Publisher,
    message: Message,
    parent: TraceParent | None = None,
    link: str = "",
    provider: str = "",
) -> None:
    """Make `message` a traced one and record its ingress: in a trace of its own, or in that of `parent`.

    `link` of a connector brought it from `provider`.
    """
    router_context = publisher.vpn.context
    number = router_context.ids.next()
    message.trace_high = router_context.ids.high
    message.trace_low = number
    message.message_id = router_context.ids.message_id(number)
    message.ingress_ns = router_context.steady_ns
    message.origin_ts_ns = router_context.wall_ns
    context = publisher.context
    if message.qos or parent is not None or link:
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
            bridge=link,
            peer_router=provider,
            hops=message.hops,
            path=">".join(message.path),
            parent_span_id=span,
        )
    record(publisher.vpn, context, message)


Picked = tuple[int, int, bytes, int]
"""A message picked for tracing: its place in the piece that is forwarded, its trace, topic, and bytes of payload."""


def _pick(
    publisher: Publisher,
    sampler: Sampler,
    route: Route,
    first: i64,
    count: i64,
    payload: i64,
    picked: list[Picked],
) -> None:
    """Add to `picked` those of `count` frames that the sampler picks, at least one, and record their ingress.

    The frames have payloads of `payload` bytes; the first one has place `first`. Takes from `sampler`.
    """
    ids = publisher.vpn.context.ids
    raw = route.raw
    at: i64 = sampler.left - 1
    while at < count:
        number = ids.next()
        picked.append((first + at, number, raw, payload))
        _record(publisher, publisher.context, raw, number, payload)
        sampler.next()
        at += sampler.left
    sampler.left = at + 1 - count


def _unmatched_picked(
    publisher: Publisher, sampler: Sampler, route: Route, count: i64, payload: i64
) -> None:
    """Count and record `count` frames that nobody wants, of which the sampler picks at least one."""
    picked: list[Picked] = []
    _pick(publisher, sampler, route, 0, count, payload, picked)
    publisher.unmatched += count
    context = Context(
        DISCARD,
        publisher.vpn.name,
        DIRECT,
        client=publisher.subscriber.client_name,
        reason=NO_SUBSCRIPTION_MATCH,
    )
    for _, number, topic, size in picked:
        _record(publisher, context, topic, number, size)
    losses = publisher.vpn.context.discard_rows
    if losses is not None and len(picked) < count:
        losses.unmatched(publisher, route, count - len(picked))


def _forward_picked(
    publisher: Publisher,
    route: Route,
    run: bytes,
    count: i64,
    size: i64,
    start: i64,
    picked: list[Picked],
) -> None:
    """Forward as `_forward` does, along a route with plain receivers alone, and trace those picked."""
    publisher.delivered += count
    form4 = form5 = run
    if publisher.extra:
        if route.plain4:
            form4 = _other_form(run, count, size, start, route, 4)
    elif route.plain5:
        form5 = _other_form(run, count, size, start, route, 5)
    for subscriber in route.receivers4:
        _tell(publisher, subscriber, _offer(subscriber.outbox, form4, count, size), picked)
    for subscriber in route.receivers5:
        _tell(publisher, subscriber, _offer(subscriber.outbox, form5, count, size), picked)


def _offer(outbox: Outbox, run: bytes, count: i64, size: i64) -> int:
    return outbox.offer(run, count) if size else outbox.offer_mixed(run, count)


def _tell(publisher: Publisher, subscriber: Subscriber, taken: int, picked: list[Picked]) -> None:
    """Record for each picked message whether `subscriber`, who took the first `taken`, gets it."""
    name = publisher.vpn.name
    for at, number, topic, payload in picked:
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
    router_context = publisher.vpn.context
    now_ns = router_context.wall_ns
    router_context.recorder.record(
        context,
        now_ns,
        topic,
        trace_high=router_context.ids.high,
        trace_low=number,
        message_id=router_context.ids.message_id(number),
        size=payload,
        since_ingress_ns=0,
        origin_ts_ns=now_ns,
    )


def scan(publisher: Publisher, buf: bytes, pos: i64, end: i64) -> i64:
    """Forward the plain Direct frames that begin at `pos`; return the position of the first other byte. Raises nothing.

    Stops at an incomplete frame, at any other packet, at frames that need the careful path or are wrong, and when this
    turn has done enough.

    Frames wait until one comes that goes to other receivers, and are then forwarded in one piece: `held` of them, from
    `held_at` to `pos`, for the receivers of `waiting`; `picked` are those of them that are traced.
    """
    vpn = publisher.vpn
    routes = vpn.cache.entries
    table = vpn.route_table
    rule = publisher.rule
    router_context = vpn.context
    emits = router_context.emits
    picking = publisher.picking
    sampler = publisher.sampler
    # What comes over a link leaves over another one only by the careful path.
    over_links = not publisher.subscriber.is_link
    extra: i64 = publisher.extra
    max_frame: i64 = publisher.max_frame
    offers: i64 = 0
    waiting: Route | None = None
    waiting_sole: Outbox | None = None
    picked: list[Picked] | None = None
    held: i64 = 0
    held_at: i64 = 0
    held_size: i64 = 0
    held_start: i64 = 0
    while end - pos > 4:
        if buf[pos] != PUBLISH_QOS0:
            break
        length: i64 = buf[pos + 1]
        body: i64 = pos + 2
        if length > 127:
            second: i64 = buf[pos + 2]
            length = (length & 127) | (second & 127) << 7
            body = pos + 3
            if second == 0:
                break
            if second > 127:
                third: i64 = buf[pos + 3]
                if third > 127 or third == 0:
                    break
                length |= third << 14
                body = pos + 4
        following: i64 = body + length
        size: i64 = following - pos
        if following > end or size > max_frame or length < 2:
            break
        high: i64 = buf[body]
        low: i64 = buf[body + 1]
        topic_end: i64 = body + 2 + (high << 8 | low)
        start: i64 = topic_end + extra
        if start > following or (extra == 1 and buf[topic_end] != 0):
            break
        topic_size: i64 = topic_end - body - 2
        near = table.find(buf, body + 2, topic_size) if COMPILED and topic_size >= WORD else None
        if near is not None:
            route = near
        else:
            topic = buf[body + 2 : topic_end]
            found = routes.get(topic)
            if found is not None:
                route = cast(Route, found)
                if COMPILED and topic_size >= WORD:
                    table.put(route)
            else:
                if router_context.work > router_context.allowance:
                    break
                try:
                    route = vpn.resolve(topic)
                except TopicError:
                    break
        if rule is not None and route.allowed_by is not rule and not publisher.allowed(route):
            break
        plain = route.plain
        if not plain and (
            (route.guard is not None and not route.may_put(publisher.username, rule))
            or (
                route.selector_cost
                and (route.at_once == 0 or router_context.work > router_context.allowance)
            )
        ):
            break
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
            if route.selector_cost:
                most = min(most, route.at_once)
            if most > 1:
                count = run_length(buf, pos, start - pos, size, most)
                following = pos + count * size
        publisher.messages += count
        publisher.bytes_ += following - pos
        sole = route.sole5 if extra else route.sole4
        # Picked ones wait with the others, unless they leave in another form, or for nobody.
        alone = left <= count and (emits or not plain or not route.uniform)
        joins = (
            waiting is not None
            and not alone
            and (sole is waiting_sole if sole is not None else _same_receivers(waiting, route))
        )
        if waiting is not None and not joins:
            if picked is not None:
                run = buf[held_at:pos]
                _forward_picked(publisher, waiting, run, held, held_size, held_start, picked)
                picked = None
            elif waiting_sole is None:
                _forward(publisher, waiting, buf[held_at:pos], held, held_size, held_start)
            else:
                publisher.delivered += held
                if held_size:
                    waiting_sole.offer(buf[held_at:pos], held)
                else:
                    waiting_sole.offer_mixed(buf[held_at:pos], held)
            waiting = None
        if left > count:
            sampler.left = left - count
        elif not alone:
            if picked is None:
                picked = []
            payload: i64 = size - (start - pos)
            _pick(publisher, sampler, route, held if joins else 0, count, payload, picked)
        if joins:
            held += count
            held_size = 0
        elif alone:
            if plain and not emits:
                _unmatched_picked(publisher, sampler, route, count, size - (start - pos))
            else:
                sampler.next()
                _traced(publisher, route, buf[pos:following], start - pos)
        elif route.uniform and (plain or over_links):
            waiting = route
            waiting_sole = sole
            held = count
            held_at = pos
            held_size = size
            held_start = start - pos
        elif plain:
            _forward(publisher, route, b"", count, size, start - pos)
        else:
            _everyone(publisher, route, buf[pos:following], count, size, start - pos)
            if route.selector_cost:
                router_context.work += MEASURE.work()
        pos = following
        offers += route.fan_out
        if offers > TURN_OFFERS:
            router_context.work += router_context.allowance + 1
            break
    if waiting is not None:
        if picked is not None:
            run = buf[held_at:pos]
            _forward_picked(publisher, waiting, run, held, held_size, held_start, picked)
        else:
            _forward(publisher, waiting, buf[held_at:pos], held, held_size, held_start)
    return pos


def _same_receivers(one: Route, other: Route) -> bool:
    """True when frames of both routes go to the same outboxes, and to nobody else."""
    if one is other:
        return True
    if not other.uniform or one.one_link is not other.one_link:
        return False
    return _same_outboxes(one.plain4, other.plain4) and _same_outboxes(one.plain5, other.plain5)


def _same_outboxes(one: list[Outbox], other: list[Outbox]) -> bool:
    if one is other:
        return True
    count: i64 = len(one)
    if len(other) != count:
        return False
    at: i64 = 0
    while at < count:
        if one[at] is not other[at]:
            return False
        at += 1
    return True


def _forward(
    publisher: Publisher, route: Route, run: bytes, count: i64, size: i64, start: i64
) -> None:
    """Forward `count` frames to the plain receivers of `route`, and to the link, if it has one.

    They are of `size` bytes each and have the topic of `route`, or are mixed and `size` is 0.
    """
    if route.empty:
        publisher.unmatched += count
        losses = publisher.vpn.context.discard_rows
        if losses is not None:
            losses.unmatched(publisher, route, count)
        return
    publisher.delivered += count
    link = route.one_link
    form4 = form5 = run
    if publisher.extra:
        if route.plain4:
            form4 = _other_form(run, count, size, start, route, 4)
    elif route.plain5 or link is not None:
        form5 = _other_form(run, count, size, start, route, 5)
    if size:
        for outbox in route.plain4:
            outbox.offer(form4, count)
        for outbox in route.plain5:
            outbox.offer(form5, count)
        if link is not None:
            link.outbox.offer(form5, count)
    else:
        for outbox in route.plain4:
            outbox.offer_mixed(form4, count)
        for outbox in route.plain5:
            outbox.offer_mixed(form5, count)
        if link is not None:
            link.outbox.offer_mixed(form5, count)
    if link is not None:
        link.offered += count


def _other_form(run: bytes, count: i64, size: i64, start: i64, route: Route, level: int) -> bytes:
    return reframe(run, count, size, start, route.raw, level) if size else reframe_mixed(run, level)


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
                losses = vpn.context.discard_rows
                if losses is not None:
                    losses.unmatched(publisher, route, 1)
            else:
                publisher.refused += 1
        at += size
