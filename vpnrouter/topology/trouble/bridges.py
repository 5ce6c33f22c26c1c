"""Which bridge it was: by what the rows of either end call it."""

from collections.abc import Iterable
from typing import Any, Final

from vpnrouter.topology.tables import Rows

CLIENT: Final = "#bridge/"
"""How the name of a bridge's client begins, in both of its message VPNs."""

Edge = tuple[str, str, str, str, str]
"""A bridge: router and VPN that messages come from, those they come to, name."""


def edge_of(row: dict[str, Any]) -> Edge:
    """The bridge of a row of EDGES or LINKS."""
    return (
        row["from_router"],
        row["from_vpn"],
        row["to_router"],
        row["to_vpn"],
        row["bridge"] or "",
    )


def ends(edge: Edge) -> dict[str, Any]:
    """The fields of a finding about a bridge: its place is the end that attracts."""
    from_router, from_vpn, to_router, to_vpn, bridge = edge
    return {
        "router": to_router,
        "vpn": to_vpn,
        "peer_router": from_router,
        "peer_vpn": from_vpn,
        "bridge": bridge or None,
    }


def named(edge: Edge) -> str:
    """The bridge in a sentence."""
    from_router, from_vpn, to_router, to_vpn, bridge = edge
    return f"bridge {bridge} from {from_router}/{from_vpn} to {to_router}/{to_vpn}"


class Bridges:
    """The bridges of a mesh, found by what trace rows say of them."""

    def __init__(self, edges: Rows) -> None:
        known = [edge_of(row) for row in edges]
        self.rows: dict[Edge, dict[str, Any]] = dict(zip(known, edges, strict=True))
        self._into: dict[tuple[str, str], list[Edge]] = {}
        self._out_of: dict[tuple[str, str], list[Edge]] = {}
        for edge in known:
            self._into.setdefault((edge[2], edge[3]), []).append(edge)
            self._out_of.setdefault((edge[0], edge[1]), []).append(edge)

    def sending(self, router: str, vpn: str, client: str, bridge: str) -> Edge | None:
        """The bridge over which `router`/`vpn` sends to its `client`, or to the bridge of that name."""
        here = self._out_of.get((router, vpn), [])
        if client.startswith(CLIENT):
            logged_in = self._by_login(here, router, vpn, client)
            if logged_in is not None:
                return logged_in
            # The connection that an own bridge made carries messages of the peer's bridge as well.
            own = _only(
                edge for edge in self._into.get((router, vpn), []) if client == f"{CLIENT}{edge[4]}"
            )
            if own is not None:
                return _only(edge for edge in here if edge[2:4] == own[0:2])
        return _only(edge for edge in here if bridge and edge[4] == bridge)

    @staticmethod
    def _by_login(here: Iterable[Edge], router: str, vpn: str, client: str) -> Edge | None:
        for edge in here:
            if client == f"{CLIENT}{edge[2]}/{edge[3]}/{edge[4]}":
                return edge
        peer_router, first, rest = client.removeprefix(CLIENT).partition("/")
        peer_vpn, second, name = rest.rpartition("/")
        return (router, vpn, peer_router, peer_vpn, name) if first and second else None

    def receiving(
        self, router: str, vpn: str, client: str, bridge: str, path: str | None
    ) -> Edge | None:
        """The bridge over which a message came to `router`/`vpn`.

        `client` is who brought it, `bridge` the name that the row gives, `path` where the message had
        been: the VPN visited last is the other end. None where these leave several.
        """
        here = self._into.get((router, vpn), [])
        name = bridge or (client.removeprefix(CLIENT) if client.startswith(CLIENT) else "")
        if name:
            here = [edge for edge in here if edge[4] == name]
        if len(here) > 1 and path:
            last = tuple(path.rpartition(">")[2].partition("/")[::2])
            here = [edge for edge in here if edge[0:2] == last]
        return _only(here)


def _only(edges: Iterable[Edge]) -> Edge | None:
    found = list(edges)
    return found[0] if len(found) == 1 else None
