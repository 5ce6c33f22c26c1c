"""A graph's points in the plane, linked ones near each other: landmarks for the whole, springs for
the detail.

Landmark distances (Brandes and Pich, "Eigensolver methods for progressive multidimensional scaling",
2006) put thousands of points in their rough places in linear time; Fruchterman's and Reingold's
springs, bounded in rounds, then part what stands on one spot.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Spots = NDArray[np.float64]
"""Shape (n, 2)."""

_LANDMARKS: Final = 40
_ROUNDS_MOST: Final = 220
_ROUNDS_LEAST: Final = 16
_WORK: Final = 60_000_000
"""Pairs of points looked at in all rounds together: some five seconds at most."""

_GOLDEN: Final = 2.399963229728653
"""The golden angle: points put at multiples of it never coincide."""


def spread(points: int, pairs: Sequence[tuple[int, int]]) -> Spots:
    """Places of `points` points of one connected graph, about the unit square; the same each time.

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


def _landmarks(beside: list[list[int]]) -> Spots:
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
    placed: Spots = (at - at.min(axis=0)) / size.max()
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


def _springs(at: Spots, links: NDArray[np.int64]) -> Spots:
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


def _repulsion(at: Spots, rest: float) -> Spots:
    """What pushes each point from all others, by one over the distance."""
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
