"""The mesh as a graph: what hangs together, how well pairs are linked, and what the report says of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from vpnrouter.report import schema
from vpnrouter.report.schema import Rows
from vpnrouter.report.structure.cuts import cuts
from vpnrouter.report.structure.graph import Mesh, components
from vpnrouter.report.structure.structure import pairs, structure


def test_the_largest_is_number_one(random_mesh: Callable[..., Mesh]) -> None:
    """Numbers rise with falling size, and each place has one."""
    mesh = random_mesh(random.Random(3), 60, 40)
    parts = components(mesh)
    sizes = [parts.count(number) for number in range(1, max(parts) + 1)]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(sizes) == 60
    assert all(parts[joint.one] == parts[joint.other] for joint in mesh.joints)


def test_a_bridge_and_the_one_back_are_one_link(edge_rows: Callable[..., Rows]) -> None:
    """Two message VPNs share a connection for both directions, so names do not matter."""
    mesh = Mesh([], edge_rows([(0, 1, 5, "there"), (1, 0, 7, "back")]))
    (joint,) = mesh.joints
    assert (joint.links, joint.messages, joint.rows) == (1, 12, (0, 1))


def test_further_bridges_of_one_direction_are_further_links(
    edge_rows: Callable[..., Rows],
) -> None:
    """Two that lead there and one that leads back are two connections."""
    mesh = Mesh([], edge_rows([(0, 1, 5, "a"), (0, 1, 5, "b"), (1, 0, 7, "a")]))
    assert [joint.links for joint in mesh.joints] == [2]
    assert mesh.arcs() == {(0, 1): [0, 1], (1, 0): [2]}


def test_rows_that_join_nothing(edge_rows: Callable[..., Rows]) -> None:
    """A bridge to itself, and one whose other end is not known, are no joints, but keep their row."""
    rows = edge_rows([(0, 0, 1, "self"), (0, 1, 1, "half")])
    rows[1]["from_router"] = None
    mesh = Mesh([{"router": "alone", "vpn": "v"}], rows)
    assert mesh.joints == []
    assert mesh.ends == [(1, 1), None]
    assert [mesh.name(place) for place in range(3)] == ["alone/v", "r00000/v", "r00001/v"]


def test_networkx_has_the_same(edge_rows: Callable[..., Rows]) -> None:
    """Both views have every place and what lies between them."""
    mesh = Mesh([], edge_rows([(0, 1, 5, "a"), (1, 0, 2, "a"), (1, 2, 7, "a")]))
    assert mesh.undirected().edges[0, 1] == {"links": 1, "messages": 7}
    assert sorted(mesh.directed().edges) == [(0, 1), (1, 0), (1, 2)]
    assert mesh.joints[0].beyond(1) == 0


def of(mesh: Mesh, **more: Any) -> list[tuple[Any, ...]]:
    """Pairs of a mesh as (router, other router, links, hops, widest)."""
    rows = pairs(mesh, cuts(mesh), components(mesh), **more)
    names = ("router", "other_router", "links", "hops", "widest")
    return [tuple(row[name] for name in names) for row in rows]


SQUARE = [(0, 1, 9, "b"), (1, 2, 4, "b"), (2, 3, 6, "b"), (3, 0, 8, "b"), (3, 4, 5, "b")]


def test_the_weakest_first(edge_rows: Callable[..., Rows]) -> None:
    """A square with a tail: who hangs on one link comes first, the farthest of these before others."""
    found = of(Mesh([], edge_rows([*SQUARE, (8, 9, 1, "b")])))
    assert found[:4] == [
        ("r00001", "r00004", 1, 3, 5),
        ("r00000", "r00004", 1, 2, 5),
        ("r00002", "r00004", 1, 2, 5),
        ("r00003", "r00004", 1, 1, 5),
    ]
    assert ("r00000", "r00002", 2, 2, 6) in found
    assert ("r00008", "r00009", 1, 1, 1) in found
    assert len(found) == 11


def test_those_with_traffic_come_first(edge_rows: Callable[..., Rows]) -> None:
    """Both directions count together; pairs apart, and within one place, are passed over."""
    mesh = Mesh([], edge_rows(SQUARE))
    names = ("origin_router", "origin_vpn", "router", "vpn", "messages")
    traffic = [
        dict(zip(names, (one, "v", other, "v", messages), strict=True))
        for one, other, messages in [
            ("r00000", "r00002", 3),
            ("r00002", "r00000", 4),
            ("r00001", "r00000", 6),
            ("r00001", "r00001", 99),
            ("r00001", "gone", 99),
        ]
    ]
    found = of(mesh, traffic=traffic, most=3)
    assert [row[:2] for row in found[:2]] == [("r00000", "r00002"), ("r00000", "r00001")]
    assert len(found) == 3


def test_no_time_left(random_mesh: Callable[..., Mesh]) -> None:
    """What the search had no time for is null, and how wide the way is comes all the same."""
    found = of(random_mesh(random.Random(4), 30, 200), most_steps=9_000)
    assert found[0][2] is not None
    assert {row[2:4] for row in found[-5:]} == {(None, None)}
    assert all(row[4] is not None for row in found)


def test_a_hub_with_a_ring(edge_rows: Callable[..., Rows], node_rows: Callable[..., Rows]) -> None:
    """A ring of three, a leaf on it by a bridge each way, and one that nothing leads to."""
    rows = edge_rows(
        [(0, 1, 9, "b"), (1, 2, 9, "b"), (2, 0, 9, "b"), (2, 3, 30, "out"), (3, 2, 12, "back")]
    )
    found = structure(node_rows(5), rows)
    assert [list(row) for row in (found.vpns[0], found.pairs[0])] == [
        schema.VPNS.names,
        schema.PAIRS.names,
    ]
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
