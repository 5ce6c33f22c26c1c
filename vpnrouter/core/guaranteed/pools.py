"""Where in an endpoint a message waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.guaranteed.waiting import Waiting


def pools(endpoint: Endpoint) -> list[Waiting]:
    """Everything that waits, but for `delayed`."""
    found = endpoint.waiting + endpoint.unsorted
    if endpoint.held is not None:
        found.append(endpoint.held)
    if endpoint.ahead is not None:
        found.append(endpoint.ahead)
    return found


def take_out(endpoint: Endpoint, message_id: int) -> bool:
    """Remove an id that waits; False when a flow holds it, or when it is gone."""
    if endpoint.delayed.remove(message_id):
        return True
    return any(pool.remove(message_id) for pool in pools(endpoint))


def waits(endpoint: Endpoint, message_id: int) -> bool:
    """True when this id waits here, whatever it waits for."""
    if endpoint.delayed.has(message_id):
        return True
    return any(pool.has(message_id) for pool in pools(endpoint))


def holds(endpoint: Endpoint, message_id: int) -> bool:
    """True when the endpoint has this message of the synced spool."""
    if waits(endpoint, message_id):
        return True
    return any(message_id in flow.unacked for flow in endpoint.flows)


def last_waiting(endpoint: Endpoint) -> int:
    """The highest id that waits here, whatever it waits for; 0 when none does."""
    highest = max((pool.last() for pool in pools(endpoint)), default=0)
    return max(highest, max(endpoint.delayed.ids(), default=0))


def last_held(endpoint: Endpoint) -> int:
    """The highest id that waits here or that a flow holds, 0 when there is none."""
    highest = last_waiting(endpoint)
    for flow in endpoint.flows:
        highest = max(highest, max(flow.unacked, default=0))
    return highest
