"""Meshes drawn at random, as rows of EDGES."""

import random
from collections.abc import Callable, Sequence

import pytest

from vpnrouter.report.schema import EDGES, Rows
from vpnrouter.report.structure.graph import Mesh


@pytest.fixture
def edge_rows() -> Callable[..., Rows]:
    """Makes rows of EDGES from (from, to, messages, bridge) with places by number."""

    def make(arcs: Sequence[tuple[int, int, int, str]]) -> Rows:
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

    return make


@pytest.fixture
def node_rows() -> Callable[[int], Rows]:
    """Makes rows of NODES for so many places."""

    def make(count: int) -> Rows:
        return [{"router": f"r{number:05}", "vpn": "v"} for number in range(count)]

    return make


@pytest.fixture
def random_rows(edge_rows: Callable[..., Rows]) -> Callable[..., Rows]:
    """Bridges at random: some side by side, some back and forth."""

    def make(draw: random.Random, count: int, arcs: int) -> Rows:
        drawn: dict[tuple[int, int, str], int] = {}
        for _ in range(arcs):
            start, goal = draw.randrange(count), draw.randrange(count)
            if start != goal:
                drawn[start, goal, draw.choice("abc")] = draw.randrange(1_000)
        return edge_rows(
            [(start, goal, crossed, name) for (start, goal, name), crossed in drawn.items()]
        )

    return make


@pytest.fixture
def random_mesh(
    random_rows: Callable[..., Rows], node_rows: Callable[[int], Rows]
) -> Callable[..., Mesh]:
    """A mesh of such bridges."""

    def make(draw: random.Random, count: int, arcs: int) -> Mesh:
        return Mesh(node_rows(count), random_rows(draw, count, arcs))

    return make
