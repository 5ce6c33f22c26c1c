"""Which endpoints a message is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message
    from vpnrouter.core.route import Route, Target


def takers_of(route: Route, message: Message) -> list[Endpoint]:
    """The endpoints that match `message`: queues and topic endpoints, and for a guaranteed one sessions.

    The list may be the route's own: it is not to be changed.
    """
    if route.simple_takers:
        return route.takers if message.persistent else route.queues
    found = [
        cast("Endpoint", target.subscriber)
        for target in route.endpoints
        if not target.selective or target.wanting(message)
    ]
    if message.persistent:
        for target in route.sessions:
            endpoint = target.subscriber.endpoint
            if endpoint is not None and _wants(target, message):
                found.append(endpoint)
        for group in route.groups:
            member = group.choose_durable(message, route.excluded)
            endpoint = None if member is None else member.subscriber.endpoint
            if endpoint is not None and endpoint not in found:
                found.append(endpoint)
    return found


def _wants(target: Target, message: Message) -> bool:
    """True when one of the session's subscriptions wants it. No-local holds for guaranteed messages too."""
    source = message.source_name
    for subscription in target.wanting(message):
        if subscription.qos and not (
            subscription.no_local and source == target.subscriber.client_name
        ):
            return True
    return False
