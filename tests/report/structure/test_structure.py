from collections.abc import Callable
from typing import Any

from vpnrouter.report.schema import PAIRS, VPNS
from vpnrouter.report.structure.structure import structure

Rows = list[dict[str, Any]]


def test_a_hub_with_a_ring(edge_rows: Callable[..., Rows], node_rows: Callable[..., Rows]) -> None:
    """A ring of three, a leaf on it by a bridge each way, and one that nothing leads to."""
    rows = edge_rows(
        [(0, 1, 9, "b"), (1, 2, 9, "b"), (2, 0, 9, "b"), (2, 3, 30, "out"), (3, 2, 12, "back")]
    )
    found = structure(node_rows(5), rows)
    assert [list(row) for row in (found.vpns[0], found.pairs[0])] == [VPNS.names, PAIRS.names]
    by_router = {row["router"]: row for row in found.vpns}
    assert [row["component"] for row in found.vpns] == [1, 1, 1, 1, 2]
    assert [row["articulation"] for row in found.vpns] == [False, False, True, False, False]
    assert (by_router["r00002"]["bridges_in"], by_router["r00002"]["bridges_out"]) == (2, 2)
    merged = found.merged(rows)
    assert [row["cut"] for row in merged] == [False, False, False, True, True]
    assert merged[0]["centrality"] > 0
    articulation, cut = found.findings
    assert (articulation.kind, articulation.router, articulation.messages) == (
        "articulation",
        "r00002",
        42,
    )
    assert articulation.detail == ("its loss cuts off 1 message VPN (r00003/v) from the other 2")
    assert cut.detail == "its loss cuts off 1 message VPN (r00003/v) from the other 3"
    assert (cut.kind, cut.router, cut.peer_router, cut.bridge) == (
        "cut_bridge",
        "r00003",
        "r00002",
        "out",
    )
    assert (cut.messages, cut.bytes, cut.value) == (42, 420, 1.0)
    assert [way.pairs for way in found.second_ways] == [3]


def test_nothing_at_all() -> None:
    """An empty mesh has an empty structure."""
    found = structure([], [])
    assert (found.vpns, found.pairs, found.edges, found.findings) == ([], [], [], [])
