from collections.abc import Callable
from typing import Any

from vpnrouter.report.structure.graph import Mesh

Rows = list[dict[str, Any]]


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
