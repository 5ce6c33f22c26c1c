"""Trace events of guaranteed messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.core.guaranteed.flow import ACCEPTED, REJECTED
from vpnrouter.trace.events import ACKNOWLEDGE, NON_PERSISTENT, PERSISTENT, REJECT
from vpnrouter.trace.recorder import Context

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message
    from vpnrouter.core.vpn import MessageVpn

CONSUMER: Final = "rejected"
"""Why a message is rejected that a consumer does not want."""


def trace(
    vpn: MessageVpn, event: int, message: Message, endpoint: str, reason: str, client: str = ""
) -> None:
    """Record what happened to the traced `message` in `vpn`, at the endpoint of that name, if any.

    `client` is whom it concerns; without one its publisher.
    """
    plane = vpn.plane
    context = Context(
        event,
        vpn.name,
        PERSISTENT if message.persistent else NON_PERSISTENT,
        client=client or message.source_name,
        endpoint=endpoint,
        hops=message.hops,
        path=">".join(message.path),
        reason=reason,
        origin_router=message.origin_router,
        origin_vpn=message.origin_vpn,
    )
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


def trace_settled(endpoint: Endpoint, client: str, message: Message, outcome: int) -> None:
    """Record what the consumer `client` said of a traced message; that it comes back is told when it does."""
    if outcome == ACCEPTED:
        trace(endpoint.vpn, ACKNOWLEDGE, message, endpoint.name, "", client)
    elif outcome == REJECTED:
        trace(endpoint.vpn, REJECT, message, endpoint.name, CONSUMER, client)
