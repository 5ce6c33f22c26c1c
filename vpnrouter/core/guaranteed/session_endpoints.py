"""The endpoints behind MQTT sessions: made with the first subscription of QoS 1 or 2, gone with the session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.core.guaranteed import reasons
from vpnrouter.core.guaranteed.endpoint import Endpoint
from vpnrouter.core.guaranteed.reasons import QUOTA_EXCEEDED
from vpnrouter.core.guaranteed.terms import SESSION
from vpnrouter.errors import Refused

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.spool import Spool
    from vpnrouter.core.vpn import MessageVpn

PREFIX: Final = "#mqtt/"
"""What the names of these endpoints begin with; the client id follows."""


def have_room(vpn: MessageVpn, creator: str = "", most_of_creator: int = 0) -> None:
    """Check that the client username `creator` may make one more endpoint.

    Raises Refused at the bound of the message VPN, or at that of its profile; 0 is none.
    """
    most = vpn.limits.max_endpoint_count
    if most and len(vpn.endpoints) >= most:
        raise Refused(reasons.TOO_MANY_ENDPOINTS, QUOTA_EXCEEDED)
    if most_of_creator and vpn.endpoints_of.get(creator, 0) >= most_of_creator:
        raise Refused(reasons.TOO_MANY_ENDPOINTS, QUOTA_EXCEEDED)


def make(
    spool: Spool, vpn: MessageVpn, client_id: str, number: int, durable: bool, creator: str = ""
) -> Endpoint:
    """The endpoint of a session, under the number that its messages are kept under; written down if durable.

    It is counted for the client username `creator`.
    """
    endpoint = restore(spool, vpn, client_id, number, durable, creator)
    if durable:
        endpoint.define()
    return endpoint


def restore(
    spool: Spool, vpn: MessageVpn, client_id: str, number: int, durable: bool, creator: str = ""
) -> Endpoint:
    """The endpoint of a session, with nothing written to the store: it knows it, or is not to know it.

    It is counted for the client username `creator`.
    """
    endpoint = Endpoint(
        spool, vpn, SESSION, PREFIX + client_id, number, vpn.session_terms.copy(), durable
    )
    vpn.endpoints[SESSION, endpoint.name] = endpoint
    vpn.count_endpoint(creator, 1)
    return endpoint
