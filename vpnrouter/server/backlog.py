"""What waits for a bridge, as far as this router knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from vpnrouter.core.guaranteed import operations
from vpnrouter.core.guaranteed.terms import QUEUE
from vpnrouter.errors import SpoolError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vpnrouter.bridges.link import Link
    from vpnrouter.core.guaranteed.endpoint import Endpoint


class Backlog(NamedTuple):
    """The queues here that a peer's bridge takes from: their names, the messages in them, and how many of those
    the peer was sent and has not acknowledged.
    """

    endpoints: tuple[Endpoint, ...] = ()
    messages: int = 0
    unacked: int = 0

    @property
    def names(self) -> str:
        """Their names, separated by commas."""
        return ", ".join(endpoint.name for endpoint in self.endpoints)


NONE = Backlog()


def backlog_of(link: Link | None) -> Backlog:
    """What the bridge of the peer that is logged in over `link` takes from."""
    if link is None or link.outbound is None or link.outbound.flows is None or link.client is None:
        return NONE
    name = link.client.client_name
    endpoints = [
        link.client.vpn.endpoints.get((QUEUE, queue)) for queue in link.outbound.flows.queues()
    ]
    # Two flows may stand to one queue.
    found = tuple({endpoint: None for endpoint in endpoints if endpoint is not None})
    return Backlog(
        found,
        sum(endpoint.spooled_count for endpoint in found),
        sum(
            len(flow.unacked)
            for endpoint in found
            for flow in endpoint.flows
            if flow.client_name == name
        ),
    )


def oldest_age_ms(endpoints: Iterable[Endpoint]) -> int:
    """How long the oldest message of these has been in the spool, -1 where they hold none or it cannot be read."""
    found = -1
    for endpoint in endpoints:
        try:
            rows = operations.browse(endpoint, 0, 1) if endpoint.spooled_count else []
        except SpoolError:
            continue
        for row in rows:
            age_ns = endpoint.vpn.plane.steady_ns - row.spooled_time_ns
            found = max(found, age_ns // 1_000_000)
    return found
