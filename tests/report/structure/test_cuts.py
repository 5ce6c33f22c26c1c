import random
from collections.abc import Callable
from typing import Any

import networkx as nx
import pytest

from vpnrouter.report.structure.cuts import cuts
from vpnrouter.report.structure.graph import Mesh

Rows = list[dict[str, Any]]


def largest(graph: "nx.Graph[int]", part: set[int]) -> int:
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
