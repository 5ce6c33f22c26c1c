"""What falls apart when one place or link goes, and which further links help most."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations

import networkx as nx
import pytest

from vpnrouter.limits import REPORT_PAIR_LINKS
from vpnrouter.report.schema import Rows
from vpnrouter.report.structure.cuts import OutOfSteps, SecondWay, Steps, Ways, cuts, second_ways
from vpnrouter.report.structure.graph import Mesh, components


def largest(graph: nx.Graph[int], part: set[int]) -> int:
    """Size of the largest part that `part` of a graph falls into."""
    return max(len(one) for one in nx.connected_components(graph.subgraph(part)))


@pytest.mark.parametrize("seed", range(40))
def test_what_falls_apart(random_mesh: Callable[..., Mesh], seed: int) -> None:
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


def test_a_long_chain(edge_rows: Callable[..., Rows]) -> None:
    """Twenty thousand in a row: no recursion, and linear time."""
    mesh = Mesh([], edge_rows([(at, at + 1, 1, "b") for at in range(20_000)]))
    found = cuts(mesh)
    assert len(found.joints) == 20_000
    assert max(parting.places for parting in found.places.values()) == 10_000


@pytest.mark.parametrize("seed", range(12))
def test_hops_and_links(random_mesh: Callable[..., Mesh], seed: int) -> None:
    """Shortest ways and least cuts as networkx finds them, links side by side counted."""
    mesh = random_mesh(random.Random(seed), 10, 10 + 4 * seed)
    graph = mesh.undirected()
    for one, other in combinations(range(10), 2):
        way = Ways(mesh, Steps(100_000)).shortest(one, other)
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
        assert Ways(mesh, Steps(100_000)).links(one, other, way) == counted, f"seed {seed}"


def test_steps_run_out(random_mesh: Callable[..., Mesh]) -> None:
    """A search that may not look further says so."""
    mesh = random_mesh(random.Random(2), 40, 80)
    with pytest.raises(OutOfSteps):
        Ways(mesh, Steps(1)).shortest(0, 39)


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
