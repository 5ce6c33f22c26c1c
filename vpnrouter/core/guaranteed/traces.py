"""Trace events of guaranteed messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.core.guaranteed.flow import ACCEPTED, REJECTED, lane_of
from vpnrouter.core.tracing import kept_mode, lost, record
from vpnrouter.trace.events import ACKNOWLEDGE, DISCARD, PERSISTENT, REJECT
from vpnrouter.trace.recorder import Context

if TYPE_CHECKING:
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.message import Message
    from vpnrouter.core.vpn import MessageVpn

CONSUMER: Final = "rejected"
"""Why a message is rejected that a consumer does not want."""


def trace(
    vpn: MessageVpn,
    event: int,
    message: Message,
    endpoint: str,
    reason: str,
    client: str = "",
    partition: int = -1,
) -> None:
    """Record what happened to the traced `message` in `vpn`, at the endpoint of that name, if any.

    `client` is whom it concerns; without one its publisher.
    """
    context = Context(
        event,
        vpn.name,
        kept_mode(message),
        client=client or message.source_name,
        endpoint=endpoint,
        hops=message.hops,
        path=">".join(message.path),
        reason=reason,
        origin_router=message.origin_router,
        origin_vpn=message.origin_vpn,
        partition=partition,
    )
    record(vpn, context, message)


def trace_at(
    endpoint: Endpoint,
    event: int,
    spool_id: int,
    message: Message,
    reason: str = "",
    client: str = "",
) -> None:
    """Record what happened to a traced message that `endpoint` keeps under `spool_id`."""
    partition = partition_of(endpoint, spool_id, message)
    trace(endpoint.vpn, event, message, endpoint.name, reason, client, partition)


def trace_lost(
    vpn: MessageVpn, event: int, message: Message, endpoint: str, reason: str, client: str = ""
) -> None:
    """Record that a message, traced or not, was discarded or rejected."""
    lost(vpn, event, message, kept_mode(message), endpoint, reason, None, client)


def trace_lost_at(
    endpoint: Endpoint, event: int, spool_id: int, message: Message, reason: str, client: str = ""
) -> None:
    """Record that a message that `endpoint` kept under `spool_id` was discarded or rejected.

    The message may be traced or not.
    """
    partition = partition_of(endpoint, spool_id, message)
    mode = kept_mode(message)
    lost(endpoint.vpn, event, message, mode, endpoint.name, reason, None, client, partition)


def trace_replaced(endpoint: Endpoint, reason: str, count: int) -> None:
    """Add up messages that newer ones took the place of; what they were is not looked at."""
    losses = endpoint.vpn.plane.losses
    if losses is not None and count:
        name = endpoint.vpn.name
        losses.add(
            (DISCARD, name, PERSISTENT, "", endpoint.name, reason, "", "", 0, "", b""), count
        )


def trace_settled(
    endpoint: Endpoint, client: str, spool_id: int, message: Message, outcome: int
) -> None:
    """Record what the consumer `client` said of a message; that it comes back is told when it does."""
    if outcome == REJECTED:
        trace_lost_at(endpoint, REJECT, spool_id, message, CONSUMER, client)
    elif outcome == ACCEPTED and message.traced:
        trace_at(endpoint, ACKNOWLEDGE, spool_id, message, "", client)


def partition_of(endpoint: Endpoint, spool_id: int, message: Message) -> int:
    """The partition in which `endpoint` keeps a message; -1 where it has none."""
    if endpoint.partitions is None:
        return -1
    return lane_of(spool_id, message, len(endpoint.waiting))
