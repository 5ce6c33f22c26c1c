"""Bridges as clients: which bridge a client's name stands for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from vpnrouter.topology.subscriptions.patterns import BRIDGE_CLIENT

Rows = list[dict[str, Any]]


@final
@dataclass(frozen=True, order=True)
class Edge:
    """A bridge, from the remote message VPN, where messages come from, to the local one."""

    from_router: str
    from_vpn: str
    to_router: str
    to_vpn: str
    bridge: str

    @property
    def client(self) -> str:
        """The name under which it logs in to the remote router."""
        return f"{BRIDGE_CLIENT}{self.to_router}/{self.to_vpn}/{self.bridge}"


EDGE: Final = ["from_router", "from_vpn", "to_router", "to_vpn", "bridge"]
"""The columns that name an edge."""


def edge_of(row: Mapping[str, Any]) -> Edge:
    """The edge that a row with the columns EDGE is about."""
    return Edge(*(row[name] for name in EDGE))


def by_client(edges: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str, str], Edge]:
    """The edges by remote router, remote message VPN, and name of the client there."""
    known = (edge_of(row) for row in edges)
    return {(edge.from_router, edge.from_vpn, edge.client): edge for edge in known}


def bridge_of(client: str) -> str | None:
    """The bridge that a client's name stands for; None for a client that is none.

    A bridge's name has no "/", what stands before it may.
    """
    if not client.startswith(BRIDGE_CLIENT):
        return None
    return client.rpartition("/")[2]
