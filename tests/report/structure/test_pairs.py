import random
from collections.abc import Callable
from typing import Any

from vpnrouter.report.structure.cuts import cuts
from vpnrouter.report.structure.graph import Mesh, components
from vpnrouter.report.structure.structure import pairs

Rows = list[dict[str, Any]]


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
