"""Life times of messages in an endpoint: the message's own, and the endpoint's `max_ttl`.

A message's own time stands in seconds' buckets. `max_ttl` counts from the arrival, and ids rise with it:
it is enough to look at the oldest, which costs no memory and survives a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.core.guaranteed.pools import holds, pools, take_out
from vpnrouter.core.guaranteed.unreadable import readable

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message

SECOND_NS: Final = 1_000_000_000

PRIORITIES: Final = 10
"""0 to 9."""

MOST: Final = 2_000
"""Messages that expire, or whose delay ends, in one go; the rest in the next round."""

SWEEP: Final = 1_024
"""Settled messages among those with a life time that are not worth a sweep."""


def expires_ns(endpoint: Endpoint, message: Message) -> int:
    """When the message expires here (monotonic): the earlier of its own time and `max_ttl`; 0 for never."""
    terms = endpoint.terms
    if not terms.respect_ttl_enabled:
        return 0
    end_ns = message.expires_ns
    if terms.max_ttl:
        plane = endpoint.vpn.plane
        latest_ns = message.ingress_ns - plane.steady_ns + plane.now_ns + terms.max_ttl * SECOND_NS
        end_ns = min(end_ns, latest_ns) if end_ns else latest_ns
        # Only 0 is never.
        return end_ns or 1
    return end_ns


def expired(endpoint: Endpoint, message: Message) -> bool:
    """True when its time is over."""
    end_ns = expires_ns(endpoint, message)
    return end_ns != 0 and end_ns <= endpoint.vpn.plane.now_ns


def note(endpoint: Endpoint, message_id: int, message: Message) -> None:
    """A message has arrived where life times are respected."""
    if message.expires_ns:
        expiring = endpoint.expiring
        expiring.add(message_id, message.expires_ns)
        endpoint.arm()
        if expiring.count > SWEEP + 2 * endpoint.spooled_count:
            _sweep(endpoint)
    if endpoint.terms.max_ttl and endpoint.oldest_due_ns == 0:
        endpoint.oldest_due_ns = (
            endpoint.vpn.plane.now_ns + (endpoint.terms.max_ttl + 1) * SECOND_NS
        )
        endpoint.arm()


def run(endpoint: Endpoint, now_ns: int) -> None:
    """Let expire what is over; a bounded number now, the rest in the next round."""
    left = MOST
    for message_id in endpoint.expiring.due(now_ns, MOST):
        left -= 1
        if take_out(endpoint, message_id):
            message = readable(endpoint, message_id)
            if message is not None:
                _expire(endpoint, message_id, message)
    if 0 < endpoint.oldest_due_ns <= now_ns:
        endpoint.oldest_due_ns = 0
        if endpoint.terms.respect_ttl_enabled and endpoint.terms.max_ttl:
            _oldest(endpoint, now_ns, left)


def _expire(endpoint: Endpoint, message_id: int, message: Message) -> None:
    """Let a message that was taken out expire. If this raises, it is put back and tried again."""
    try:
        endpoint.expire(message_id, message)
    except Exception:
        endpoint.mend(message_id, message)
        endpoint.expiring.add(message_id, endpoint.vpn.plane.now_ns)
        raise


def _oldest(endpoint: Endpoint, now_ns: int, left: int) -> None:
    """Let the oldest messages expire, and find out when the next of them will."""
    first_ns = 0
    for pool in pools(endpoint):
        for priority in range(PRIORITIES):
            while True:
                ids = pool.of_priority(priority, 0, 1)
                if not ids:
                    break
                message_id = ids[0]
                message = readable(endpoint, message_id)
                if message is None:
                    left -= 1
                    pool.remove(message_id)
                    if left > 0:
                        continue
                    first_ns = now_ns + 1
                    break
                end_ns = expires_ns(endpoint, message)
                if end_ns > now_ns or left <= 0:
                    first_ns = min(first_ns, end_ns) if first_ns else end_ns
                    break
                left -= 1
                pool.remove(message_id)
                _expire(endpoint, message_id, message)
    if first_ns:
        # Whole seconds, so that a stream of messages costs one look a second.
        endpoint.oldest_due_ns = max(-(-first_ns // SECOND_NS) * SECOND_NS, now_ns + 1)
    elif endpoint.spooled_count:
        # Flows hold the rest: those that come back are looked at then.
        endpoint.oldest_due_ns = now_ns + endpoint.terms.max_ttl * SECOND_NS


def _sweep(endpoint: Endpoint) -> None:
    """Forget the life times of messages that are settled."""
    expiring = endpoint.expiring
    for second, ids in expiring.take_all().items():
        for message_id in ids:
            if holds(endpoint, message_id):
                expiring.add(message_id, second * SECOND_NS)
