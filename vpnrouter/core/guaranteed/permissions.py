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


def may_learn(username: ClientUsername | None) -> bool:
    """May a client username learn that there is no such queue or topic endpoint?

    To all others one that is not there is like one that is not open to them, or they would find out the names.
    """
    return username is None or username.guaranteed_endpoint_permission_override_enabled


def may_put(route: Route, username: ClientUsername | None, rule: BoundRule | None) -> bool:
    """True when a client may publish to the queue that the topic of `route` names, or the topic names none.

    The ACL profile allows the topic already. A client that may consume from the queue may publish to it. Another
    client needs an exception of the ACL profile, `rule`, that names `$queue/…` without a wildcard in the first
    level. The field has no permission to publish to a queue; without one, everybody could fill a queue that is
    `no-access` to them. `username` is None for publishers that are no clients: they may.
    """
    queue = route.guard
    if queue is None or username is None:
        return True
    override = username.guaranteed_endpoint_permission_override_enabled
    if permission_of(queue.terms, username.name, override=override) >= CONSUME:
        return True
    return rule is not None and rule.names(route.topic)
