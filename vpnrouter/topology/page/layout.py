"""Where the routers stand in the drawing: boxes that do not overlap, neighbours near each other."""

import math
from collections.abc import Iterable, Mapping
from typing import Final

import networkx as nx
import numpy as np

from vpnrouter.topology.page.apart import apart
from vpnrouter.topology.page.springs import Spots, spread

Point = tuple[float, float]

ROOMY: Final = (190.0, 70.0)
"""Pixels between boxes side by side, and one above the other: room for an arrow and its label."""

_STRETCH: Final = (1.1, 0.72)
"""Distances between boxes against the square that would hold them: more across, where arrows and
labels run.
"""


def place(
    sizes: Mapping[str, tuple[float, float]],
    links: Iterable[tuple[str, str, float]],
    gaps: tuple[float, float] = ROOMY,
) -> dict[str, Point]:
    """The centre of each box.

    `sizes` gives each box its width and height in pixels; `links` are (from, to, weight above 0);
    `gaps` are the pixels between boxes, across and down.
    The drawing is wider than high, as screens and paper are, and most of the weight goes from left
    to right.
    """
    names = sorted(sizes)
    if not names:
        return {}
    directed = [(one, other, weight) for one, other, weight in links if one != other]
    graph = nx.Graph()
    graph.add_nodes_from(names)
    graph.add_edges_from((one, other) for one, other, _ in directed)
    if len(names) == 1:
        return {names[0]: (0.0, 0.0)}
    # Each part by itself, then side by side: springs would drive parts that share no link far
    # apart.
    parts = sorted(
        (sorted(part) for part in nx.connected_components(graph)), key=lambda p: (-len(p), p)
    )
    placed: dict[str, Point] = {}
    shelf_x = shelf_y = shelf_height = 0.0
    shelf_width = _shelf_width(sizes, gaps)
    for part in parts:
        spots = _part(graph.subgraph(part), part, sizes, directed, gaps)
        left = min(spots[n][0] - sizes[n][0] / 2 for n in part)
        top = min(spots[n][1] - sizes[n][1] / 2 for n in part)
        width = max(spots[n][0] + sizes[n][0] / 2 for n in part) - left
        height = max(spots[n][1] + sizes[n][1] / 2 for n in part) - top
        if shelf_x > 0 and shelf_x + width > shelf_width:
            shelf_x, shelf_y, shelf_height = 0.0, shelf_y + shelf_height + gaps[1], 0.0
        for name in part:
            placed[name] = (spots[name][0] - left + shelf_x, spots[name][1] - top + shelf_y)
        shelf_x += width + gaps[0] / 2
        shelf_height = max(shelf_height, height)
    return placed


def _shelf_width(sizes: Mapping[str, tuple[float, float]], gaps: tuple[float, float]) -> float:
    area = sum((width + gaps[0]) * (height + gaps[1]) for width, height in sizes.values())
    return max(math.sqrt(area * 2.2), 900.0)


def _part(
    graph: nx.Graph,
    names: list[str],
    sizes: Mapping[str, tuple[float, float]],
    directed: list[tuple[str, str, float]],
    gaps: tuple[float, float],
) -> dict[str, Point]:
    if len(names) == 1:
        return {names[0]: (0.0, 0.0)}
    index = {name: i for i, name in enumerate(names)}
    at = spread(len(names), [(index[one], index[other]) for one, other in graph.edges()])
    at -= at.mean(axis=0)
    at = _widest_way_across(at)
    rightward = sum(
        weight * (at[index[other], 0] - at[index[one], 0])
        for one, other, weight in directed
        if one in index and other in index
    )
    if rightward < 0:
        at[:, 0] *= -1
    extent = np.array([sizes[name] for name in names], dtype=float)
    extent += np.array(gaps)
    wide = np.maximum(np.ptp(at, axis=0), 1e-9)
    room = math.sqrt(float((extent[:, 0] * extent[:, 1]).sum()))
    at = apart(at * (room / wide.max() * np.array(_STRETCH)), extent)
    return {name: (float(at[i, 0]), float(at[i, 1])) for i, name in enumerate(names)}


def _widest_way_across(at: Spots) -> Spots:
    """Turn the points so that their greatest spread is horizontal."""
    _, axes = np.linalg.eigh(np.cov(at.T))
    turned: Spots = at @ axes[:, ::-1]
    return turned
