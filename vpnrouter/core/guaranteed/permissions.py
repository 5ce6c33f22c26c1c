"""What a client username may do with an endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.guaranteed.terms import CONSUME, DELETE

if TYPE_CHECKING:
    from vpnrouter.core.access import BoundRule
    from vpnrouter.core.credentials import ClientUsername
    from vpnrouter.core.guaranteed.terms import EndpointTerms
    from vpnrouter.core.route import Route


def permission_of(terms: EndpointTerms, client_username: str, *, override: bool) -> int:
    """The step of the ladder (terms.py) that `client_username` stands on: its owner may do everything.

    `override` is the client username's `guaranteed_endpoint_permission_override_enabled`.
    """
    if override or (terms.owner and terms.owner == client_username):
        return DELETE
    return terms.permission


def may_put(route: Route, username: ClientUsername | None, rule: BoundRule | None) -> bool:
    """May a client that may publish to the topic of `route` put messages into the queue that it names, if it does?

    Who may consume from the queue may; anybody else only by an exception of the ACL profile, `rule`, that allows
    `$queue/…` in so many words. The field knows no permission to publish to a queue; without one, everybody could fill
    a queue that is `no-access` to him. None as `username` is who is no client.
    """
    queue = route.guard
    if queue is None or username is None:
        return True
    override = username.guaranteed_endpoint_permission_override_enabled
    if permission_of(queue.terms, username.name, override=override) >= CONSUME:
        return True
    return rule is not None and rule.names(route.topic)
