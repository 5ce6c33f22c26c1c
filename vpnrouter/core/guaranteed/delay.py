"""Messages that wait for a time: `delivery_delay` after their arrival, and before they are tried again.

The first kind is due in the order of ids, so that only the oldest is looked at; what is left of the
delay survives a restart, since it counts from the arrival.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.core.guaranteed.expiry import MOST
from vpnrouter.core.guaranteed.unreadable import readable
from vpnrouter.core.guaranteed.waiting import Waiting

if TYPE_CHECKING:
    from array import array

    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message

SECOND_NS: Final = 1_000_000_000


def hold(endpoint: Endpoint, message_id: int, message: Message) -> None:
    """Keep a message back that has just arrived."""
    held = endpoint.held
    if held is None:
        held = Waiting()
        endpoint.held = held
    held.add(message_id, 0)
    if endpoint.held_due_ns == 0:
        endpoint.held_due_ns = _due(endpoint, message)
        endpoint.arm()


def hold_recovered(endpoint: Endpoint, ids: array[int]) -> None:
    """Keep messages back that were here before a restart; those whose delay is over leave in rounds."""
    held = endpoint.held
    if held is None:
        held = Waiting()
        endpoint.held = held
    held.extend(ids, 0)
    endpoint.held_due_ns = endpoint.vpn.plane.now_ns + 1


def run(endpoint: Endpoint, now_ns: int) -> None:
    """Let messages go whose delay is over; a bounded number now, the rest in the next round."""
    for message_id in endpoint.delayed.due(now_ns, MOST):
        message = readable(endpoint, message_id)
        if message is not None:
            endpoint.ready(message_id, message)
    held = endpoint.held
    if held is None or endpoint.held_due_ns == 0 or endpoint.held_due_ns > now_ns:
        return
    endpoint.held_due_ns = 0
    left = MOST
    while held.count:
        if left == 0:
            endpoint.held_due_ns = now_ns + 1
            return
        left -= 1
        message_id = held.first()
        message = readable(endpoint, message_id)
        if message is None:
            held.pop()
            continue
        due_ns = _due(endpoint, message)
        if due_ns > now_ns:
            endpoint.held_due_ns = due_ns
            return
        held.pop()
        endpoint.ready(message_id, message)
    endpoint.held = None


def _due(endpoint: Endpoint, message: Message) -> int:
    """When the delivery delay of a message is over (monotonic)."""
    plane = endpoint.vpn.plane
    arrived_ns = message.ingress_ns - plane.steady_ns + plane.now_ns
    return max(1, arrived_ns + endpoint.terms.delivery_delay * SECOND_NS)
