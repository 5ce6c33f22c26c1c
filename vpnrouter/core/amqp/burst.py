"""Forwards settled transfers of one link together, where all who want them are AMQP clients with credit.

It is what the scan of plain PUBLISH frames is for MQTT (forward.py): nothing that came is looked at twice, and no
message becomes an object. What is rare is left to the links: traces, selectors, bounds, endpoints, links of bridges.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from mypy_extensions import i64

from vpnrouter import limits
from vpnrouter.core.amqp.sending_link import TopicSubscriber
from vpnrouter.core.message import AMQP, DELIVER_TO_ONE, Message
from vpnrouter.core.route import Route
from vpnrouter.wire.amqp.transfers import Burst

if TYPE_CHECKING:
    from vpnrouter.core.amqp.receiving_link import ReceivingLink
    from vpnrouter.core.publisher import Publisher

_BURST: Final = Burst()
_DELIVER_TO_ONE: Final = DELIVER_TO_ONE.encode()

MOST: Final = 512
"""Messages that are forwarded together: the work of a turn is looked at behind them."""


def receivers_of(route: Route) -> list[TopicSubscriber] | None:
    """Return who takes the messages of a route, None where others do too, or something has to be looked at."""
    if (
        route.guarded
        or route.fan_out
        or route.links
        or route.groups
        or route.endpoints
        or route.sessions
        or not route.special
    ):
        return None
    found: list[TopicSubscriber] = []
    for target in route.special:
        subscriber = target.subscriber
        if not isinstance(subscriber, TopicSubscriber) or target.selective or subscriber.no_local:
            return None
        found.append(subscriber)
    return found


def forward(link: ReceivingLink, publisher: Publisher, buf: bytes, pos: i64, end: i64) -> i64:
    """Forward the plain settled transfers over `link` that begin at `pos`; return the position behind them.

    It is `pos` where the first of them needs the careful path.
    """
    vpn = publisher.vpn
    found = vpn.cache.entries.get(link.topic)
    if found is None:
        return pos
    route = cast(Route, found)
    if link.route is not route:
        link.route = route
        link.receivers = receivers_of(route)
    receivers = link.receivers
    if receivers is None or not publisher.allowed(route):
        return pos
    sampler = publisher.sampler_for(route)
    most: i64 = min(MOST, link.credit, sampler.left - 1)
    session = link.session
    max_message: i64 = min(publisher.max_frame, publisher.max_size)
    burst = _BURST
    count: i64 = burst.scan(
        buf,
        pos,
        end,
        session.channel,
        link.handle,
        limits.AMQP_FRAME_BYTES,
        max_message,
        most,
    )
    if count == 0 or buf.find(_DELIVER_TO_ONE, pos, burst.next) >= 0:
        return pos
    sampler.left -= count
    publisher.messages += count
    publisher.bytes_ += burst.size
    publisher.delivered += count
    vpn.context.work += 1 + (count * (1 + len(receivers)) >> 2)
    for subscriber in receivers:
        taken = subscriber.take(burst, buf, count)
        for index in range(taken, count):
            content = burst.message(buf, index)
            message = Message(link.topic, content, b"", False, link.client, AMQP)
            subscriber.deliver(message, [])
    session.came(count)
    link.took(count)
    return burst.next
