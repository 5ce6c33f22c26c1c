"""Where a row of any table is in the drawing: which message VPN, which bridge."""

from typing import Any, Final

from vpnrouter.topology.page.contents import Rows
from vpnrouter.topology.page.figures import visible

Row = dict[str, Any]
_ENDS: Final = ("from_router", "from_vpn", "to_router", "to_vpn")


class Places:
    """Finds nodes and edges by name; `drawn_nodes` and `drawn_edges` are those with a shape."""

    def __init__(self, nodes: Rows, edges: Rows) -> None:
        self._nodes = {(row["router"], row["vpn"]): at for at, row in enumerate(nodes)}
        self._first_of_router: dict[str, int] = {}
        for at, row in enumerate(nodes):
            self._first_of_router.setdefault(row["router"], at)
        self._edges: dict[tuple[Any, ...], int] = {}
        self._ends: dict[tuple[Any, ...], list[int]] = {}
        for at, row in enumerate(edges):
            ends = tuple(row[name] for name in _ENDS)
            self._edges[*ends, row["bridge"]] = at
            self._ends.setdefault(ends, []).append(at)
        self.drawn_nodes: frozenset[int] = frozenset(range(len(nodes)))
        self.drawn_edges: frozenset[int] = frozenset(range(len(edges)))

    def edge(self, row: Row) -> int | None:
        """The edge that a row with the columns of an edge is about."""
        return self._edges.get((*(row[name] for name in _ENDS), row["bridge"]))

    def edges_of(self, row: Row) -> list[int]:
        """The edges that a row with a place and its peer is about; more than one where it names no
        bridge.
        """
        ends = (row["peer_router"], row["peer_vpn"], row["router"], row["vpn"])
        if row["bridge"] is None:
            return self._ends.get(ends, [])
        at = self._edges.get((*ends, row["bridge"]))
        return [] if at is None else [at]

    def node(self, router: str | None, vpn: str | None) -> int | None:
        """The message VPN of this name; the first of its router where the row names none."""
        if router is None:
            return None
        return self._first_of_router.get(router) if vpn is None else self._nodes.get((router, vpn))

    def shape(self, row: Row) -> str | None:
        """Id of the shape that a row with a place, and perhaps a peer, is about: its bridge, else its
        message VPN.
        """
        for at in self.edges_of(row):
            if at in self.drawn_edges:
                return f"edge-{at}"
        at_node = self.node(row["router"], row["vpn"])
        return f"node-{at_node}" if at_node in self.drawn_nodes else None


def name_of(router: str | None, vpn: str | None) -> str:
    """A message VPN's name, "router/vpn"; the router's alone where there is no VPN."""
    return visible(router) if vpn is None else f"{visible(router)}/{visible(vpn)}"


def place_of(row: Row) -> str:
    """Where a finding, an advice or a change is, in words: "bridge name, from → to" or "router/vpn"."""
    here = name_of(row["router"], row["vpn"]) if row["router"] is not None else ""
    if row["peer_router"] is not None:
        here = f"{name_of(row['peer_router'], row['peer_vpn'])} → {here}"
    if row["bridge"] is not None:
        here = f"{visible(row['bridge'])}: {here}" if here else visible(row["bridge"])
    return here


def title_of(edge: Row) -> str:
    """A bridge's name and ends."""
    name = visible(edge["bridge"]) if edge["bridge"] else "bridge"
    start = name_of(edge["from_router"], edge["from_vpn"])
    return f"{name}: {start} → {name_of(edge['to_router'], edge['to_vpn'])}"


def came_back(edge: Row) -> bool:
    """Whether a bridge's link broke and was made again. Every link goes down when a router stops."""
    return (edge["link_downs"] or 0) > 0 and (edge["link_ups"] or 0) > 1
