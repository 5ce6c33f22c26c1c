"""What a client username may do with an endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vpnrouter.core.guaranteed.terms import DELETE

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.terms import EndpointTerms


def permission_of(terms: EndpointTerms, client_username: str, *, override: bool) -> int:
    """The step of the ladder (terms.py) that `client_username` stands on: its owner may do everything.

    `override` is the client username's `guaranteed_endpoint_permission_override_enabled`.
    """
    if override or (terms.owner and terms.owner == client_username):
        return DELETE
    return terms.permission
