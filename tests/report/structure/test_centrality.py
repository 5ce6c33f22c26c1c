"""Over which message VPNs and bridges the shortest and the widest ways lead."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations

import networkx as nx
import pytest

from vpnrouter.report.schema import Rows
from vpnrouter.report.structure.centrality import Widest, centrality
from vpnrouter.report.structure.graph import Mesh


def reachable(graph: nx.DiGraph[int]) -> int:
    """Ordered pairs with a way between them."""
    return sum(len(nx.descendants(graph, place)) for place in graph)


@pytest.mark.parametrize("seed", range(15))
def test_shares_of_the_shortest_ways(random_mesh: Callable[..., Mesh], seed: int) -> None:
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


def test_a_sample_comes_close(random_mesh: Callable[..., Mesh]) -> None:
    """A part of the starts gives about the same figures, and the same ones each time."""
    mesh = random_mesh(random.Random(1), 150, 600)
    full = centrality(mesh)
    part = centrality(mesh, most_steps=50 * (150 + len(mesh.arcs())))
    assert part.starts == 50 < full.starts
    assert part == centrality(mesh, most_steps=50 * (150 + len(mesh.arcs())))
    worst = max(abs(one - other) for one, other in zip(part.places, full.places, strict=True))
    assert worst < 0.03


def test_more_ways_than_a_float_can_count(edge_rows: Callable[..., Rows]) -> None:
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


def test_no_bridges(node_rows: Callable[[int], Rows]) -> None:
    """Nothing leads anywhere."""
    assert centrality(Mesh(node_rows(3), [])) == ([0.0, 0.0, 0.0], [], 0)


@pytest.mark.parametrize("seed", range(10))
def test_the_narrowest_step_of_the_widest_way(random_mesh: Callable[..., Mesh], seed: int) -> None:
    """The same as dropping narrow joints until the two are apart."""
    mesh = random_mesh(random.Random(seed), 14, 20)
    widest = Widest(mesh)
    for one, other in combinations(range(14), 2):
        expected = None
        for width in sorted({joint.messages for joint in mesh.joints}):
            wide = [joint[:2] for joint in mesh.joints if joint.messages >= width]
            graph: nx.Graph[int] = nx.Graph(wide)
            graph.add_nodes_from(range(14))
            if nx.has_path(graph, one, other):
                expected = width
        assert widest.between(one, other) == expected, f"seed {seed}"
