"""Messages that the store cannot give back: told to the operator, and nobody else is held up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter import limits
from vpnrouter.errors import SpoolError

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message

YEAR_NS: Final = 365 * 24 * 3600 * 1_000_000_000


def readable(endpoint: Endpoint, message_id: int) -> Message | None:
    """The message, which no longer waits or is about to; None when it cannot be read.

    Such a one stays in the store, counts as there, and is tried again after the next start; the edge tells
    what is in `plane.troubles`.
    """
    try:
        return endpoint.spool.message(message_id)
    except SpoolError as error:
        plane = endpoint.vpn.plane
        if len(plane.troubles) < limits.TROUBLES:
            plane.troubles.append(
                f"a message of {endpoint.name} in message VPN {endpoint.vpn.name} cannot be read:"
                f" {error}"
            )
        endpoint.delayed.add(message_id, plane.now_ns + 100 * YEAR_NS)
        return None
