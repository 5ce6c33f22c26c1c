"""Where an endpoint cannot take a message: does its publisher hear of it, or do the others go on alone?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.core.guaranteed import reasons
from vpnrouter.core.guaranteed.traces import trace_lost
from vpnrouter.trace.events import DISCARD

_PASSES: Final = frozenset({reasons.SPOOL_OVER_QUOTA, reasons.MAX_MESSAGE_USAGE})
"""Reasons for which a message has no room now and may have some later."""

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message
    from vpnrouter.core.vpn import MessageVpn


def obstructed(matched: list[Endpoint], message: Message, size: int) -> bool:
    """True when one of the endpoints cannot take the message now."""
    reason = ""
    for endpoint in matched:
        reason = endpoint.obstacle(message, size)
        if reason:
            break
    return reason != ""


def rejection(matched: list[Endpoint], message: Message, size: int, full: str) -> tuple[str, str]:
    """The first reason why nobody is to keep the message (promise ALLORNONE) and the endpoint that says so.

    Both are "" when there is none.

    `full` is why the message VPN or the router has no room, "" when they have. Counts at each endpoint
    for whose sake the message is rejected.

    A message that came over a bridge can wait in the remote queue: where one endpoint rejects on discard, the
    message waits until all that match have room, so that none of them loses it. Waiting does not help where an
    endpoint is shut down or takes only smaller messages: there each endpoint decides for itself.
    """
    found = ""
    where = ""
    together = False
    if message.hops:
        for endpoint in matched:
            if endpoint.terms.rejects():
                together = True
    for endpoint in matched:
        reason = full or endpoint.obstacle(message, size)
        if reason and (endpoint.terms.rejects() or (together and reason in _PASSES)):
            endpoint.counters.refused.add(reasons.DISCARD_NAMES[reason])
            if not found:
                found = reason
                where = endpoint.name
    return found, where


def willing(
    vpn: MessageVpn, matched: list[Endpoint], message: Message, size: int, full: str
) -> list[Endpoint]:
    """Those that can take the message; the others discard it, and the publisher hears nothing of it."""
    takers: list[Endpoint] = []
    for endpoint in matched:
        reason = full or endpoint.obstacle(message, size)
        if not reason:
            takers.append(endpoint)
            continue
        name = reasons.DISCARD_NAMES[reason]
        endpoint.counters.refused.add(name)
        trace_lost(vpn, DISCARD, message, endpoint.name, name)
    return takers
