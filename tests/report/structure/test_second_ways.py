import random
from collections.abc import Callable
from itertools import combinations
from typing import Any

import networkx as nx
import pytest

from vpnrouter.report.structure.cuts import SecondWay, cuts, second_ways
from vpnrouter.report.structure.graph import Mesh, components

Rows = list[dict[str, Any]]


def of(mesh: Mesh, most: int = 3) -> list[SecondWay]:
    """The links to add to a mesh."""
    return second_ways(mesh, cuts(mesh), components(mesh), most)


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
def test_pairs_that_get_a_second_way(random_mesh: Callable[..., Mesh], seed: int) -> None:
    """As many pairs as it says, and as many again with the next link."""
    mesh = random_mesh(random.Random(seed), 16, 18)
    ways = [way for way in of(mesh, 1) if way.past is None]
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


def test_a_chain_becomes_a_ring(edge_rows: Callable[..., Rows]) -> None:
    """One link from end to end helps everybody, and nothing is left to propose."""
    mesh = Mesh([], edge_rows([(at, at + 1, 10, "b") for at in range(5)]))
    (way,) = of(mesh)
    assert {way.one[0], way.other[0]} == {"r00000", "r00005"}
    assert (way.pairs, way.messages, way.rows) == (15, 50, (0, 1, 2, 3, 4))
    assert not way.beside


def test_two_message_vpns(edge_rows: Callable[..., Rows]) -> None:
    """All that can be had is a second link beside the first."""
    (way,) = of(Mesh([], edge_rows([(0, 1, 3, "b")])))
    assert (way.pairs, way.beside) == (1, True)


def test_around_an_articulation_point(edge_rows: Callable[..., Rows]) -> None:
    """Two rings that meet in one place: a link from ring to ring leads around it."""
    arcs = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 2)]
    mesh = Mesh([], edge_rows([(start, goal, 10, "b") for start, goal in arcs]))
    (way,) = of(mesh)
    assert way.past == ("r00002", "v")
    assert way.one[0] in {"r00000", "r00001"}
    assert way.other[0] in {"r00003", "r00005"}
    assert (way.pairs, way.messages) == (6, 20)


def test_the_second_link_counts_on_the_first(edge_rows: Callable[..., Rows]) -> None:
    """A star of six: three links pair the leaves up."""
    mesh = Mesh([], edge_rows([(0, leaf, leaf, "b") for leaf in range(1, 7)]))
    ways = of(mesh)
    ends = [place for way in ways for place in (way.one, way.other)]
    assert len(set(ends)) == 6
    assert sum(way.pairs for way in ways) == apart(mesh)
    links = [(mesh.numbers[way.one], mesh.numbers[way.other]) for way in ways]
    assert apart(mesh, *links) == 0
