"""The sections of a message as a client is sent it: its header, and what it was published with (3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.tracing import leaving
from vpnrouter.trace.events import DELIVER, EVENT_NAMES, REDELIVER
from vpnrouter.units import MILLISECOND_NS
from vpnrouter.wire.amqp.heads import header
from vpnrouter.wire.amqp.performatives import UINT_MAX

if TYPE_CHECKING:
    from vpnrouter.core.message import Message
    from vpnrouter.core.vpn import MessageVpn


def header_of(message: Message, count: int, vpn: MessageVpn) -> bytes:
    """Return the header of a message of `vpn` that was delivered `count` times before."""
    ttl = -1
    if message.expires_ns:
        left_ns = message.expires_ns - vpn.context.now_ns
        ttl = max(0, -(-left_ns // MILLISECOND_NS))
        if ttl > UINT_MAX:
            # It cannot be said, and a receiver may throw away what has lived as long as it says.
            ttl = -1
    durable = message.persistent and not message.volatile
    return header(durable, message.priority, ttl, max(0, count), count == 0)


def traced_content(
    message: Message, count: int, vpn: MessageVpn, client_name: str, endpoint: str
) -> bytes:
    """Return the rest of a traced message: it may name the span of its delivery to the client, from `endpoint`."""
    event = EVENT_NAMES[REDELIVER if count else DELIVER]
    block = leaving(vpn.context, message, message.block, vpn.name, event, client_name, endpoint)
    if block is message.block:
        return message.amqp()
    other = message.copy()
    other.block = block
    return other.amqp()
