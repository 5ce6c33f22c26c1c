"""Messages that the store cannot give back: told to the operator, and nobody else is held up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.core.guaranteed.sizes import size_of
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
        tell(endpoint, error)
        endpoint.delayed.add(message_id, endpoint.vpn.plane.now_ns + 100 * YEAR_NS)
        return None


def size_in_store(endpoint: Endpoint, message_id: int) -> int:
    """The bytes that a message counts for, even if it cannot be read; 0 where its size is lost as well."""
    try:
        return size_of(endpoint.spool.message(message_id))
    except SpoolError as error:
        tell(endpoint, error)
    try:
        return endpoint.spool.ledger.size(message_id)
    except SpoolError:
        return 0


def tell(endpoint: Endpoint, error: SpoolError) -> None:
    """Count a message of the endpoint that cannot be read, and tell the operator."""
    text = (
        f"a message of {endpoint.name} in message VPN {endpoint.vpn.name} cannot be read: {error}"
    )
    endpoint.spool.trouble(text)
