"""What explains that a message came more than once, so that it is no trouble of its own."""

from typing import Final

from vpnrouter.topology.tables import Rows
from vpnrouter.topology.trouble.bridges import Edge, edge_of
from vpnrouter.topology.trouble.losses import DUPLICATE, LOOP_DETECTED

_MARGIN: Final = 1.1
"""Counts of one cause by two ways of counting may differ by this factor: a message in flight when tracing
began or ended is in one of them only.
"""

_RETURNED: Final = 10_000
"""Messages that may come once more after a link broke: those that were sent and not acknowledged. No
window is larger (CLIENT_WINDOW).
"""

_AROUND_NS: Final = 60_000_000_000
"""Time, nanoseconds, between a link's end and what comes once more: heartbeats, retries and a restart."""


class Excuses:
    """Why copies came: a loop, which is told as one; a second way, whose copies the VPN discarded; or a
    link that broke with messages under way.
    """

    def __init__(self, back: dict[tuple[str, str], int], losses: Rows, links: Rows) -> None:
        """`back` of `loops.arrivals_back`, `losses` of `losses_by_place`, `links` rows of LINKS."""
        self._back = back
        self._discarded: dict[tuple[str, str], int] = {}
        for row in losses:
            if row["reason"] in {DUPLICATE, LOOP_DETECTED} and row["event"] == "discard":
                place = row["router"], row["vpn"]
                self._discarded[place] = self._discarded.get(place, 0) + row["count"]
        self._downs: dict[Edge, list[int]] = {}
        for row in links:
            if row["down_ns"] is not None:
                self._downs.setdefault(edge_of(row), []).append(row["down_ns"])

    def by_loop(self, router: str, vpn: str, copies: int) -> bool:
        """Did as many messages come around a loop?"""
        return copies <= self._back.get((router, vpn), 0) * _MARGIN

    def by_discards(self, router: str, vpn: str, copies: int) -> bool:
        """Did the VPN discard as many copies, so that nobody noticed them?"""
        place = router, vpn
        return copies <= (self._discarded.get(place, 0) + self._back.get(place, 0)) * _MARGIN

    def by_breaks(self, edge: Edge | None, copies: int, first_ns: int, last_ns: int) -> bool:
        """Did the bridge's link break around that time, often enough?"""
        if edge is None:
            return False
        downs = self._downs.get(edge, [])
        near = [at for at in downs if first_ns - _AROUND_NS <= at <= last_ns + _AROUND_NS]
        return copies <= len(near) * _RETURNED
