"""Messages that come back from a consumer: how often, when they are tried again, and when no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.core.guaranteed.counters import DISCARDED
from vpnrouter.core.guaranteed.dead_letters import REDELIVERED, dead_letter
from vpnrouter.core.guaranteed.expiry import expired
from vpnrouter.core.guaranteed.sizes import size_of
from vpnrouter.core.guaranteed.traces import trace_replaced
from vpnrouter.spool import keys

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message

MILLISECOND_NS: Final = 1_000_000

MOST: Final = 0xFFFF
"""What a stored redelivery count can say."""

UNCOUNTED: Final = -1
"""A redelivery count that says: delivered before, or perhaps, and that does not count."""

LAST_VALUE: Final = "last-value"


def failed(endpoint: Endpoint, message_id: int, message: Message) -> None:
    """A consumer could not take the message, or went while it had it: count, and try again or give up."""
    terms = endpoint.terms
    count = min(max(endpoint.redeliveries.get(message_id, 0), 0) + 1, MOST)
    if not terms.redelivery_enabled or 0 < terms.max_redelivery_count < count:
        dead_letter(endpoint, message_id, message, REDELIVERED)
        return
    endpoint.redeliveries[message_id] = count
    endpoint.spool.ledger.put(
        keys.redeliveries(endpoint.number, message_id), count.to_bytes(2, "big")
    )
    delay_ms = 0.0
    if terms.redelivery_delay_enabled:
        growth = (terms.redelivery_delay_multiplier / 100) ** min(count - 1, 64)
        delay_ms = min(
            terms.redelivery_delay_initial_interval * growth, terms.redelivery_delay_max_interval
        )
    again(endpoint, message_id, message, int(delay_ms * MILLISECOND_NS))


def again(endpoint: Endpoint, message_id: int, message: Message, delay_ns: int) -> None:
    """Deliver the message once more, after a delay."""
    if message_id < endpoint.newest and endpoint.terms.last_value:
        endpoint.forget(message_id, size_of(message), DISCARDED, LAST_VALUE)
        trace_replaced(endpoint, LAST_VALUE, 1)
        return
    if message_id not in endpoint.redeliveries:
        endpoint.redeliveries[message_id] = UNCOUNTED
    if expired(endpoint, message):
        endpoint.expire(message_id, message)
    elif delay_ns:
        endpoint.delayed.add(message_id, endpoint.vpn.plane.now_ns + delay_ns)
        endpoint.arm()
    else:
        endpoint.ready(message_id, message)
