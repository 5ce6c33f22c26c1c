"""Places the routers in the drawing: boxes do not overlap, and linked ones are near each other.

Landmark distances (Brandes and Pich, "Eigensolver methods for progressive multidimensional scaling", 2006) place
thousands of points roughly in linear time. The springs of Fruchterman and Reingold, bounded in rounds, then separate
points that coincide.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import networkx as nx
import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
"""Shape (n, 2)."""

_LANDMARKS: Final = 40
_ROUNDS_MOST: Final = 220
_ROUNDS_LEAST: Final = 16
_WORK: Final = 60_000_000
"""Pairs of points looked at in all rounds together: some five seconds at most."""

_GOLDEN: Final = 2.399963229728653
"""The golden angle: points put at multiples of it never coincide."""


def spread_points(points: int, pairs: Sequence[tuple[int, int]]) -> Points:
    """Return positions of the `points` points of one connected graph, about the unit square; the same each time.

    `pairs` are the links, each of two different points below `points`.
    """
    if points == 1:
        return np.zeros((1, 2))
    beside: list[list[int]] = [[] for _ in range(points)]
    for one, other in sorted({(min(pair), max(pair)) for pair in pairs}):
        beside[one].append(other)
        beside[other].append(one)
    links = np.array([(a, b) for a, near in enumerate(beside) for b in near if a < b]).reshape(
        -1, 2
    )
    at = _landmarks(beside)
    angle = np.arange(points) * _GOLDEN
    radius = 0.03 * np.sqrt((np.arange(points) + 0.5) / points)
    at += np.stack([np.cos(angle) * radius, np.sin(angle) * radius], axis=1)
    return _springs(at, links)


def _landmarks(beside: list[list[int]]) -> Points:
    points = len(beside)
    start = max(range(points), key=lambda at: (len(beside[at]), -at))
    nearest = np.full(points, np.inf)
    columns = []
    for _ in range(min(_LANDMARKS, points)):
        far = _distances(beside, start)
        columns.append(far)
        nearest = np.minimum(nearest, far)
        start = int(np.argmax(nearest))
    squared = np.stack(columns, axis=1) ** 2
    centred = squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean()
    _, axes = np.linalg.eigh(centred.T @ centred)
    at = centred @ axes[:, [-1, -2]] if axes.shape[1] > 1 else np.zeros((points, 2))
    # Which of two mirror images comes out depends on the machine's arithmetic: choose one.
    for axis in (0, 1):
        lead = int(np.argmax(np.abs(at[:, axis])))
        if at[lead, axis] < 0:
            at[:, axis] *= -1
    size = np.maximum(np.ptp(at, axis=0), 1e-9)
    placed: Points = (at - at.min(axis=0)) / size.max()
    return placed


def _distances(beside: list[list[int]], start: int) -> NDArray[np.float64]:
    far = np.full(len(beside), -1.0)
    far[start] = 0.0
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        for there in beside[here]:
            if far[there] < 0:
                far[there] = far[here] + 1
                waiting.append(there)
    return far


def _springs(at: Points, links: NDArray[np.int64]) -> Points:
    points = len(at)
    rounds = int(min(max(_WORK // (points * points), _ROUNDS_LEAST), _ROUNDS_MOST))
    rest = 1.0 / np.sqrt(points)
    heat = 0.12
    for turn in range(rounds):
        moved = _repulsion(at, rest)
        pull = at[links[:, 0]] - at[links[:, 1]]
        pull *= (np.hypot(pull[:, 0], pull[:, 1]) / rest)[:, None]
        np.add.at(moved, links[:, 0], -pull)
        np.add.at(moved, links[:, 1], pull)
        # A weak pull to the middle keeps long tails on the sheet.
        moved -= (at - at.mean(axis=0)) * rest * 2.0
        length = np.maximum(np.hypot(moved[:, 0], moved[:, 1]), 1e-9)
        at = at + moved * (np.minimum(length, heat * (1 - turn / rounds) + 0.002) / length)[:, None]
    return at


def _repulsion(at: Points, rest: float) -> Points:
    """Return the push on each point from all others, by one over the distance."""
    at = at - at.mean(axis=0)
    length = (at**2).sum(axis=1)
    pushed = np.empty_like(at)
    block = max(1, 2_000_000 // len(at))
    for first in range(0, len(at), block):
        mine = at[first : first + block]
        square = length[first : first + block, None] + length[None, :] - 2.0 * (mine @ at.T)
        near = 1.0 / np.maximum(square, 1e-6)
        pushed[first : first + block] = mine * near.sum(axis=1)[:, None] - near @ at
    return pushed * rest**2


Numbers = NDArray[np.intp]
"""Shape (n,): places of boxes in their list."""

_ROUNDS: Final = 300
_PATIENCE: Final = 20
"""Rounds after which what is still crowded gets more room."""

_GROWTH: Final = 1.06


def separate_boxes(at: Points, extent: Points) -> Points:
    """Return centres near `at`, shape (n, 2), at which boxes of size `extent`, shape (n, 2), do not overlap.

    Each round pushes every two that overlap along the axis where less is missing, and now and then
    all get more room; should the rounds not do, all places are drawn out until nothing overlaps.
    """
    at = at.copy()
    for turn in range(1, _ROUNDS + 1):
        one, other, over = _clashes(at, extent)
        if len(one) == 0:
            return at
        difference = at[one] - at[other]
        axis = np.where(over[:, 0] <= over[:, 1], 0, 1)
        picked = np.arange(len(one))
        # Boxes on the very same spot part in order of name.
        side = np.where(
            difference[picked, axis] == 0,
            np.sign(one - other),
            np.sign(difference[picked, axis]),
        )
        push = (over[picked, axis] + 1.0) * side * 0.5
        moved = np.zeros_like(at)
        many = np.zeros_like(at)
        for box, sign in ((one, 1.0), (other, -1.0)):
            np.add.at(moved, (box, axis), push * sign)
            np.add.at(many, (box, axis), 1.0)
        at += moved / np.sqrt(np.maximum(many, 1.0))
        if turn % _PATIENCE == 0:
            at *= _GROWTH
    return _drawn_out(at, extent)


def _clashes(at: Points, extent: Points) -> tuple[Numbers, Numbers, Points]:
    """Return pairs of boxes that overlap by more than half a pixel, and by how much on each axis.

    Boxes are looked at in order of x, each with the next, the one after it, and so on, until no
    two so far apart in the order can meet: n times the boxes in a column, not n times n.
    """
    order = np.argsort(at[:, 0], kind="stable")
    spot, half = at[order], extent[order] / 2
    reach = spot[:, 0] + half[:, 0] + half[:, 0].max()
    ones, others, overs = [], [], []
    for step in range(1, len(at)):
        near = np.nonzero(spot[step:, 0] < reach[:-step])[0]
        if len(near) == 0:
            break
        over = half[near] + half[near + step] - np.abs(spot[near] - spot[near + step])
        hit = (over > 0.5).all(axis=1)
        ones.append(order[near[hit]])
        others.append(order[near[hit] + step])
        overs.append(over[hit])
    if not ones:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.intp), np.empty((0, 2))
    return np.concatenate(ones), np.concatenate(others), np.concatenate(overs)


def _drawn_out(at: Points, extent: Points) -> Points:
    """Enlarge the picture until no boxes overlap, as a last resort.

    This always ends, because equal places are told apart first.
    """
    at += np.arange(len(at))[:, None] * 1e-3
    while len(_clashes(at, extent)[0]) > 0:
        at *= 1.15
    return at


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
    """Return the centre of each box.

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
    at = spread_points(len(names), [(index[one], index[other]) for one, other in graph.edges()])
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
    at = separate_boxes(at * (room / wide.max() * np.array(_STRETCH)), extent)
    return {name: (float(at[i, 0]), float(at[i, 1])) for i, name in enumerate(names)}


def _widest_way_across(at: Points) -> Points:
    """Turn the points so that their greatest spread is horizontal."""
    _, axes = np.linalg.eigh(np.cov(at.T))
    turned: Points = at @ axes[:, ::-1]
    return turned
