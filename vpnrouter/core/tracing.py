"""Decides which messages are traced, handles `traceparent` (W3C Trace Context), and writes trace rows.

Trace filters decide by topic and client; the first match counts. The client is checked at its login, the topic once
for each route, so that messages cost nothing.

The user property `traceparent` of MQTT 5 messages is that of W3C Trace Context, version 00:

    00-<trace id, 32 hexadecimal digits>-<span id, 16>-<flags, 2>     (Trace Context, 3.2)

A message whose publisher set the flag "sampled" is traced here under the publisher's trace id. A traced message leaves
with the span of its delivery in place of the publisher's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.core.discard_reasons import TRANSMIT_CONGESTION
from vpnrouter.topics.algebra import matches
from vpnrouter.topics.cache import RememberedTopics
from vpnrouter.topics.grammar import MQTT
from vpnrouter.trace.events import DELIVER, DIRECT, DISCARD, EVENT_NAMES, NON_PERSISTENT, PERSISTENT
from vpnrouter.trace.recorder import Context
from vpnrouter.trace.sampler import Sampler
from vpnrouter.trace.span import span_id
from vpnrouter.wire.mqtt.encode import encode_publish
from vpnrouter.wire.mqtt.fields import read_binary, read_string
from vpnrouter.wire.mqtt.properties import (
    CONTENT_TYPE,
    CORRELATION_DATA,
    RESPONSE_TOPIC,
    USER_PROPERTY,
    read_number,
    rule_for,
    with_user_properties,
)
from vpnrouter.wire.mqtt.reason import PUBLISH

if TYPE_CHECKING:
    from vpnrouter.core.context import RouterContext
    from vpnrouter.core.message import Message
    from vpnrouter.core.publisher import Publisher
    from vpnrouter.core.route import Route
    from vpnrouter.core.subscriber import Subscriber, Subscription
    from vpnrouter.core.turn import TurnContext
    from vpnrouter.core.vpn import MessageVpn
    from vpnrouter.topics.grammar import Filter


NAME: Final = "traceparent"

_NAME: Final = NAME.encode()
_LENGTH: Final = 55
_DIGITS: Final = b"0123456789abcdef"


@final
class TraceParent:
    """A valid `traceparent`: both halves of the trace id, the sender's span, whether it is sampled.

    `place` is the position of the property's text in the block.
    """

    __slots__ = ("high", "low", "place", "sampled", "span")

    def __init__(self, high: int, low: int, span: int, sampled: bool, place: int) -> None:
        self.high = high
        self.low = low
        self.span = span
        self.sampled = sampled
        self.place = place


def read(block: bytes) -> TraceParent | None:
    """The `traceparent` in a message's properties; None where there is none, a bad one, or more than one.

    `block` is as `split_publish_properties` gave it.
    """
    if _NAME not in block:
        return None
    place = _find(block)
    return None if place < 0 else parsed(block, place)


def leaving(
    router_context: RouterContext,
    message: Message,
    block: bytes,
    vpn: str,
    event: str,
    client: str,
    endpoint: str,
) -> bytes:
    """Return the properties `block` of the traced `message` as delivered to `client`, an MQTT 5 client.

    `event`, `client` and `endpoint` are those of the row about the delivery. An invalid `traceparent`, or one of
    another trace, is left as it is.
    """
    place = -1
    if _NAME in block:
        parent = read(block)
        if parent is None or parent.high != message.trace_high or parent.low != message.trace_low:
            return block
        place = parent.place
    elif not router_context.emits:
        return block
    span = span_id(
        message.trace_high,
        message.trace_low,
        message.message_id,
        router_context.router_name,
        vpn,
        event,
        client,
        endpoint,
    )
    text = f"00-{message.trace_high:016x}{message.trace_low:016x}-{span:016x}-01"
    if place < 0:
        return with_user_properties(block, [(NAME, text)])
    return block[:place] + text.encode() + block[place + _LENGTH :]


def _find(block: bytes) -> int:
    """Where the text of the one property begins; -1 where there is none of its length, or several."""
    found = -1
    pos = 0
    end = len(block)
    while pos < end:
        identifier = block[pos]
        pos += 1
        if identifier == USER_PROPERTY:
            name, pos = read_string(block, pos, end)
            at = pos + 2
            _, pos = read_binary(block, pos, end)
            if name == NAME:
                if found >= 0 or pos - at != _LENGTH:
                    return -1
                found = at
        elif identifier in (CONTENT_TYPE, RESPONSE_TOPIC, CORRELATION_DATA):
            _, pos = read_binary(block, pos, end)
        else:
            _, pos = read_number(rule_for(identifier, PUBLISH), block, pos, end)
    return found


def parsed(block: bytes, place: int = 0) -> TraceParent | None:
    """Return the valid `traceparent` whose text is at `place`, else None."""
    text = block[place : place + _LENGTH]
    if text[:3] != b"00-" or text[35:36] != b"-" or text[52:53] != b"-":
        return None
    digits = text[3:35] + text[36:52] + text[53:]
    for digit in digits:
        if digit not in _DIGITS:
            return None
    high = int(text[3:19], 16)
    low = int(text[19:35], 16)
    span = int(text[36:52], 16)
    # All zeros is invalid (3.2.2.3 and 3.2.2.4).
    if not (high or low) or not span:
        return None
    return TraceParent(high, low, span, int(text[53:], 16) & 1 == 1, place)


@final
class TraceFilter:
    """One trace filter; an empty list fits everything. `sampler` picks among the messages that fit.

    Args:
        sampler: made with the filter's own rate.
        subscriptions: topic filters, one of which the topic has to match.
        vpns: names of message VPNs.
        usernames: client usernames.
        names: client names; one that ends in `*` fits all that begin alike.
    """

    __slots__ = ("names", "sampler", "subscriptions", "usernames", "vpns")

    def __init__(
        self,
        sampler: Sampler,
        subscriptions: list[Filter],
        vpns: list[str],
        usernames: list[str],
        names: list[str],
    ) -> None:
        self.sampler = sampler
        self.subscriptions = subscriptions
        self.vpns = vpns
        self.usernames = usernames
        self.names = names

    def fits_client(self, vpn: str, username: str, name: str) -> bool:
        """Return whether the filter applies to messages of this client."""
        if self.vpns and vpn not in self.vpns:
            return False
        if self.usernames and username not in self.usernames:
            return False
        if not self.names:
            return True
        return any(
            wanted == name or (wanted.endswith("*") and name.startswith(wanted[:-1]))
            for wanted in self.names
        )

    def fits_topic(self, topic: str) -> bool:
        """True when it looks at messages of this topic."""
        if not self.subscriptions:
            return True
        return any(matches(filter_, topic) for filter_ in self.subscriptions)


@final
class TraceSettings:
    """The settings of tracing, besides the rate.

    `discards`, `rejects`: these get rows for untraced messages too. `honours`: a publisher's `traceparent` counts.
    `emits`: messages that came without one leave with one.
    """

    __slots__ = ("discards", "emits", "filters", "honours", "rejects")

    def __init__(
        self,
        discards: bool = False,
        rejects: bool = False,
        filters: list[TraceFilter] | None = None,
        honours: bool = False,
        emits: bool = False,
    ) -> None:
        self.discards = discards
        self.rejects = rejects
        self.filters = filters or []
        self.honours = honours
        self.emits = emits


@final
class TopicSamplers:
    """Chooses a sampler by topic, from the trace filters that apply to clients of one kind, in order."""

    __slots__ = ("_chosen", "_default", "_filters")

    def __init__(self, filters: list[TraceFilter], default: Sampler) -> None:
        self._filters = filters
        self._default = default
        self._chosen: RememberedTopics[Sampler] = RememberedTopics()

    def choose(self, route: Route) -> Sampler:
        """The sampler for messages of this route; the route remembers it."""
        known = self._chosen.answers.get(route.raw)
        if known is None:
            known = self._default
            for one in self._filters:
                if one.fits_topic(route.topic):
                    known = one.sampler
                    break
            self._chosen.keep(route.raw, known)
        route.picking = self
        route.sampler = known
        return known


def assign(router_context: RouterContext, publisher: Publisher, username: str) -> None:
    """Give a client that has logged in its sampler, or its picking where the choice depends on the topic."""
    vpn = publisher.vpn.name
    name = publisher.subscriber.client_name
    key = b""
    found: list[TraceFilter] = []
    for index, one in enumerate(router_context.filters):
        if one.fits_client(vpn, username, name):
            found.append(one)
            key += bytes((index,))
            if not one.subscriptions:
                # It fits every topic: what comes behind it is never asked.
                break
    if not found:
        return
    if not found[0].subscriptions:
        publisher.sampler = found[0].sampler
        return
    picking = router_context.pickings.get(key)
    if picking is None:
        if len(router_context.pickings) >= limits.TRACE_PICKINGS:
            router_context.pickings.clear()
        picking = TopicSamplers(found, router_context.sampler)
        router_context.pickings[key] = picking
    publisher.picking = picking


def record(vpn: MessageVpn, context: Context, message: Message) -> None:
    """Write a row about the traced `message`, described by `context`."""
    router_context = vpn.context
    router_context.recorder.record(
        context,
        router_context.wall_ns,
        message.topic,
        trace_high=message.trace_high,
        trace_low=message.trace_low,
        message_id=message.message_id,
        size=len(message.payload),
        since_ingress_ns=router_context.steady_ns - message.ingress_ns,
        origin_ts_ns=message.origin_ts_ns,
    )


def record_link(router_context: TurnContext, context: Context) -> None:
    """Write a row about a link, described by `context`: it concerns no message."""
    router_context.recorder.record(
        context,
        router_context.wall_ns,
        b"",
        trace_high=0,
        trace_low=0,
        message_id=0,
        size=-1,
        since_ingress_ns=-1,
        origin_ts_ns=0,
    )


def kept_mode(message: Message) -> int:
    """The delivery mode of a message that an endpoint keeps, or has kept."""
    return PERSISTENT if message.persistent and not message.volatile else NON_PERSISTENT


def outcome(vpn: MessageVpn, subscriber: Subscriber, message: Message, taken: int) -> None:
    """Record that the traced `message` was queued for `subscriber` (`taken` 1) or had no room (0)."""
    if not taken:
        refused = subscriber.outbox.losses
        if refused is not None:
            refused.told(1)
        lost(vpn, DISCARD, message, DIRECT, "", TRANSMIT_CONGESTION, subscriber)
        return
    context = subscriber.delivered
    if context is None or not message.arrived_like(context):
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


def sent_out(
    vpn: MessageVpn, subscriber: Subscriber, message: Message, link: str, provider: str
) -> None:
    """Record that `link` of a connector sent the traced Direct `message` to `provider`, for its `subscriber`."""
    context = Context(
        DELIVER,
        vpn.name,
        DIRECT,
        client=subscriber.client_name,
        bridge=link,
        peer_router=provider,
        hops=message.hops,
        path=">".join(message.path),
        origin_router=message.origin_router,
        origin_vpn=message.origin_vpn,
    )
    record(vpn, context, message)


def frame5(vpn: MessageVpn, subscriber: Subscriber, message: Message) -> bytes:
    """The MQTT 5 PUBLISH, QoS 0, for `subscriber`: that of a traced message may name the span of its delivery."""
    if message.traced:
        said = message.mqtt()
        block = leaving(
            vpn.context,
            message,
            said.block,
            vpn.name,
            EVENT_NAMES[DELIVER],
            subscriber.client_name,
            "",
        )
        if block is not said.block:
            return encode_publish(message.topic, said.payload, 5, block)
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
    """Record that `message` was discarded or rejected; an untraced one is added up (discard_rows.py).

    `receiver` did not get it; `client` names the client of the row. Without either the row names the publisher, and a
    link's client by its bridge.
    """
    router_context = vpn.context
    losses = router_context.discard_rows
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
    """Record a new or removed subscription."""
    router_context = vpn.context
    if not router_context.tracing:
        return
    filter_ = subscription.filter
    context = Context(
        event,
        vpn.name,
        DIRECT,
        client=subscription.subscriber.client_name,
        topic_syntax="mqtt" if filter_.dialect == MQTT else "smf",
    )
    router_context.recorder.record(
        context,
        router_context.wall_ns,
        filter_.original.encode(),
        trace_high=0,
        trace_low=0,
        message_id=0,
        size=0,
        since_ingress_ns=0,
        origin_ts_ns=0,
    )


def trace_kept(
    vpn: MessageVpn,
    event: int,
    message: Message,
    endpoint: str,
    reason: str,
    client: str = "",
    partition: int = -1,
    link: str = "",
    provider: str = "",
) -> None:
    """Record what happened to the traced `message` in `vpn`, at the endpoint of that name, if any.

    The row names `client`, or without one the publisher. `link` of a connector sent it to `provider`.
    """
    context = Context(
        event,
        vpn.name,
        kept_mode(message),
        client=client or message.source_name,
        endpoint=endpoint,
        bridge=link,
        peer_router=provider,
        hops=message.hops,
        path=">".join(message.path),
        reason=reason,
        origin_router=message.origin_router,
        origin_vpn=message.origin_vpn,
        partition=partition,
    )
    record(vpn, context, message)


def trace_kept_lost(
    vpn: MessageVpn,
    event: int,
    message: Message,
    endpoint: str,
    reason: str,
    client: str = "",
    partition: int = -1,
) -> None:
    """Record that a guaranteed message, traced or not, was discarded or rejected."""
    lost(
        vpn,
        event,
        message,
        mode=kept_mode(message),
        endpoint=endpoint,
        reason=reason,
        receiver=None,
        client=client,
        partition=partition,
    )
