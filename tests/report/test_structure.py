"""The mesh as a graph: what hangs together, what falls apart when a place or link goes, and where the ways lead."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import networkx as nx
import pytest

from vpnrouter.limits import REPORT_PAIR_LINKS
from vpnrouter.report import schema
from vpnrouter.report.schema import EDGES, Rows
from vpnrouter.report.structure.centrality import WidestPaths, centrality
from vpnrouter.report.structure.cuts import (
    PathSearch,
    RedundantLink,
    StepBudget,
    StepLimitReached,
    cuts,
    redundant_links,
)
from vpnrouter.report.structure.graph import Mesh, components
from vpnrouter.report.structure.structure import pairs, structure


def edge_rows(arcs: Sequence[tuple[int, int, int, str]]) -> Rows:
    """Makes rows of EDGES from (from, to, messages, bridge) with places by number."""
    return [
        {
            **dict.fromkeys(EDGES.names),
            "from_router": f"r{start:05}",
            "from_vpn": "v",
            "to_router": f"r{goal:05}",
            "to_vpn": "v",
            "bridge": bridge,
            "messages": messages,
            "bytes": messages * 10,
        }
        for start, goal, messages, bridge in arcs
    ]


def node_rows(count: int) -> Rows:
    """Makes rows of NODES for so many places."""
    return [{"router": f"r{number:05}", "vpn": "v"} for number in range(count)]


def random_rows(draw: random.Random, count: int, arcs: int) -> Rows:
    """Bridges at random: some side by side, some back and forth."""
    drawn: dict[tuple[int, int, str], int] = {}
    for _ in range(arcs):
        start, goal = draw.randrange(count), draw.randrange(count)
        if start != goal:
            drawn[start, goal, draw.choice("abc")] = draw.randrange(1_000)
    return edge_rows(
        [(start, goal, crossed, name) for (start, goal, name), crossed in drawn.items()]
    )


def random_mesh(draw: random.Random, count: int, arcs: int) -> Mesh:
    """A mesh of such bridges."""
    return Mesh(node_rows(count), random_rows(draw, count, arcs))


def test_a_bridge_and_the_one_back_are_one_link() -> None:
    """Two message VPNs share a connection for both directions, so names do not matter."""
    mesh = Mesh([], edge_rows([(0, 1, 5, "there"), (1, 0, 7, "back")]))
    (joint,) = mesh.joints
    assert (joint.links, joint.messages, joint.rows) == (1, 12, (0, 1))


def test_further_bridges_of_one_direction_are_further_links() -> None:
    """Two that lead there and one that leads back are two connections."""
    mesh = Mesh([], edge_rows([(0, 1, 5, "a"), (0, 1, 5, "b"), (1, 0, 7, "a")]))
    assert [joint.links for joint in mesh.joints] == [2]
    assert mesh.arcs() == {(0, 1): [0, 1], (1, 0): [2]}


def test_rows_that_join_nothing() -> None:
    """A bridge to itself, and one whose other end is not known, are no joints, but keep their row."""
    rows = edge_rows([(0, 0, 1, "self"), (0, 1, 1, "half")])
    rows[1]["from_router"] = None
    mesh = Mesh([{"router": "alone", "vpn": "v"}], rows)
    assert mesh.joints == []
    assert mesh.ends == [(1, 1), None]
    assert [mesh.name(place) for place in range(3)] == ["alone/v", "r00000/v", "r00001/v"]


def of(mesh: Mesh, **more: Any) -> list[tuple[Any, ...]]:
    """Pairs of a mesh as (router, other router, links, hops, widest)."""
    rows = pairs(mesh, cuts(mesh), components(mesh), **more)
    names = ("router", "other_router", "links", "hops", "widest")
    return [tuple(row[name] for name in names) for row in rows]


SQUARE = [(0, 1, 9, "b"), (1, 2, 4, "b"), (2, 3, 6, "b"), (3, 0, 8, "b"), (3, 4, 5, "b")]


def test_the_weakest_first() -> None:
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


def test_those_with_traffic_come_first() -> None:
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


def test_no_time_left() -> None:
    """What the search had no time for is null, and how wide the way is comes all the same."""
    found = of(random_mesh(random.Random(4), 30, 200), most_steps=9_000)
    assert found[0][2] is not None
    assert {row[2:4] for row in found[-5:]} == {(None, None)}
    assert all(row[4] is not None for row in found)


def test_a_hub_with_a_ring() -> None:
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
    assert [way.pairs for way in found.redundant_links] == [3]


def largest(graph: nx.Graph[int], part: set[int]) -> int:
    """Size of the largest part that `part` of a graph falls into."""
    return max(len(one) for one in nx.connected_components(graph.subgraph(part)))


@pytest.mark.parametrize("seed", range(40))
def test_what_falls_apart(seed: int) -> None:
    """The same as taking each place and each joint away, with networkx to look at what is left."""
    draw = random.Random(seed)
    mesh = random_mesh(draw, draw.randrange(2, 30), draw.randrange(1, 50))
    graph = mesh.undirected()
    found = cuts(mesh)
    assert set(found.places) == set(nx.articulation_points(graph)), f"seed {seed}"
    for place, parting in found.places.items():
        part = nx.node_connected_component(graph, place) - {place}
        assert parting.places == len(part) - largest(graph, part)
        left = graph.subgraph(part)
        assert parting.beside in graph[place]
        assert parting.part[0] in graph[place]
        assert not nx.has_path(left, parting.beside, parting.part[0])
        pieces = [
            (len(piece), sum(graph[place][one]["messages"] for one in piece if one in graph[place]))
            for piece in nx.connected_components(left)
        ]
        kept = [crossed for size, crossed in pieces if size == max(pieces)[0]]
        assert sum(crossed for _, crossed in pieces) - parting.messages in kept
    bridges = {tuple(sorted(one)) for one in nx.bridges(graph) if graph.edges[one]["links"] == 1}
    assert {mesh.joints[one][:2] for one in found.joints} == bridges, f"seed {seed}"
    for number, parting in found.joints.items():
        joint = mesh.joints[number]
        part = nx.node_connected_component(graph, joint.one)
        left = graph.copy()
        left.remove_edge(joint.one, joint.other)
        assert parting.places == len(part) - largest(left, part)
        assert parting.messages == joint.messages
        assert {parting.part[0], parting.beside} == {joint.one, joint.other}
        assert len(parting.part) == len(set(parting.part)) == min(3, parting.places)
        side = nx.node_connected_component(left, parting.part[0])
        assert set(parting.part) <= side
    left = graph.copy()
    left.remove_edges_from(bridges)
    for part in nx.connected_components(left):
        assert {found.blocks[place] for place in part} == {min(part)}


def test_a_long_chain() -> None:
    """Twenty thousand in a row: no recursion, and linear time."""
    mesh = Mesh([], edge_rows([(at, at + 1, 1, "b") for at in range(20_000)]))
    found = cuts(mesh)
    assert len(found.joints) == 20_000
    assert max(parting.places for parting in found.places.values()) == 10_000


@pytest.mark.parametrize("seed", range(12))
def test_hops_and_links(seed: int) -> None:
    """Shortest ways and least cuts as networkx finds them, links side by side counted."""
    mesh = random_mesh(random.Random(seed), 10, 10 + 4 * seed)
    graph = mesh.undirected()
    for one, other in combinations(range(10), 2):
        way = PathSearch(mesh, StepBudget(100_000)).shortest(one, other)
        if way is None:
            assert not nx.has_path(graph, one, other)
            continue
        assert len(way) == nx.shortest_path_length(graph, one, other), f"seed {seed}"
        here = one
        for joint in way:
            here = mesh.joints[joint].beyond(here)
        assert here == other
        expected = nx.maximum_flow_value(graph, one, other, capacity="links")
        counted = min(expected, REPORT_PAIR_LINKS)
        assert PathSearch(mesh, StepBudget(100_000)).links(one, other, way) == counted, (
            f"seed {seed}"
        )


def test_steps_run_out() -> None:
    """A search that may not look further says so."""
    mesh = random_mesh(random.Random(2), 40, 80)
    with pytest.raises(StepLimitReached):
        PathSearch(mesh, StepBudget(1)).shortest(0, 39)


def second_links(mesh: Mesh, most: int = 3) -> list[RedundantLink]:
    """The links to add to a mesh."""
    return redundant_links(mesh, cuts(mesh), components(mesh), most)


def apart(mesh: Mesh, *links: tuple[int, int]) -> int:
    """Pairs that hang together and on one link, with further links."""
    graph = nx.MultiGraph()
    graph.add_nodes_from(range(len(mesh.places)))
    for joint in mesh.joints:
        graph.add_edges_from([joint[:2]] * joint.links)
    graph.add_edges_from(links)
    whole = sum(len(part) * (len(part) - 1) // 2 for part in nx.connected_components(graph))
    graph.remove_edges_from(list(nx.bridges(graph)))
    kept = sum(len(part) * (len(part) - 1) // 2 for part in nx.connected_components(graph))
    return whole - kept


@pytest.mark.parametrize("seed", range(12))
def test_pairs_that_get_a_second_way(seed: int) -> None:
    """As many pairs as it says, and as many again with the next link."""
    mesh = random_mesh(random.Random(seed), 16, 18)
    ways = [way for way in second_links(mesh, 1) if way.past is None]
    before = apart(mesh)
    if before == 0:
        assert ways == []
        return
    (best,) = ways
    link = (mesh.numbers[best.one], mesh.numbers[best.other])
    assert before - apart(mesh, link) == best.pairs, f"seed {seed}"
    parts = components(mesh)
    could = max(
        before - apart(mesh, pair)
        for pair in combinations(range(16), 2)
        if parts[pair[0]] == parts[pair[1]]
    )
    assert best.pairs >= 0.8 * could, f"seed {seed}"


def reachable(graph: nx.DiGraph[int]) -> int:
    """Ordered pairs with a way between them."""
    return sum(len(nx.descendants(graph, place)) for place in graph)


@pytest.mark.parametrize("seed", range(15))
def test_shares_of_the_shortest_ways(seed: int) -> None:
    """Betweenness as networkx counts it, over the pairs that have a way at all."""
    draw = random.Random(seed)
    mesh = random_mesh(draw, draw.randrange(2, 40), draw.randrange(2, 120))
    graph = mesh.directed()
    found = centrality(mesh)
    pairs = max(1, reachable(graph))
    expected = nx.betweenness_centrality(graph, normalized=False)
    assert found.places == pytest.approx([expected[one] / pairs for one in graph]), f"seed {seed}"
    over = nx.edge_betweenness_centrality(graph, normalized=False)
    for arc, rows in mesh.arcs().items():
        for row in rows:
            assert found.rows[row] == pytest.approx(over[arc] / pairs / len(rows))


def test_a_sample_comes_close() -> None:
    """A part of the starts gives about the same figures, and the same ones each time."""
    mesh = random_mesh(random.Random(1), 150, 600)
    full = centrality(mesh)
    part = centrality(mesh, most_steps=50 * (150 + len(mesh.arcs())))
    assert part.starts == 50 < full.starts
    assert part == centrality(mesh, most_steps=50 * (150 + len(mesh.arcs())))
    worst = max(abs(one - other) for one, other in zip(part.places, full.places, strict=True))
    assert worst < 0.03


def test_more_ways_than_a_float_can_count() -> None:
    """A chain of doubled steps has 2**1300 shortest ways; each of two twins still carries half."""
    arcs = []
    for step in range(1_300):
        here = 3 * step
        arcs += [(here, here + 1), (here, here + 2), (here + 1, here + 3), (here + 2, here + 3)]
    mesh = Mesh([], edge_rows([(start, goal, 1, "b") for start, goal in arcs]))
    found = centrality(mesh, most_steps=20 * (3_901 + 5_200))
    assert found.starts == 20
    assert found.places[1] == pytest.approx(found.places[2])
    assert all(0.0 <= share <= 1.0 for share in found.places + found.rows)
    middle = found.places[3 * 650]
    assert middle == pytest.approx(found.places[3 * 650 + 1] * 2, rel=0.02)


@pytest.mark.parametrize("seed", range(10))
def test_the_narrowest_step_of_the_widest_way(seed: int) -> None:
    """The same as dropping narrow joints until the two are apart."""
    mesh = random_mesh(random.Random(seed), 14, 20)
    widest = WidestPaths(mesh)
    for one, other in combinations(range(14), 2):
        expected = None
        for width in sorted({joint.messages for joint in mesh.joints}):
            wide = [joint[:2] for joint in mesh.joints if joint.messages >= width]
            graph: nx.Graph[int] = nx.Graph(wide)
            graph.add_nodes_from(range(14))
            if nx.has_path(graph, one, other):
                expected = width
        assert widest.between(one, other) == expected, f"seed {seed}"
