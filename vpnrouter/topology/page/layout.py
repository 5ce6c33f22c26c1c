"""Where the routers stand in the drawing: boxes that do not overlap, neighbours near each other."""

import math
from collections.abc import Iterable, Mapping
from typing import Final

import networkx as nx
import numpy as np
from numpy.typing import NDArray

Point = tuple[float, float]
Spots = NDArray[np.float64]
"""Shape (n, 2)."""

_SEED: Final = 7
"""Equal data gives an equal drawing."""

_GAP_X: Final = 190.0
"""Pixels between boxes side by side: room for an arrow and its label."""

_GAP_Y: Final = 70.0
_SPRING_MOST: Final = 499
"""Beyond, networkx's spring layout wants scipy; ForceAtlas2 does without."""

_STRETCH: Final = (1.15, 0.62)
"""Distances between boxes against the square that would hold them: more across, where arrows and
labels run.
"""

_PUSHES: Final = 200


def place(
    sizes: Mapping[str, tuple[float, float]], links: Iterable[tuple[str, str, float]]
) -> dict[str, Point]:
    """The centre of each box.

    `sizes` gives each box its width and height in pixels; `links` are (from, to, weight above 0).
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
    shelf_width = _shelf_width(sizes)
    for part in parts:
        spots = _part(graph.subgraph(part), part, sizes, directed)
        left = min(spots[n][0] - sizes[n][0] / 2 for n in part)
        top = min(spots[n][1] - sizes[n][1] / 2 for n in part)
        width = max(spots[n][0] + sizes[n][0] / 2 for n in part) - left
        height = max(spots[n][1] + sizes[n][1] / 2 for n in part) - top
        if shelf_x > 0 and shelf_x + width > shelf_width:
            shelf_x, shelf_y, shelf_height = 0.0, shelf_y + shelf_height + _GAP_Y, 0.0
        for name in part:
            placed[name] = (spots[name][0] - left + shelf_x, spots[name][1] - top + shelf_y)
        shelf_x += width + _GAP_X / 2
        shelf_height = max(shelf_height, height)
    return placed


def _shelf_width(sizes: Mapping[str, tuple[float, float]]) -> float:
    area = sum((width + _GAP_X) * (height + _GAP_Y) for width, height in sizes.values())
    return max(math.sqrt(area * 2.2), 900.0)


def _part(
    graph: nx.Graph,
    names: list[str],
    sizes: Mapping[str, tuple[float, float]],
    directed: list[tuple[str, str, float]],
) -> dict[str, Point]:
    if len(names) == 1:
        return {names[0]: (0.0, 0.0)}
    if len(names) <= _SPRING_MOST:
        start = nx.circular_layout(graph)
        spots = nx.spring_layout(graph, pos=start, seed=_SEED, iterations=200)
    else:
        spots = nx.forceatlas2_layout(graph, seed=_SEED, max_iter=60)
    at = np.array([spots[name] for name in names], dtype=float)
    at -= at.mean(axis=0)
    at = _widest_way_across(at)
    index = {name: i for i, name in enumerate(names)}
    rightward = sum(
        weight * (at[index[other], 0] - at[index[one], 0])
        for one, other, weight in directed
        if one in index and other in index
    )
    if rightward < 0:
        at[:, 0] *= -1
    extent = np.array([sizes[name] for name in names], dtype=float)
    extent += np.array([_GAP_X, _GAP_Y])
    spread = np.maximum(np.ptp(at, axis=0), 1e-9)
    room = math.sqrt(float((extent[:, 0] * extent[:, 1]).sum()))
    at = _apart(at * (room / spread.max() * np.array(_STRETCH)), extent)
    return {name: (float(at[i, 0]), float(at[i, 1])) for i, name in enumerate(names)}


def _widest_way_across(at: Spots) -> Spots:
    """Turn the points so that their greatest spread is horizontal."""
    _, axes = np.linalg.eigh(np.cov(at.T))
    turned: Spots = at @ axes[:, ::-1]
    return turned


def _apart(at: Spots, extent: Spots) -> Spots:
    """Push overlapping boxes apart, each time along the axis where less is missing."""
    half = extent / 2
    order = np.arange(len(at))
    for _ in range(_PUSHES):
        difference = at[:, None, :] - at[None, :, :]
        overlap = half[:, None, :] + half[None, :, :] - np.abs(difference)
        clash = (overlap[..., 0] > 0.5) & (overlap[..., 1] > 0.5)
        np.fill_diagonal(clash, val=False)
        if not clash.any():
            break
        sideways = overlap[..., 0] <= overlap[..., 1]
        # Boxes on the very same spot part in order of name.
        tie = np.sign(order[:, None] - order[None, :]).astype(float)
        for axis, chosen in ((0, sideways), (1, ~sideways)):
            direction = np.sign(difference[..., axis])
            direction = np.where(direction == 0, tie, direction)
            push = np.where(clash & chosen, overlap[..., axis] * direction * 0.5, 0.0)
            many = np.maximum((clash & chosen).sum(axis=1), 1)
            at[:, axis] += push.sum(axis=1) / np.sqrt(many)
    return at
