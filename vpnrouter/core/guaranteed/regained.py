"""What an endpoint gets back after a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.guaranteed import delay

if TYPE_CHECKING:
    from array import array

    from vpnrouter.core.guaranteed.endpoint import Endpoint


def recovered(
    endpoint: Endpoint, ids: array[int], priority: int, lane: int, expires: list[tuple[int, int]]
) -> None:
    """Let messages wait that were here when the router stopped; see Endpoint.recovered."""
    terms = endpoint.terms
    if ids:
        endpoint.newest = max(endpoint.newest, ids[-1])
        if not terms.respect_msg_priority_enabled:
            priority = 0
        if terms.delivery_delay:
            delay.hold_recovered(endpoint, ids)
        else:
            endpoint.waiting[lane % len(endpoint.waiting)].extend(ids, priority)
        if terms.respect_ttl_enabled and terms.max_ttl:
            endpoint.oldest_due_ns = endpoint.vpn.plane.now_ns + 1
        endpoint.wake()
    if terms.respect_ttl_enabled:
        for message_id, due_ns in expires:
            endpoint.expiring.add(message_id, due_ns)
    endpoint.arm()
