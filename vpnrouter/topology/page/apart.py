"""Pushes boxes apart until none lies on another."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from vpnrouter.topology.page.springs import Spots

Numbers = NDArray[np.intp]
"""Shape (n,): places of boxes in their list."""

_ROUNDS: Final = 300
_PATIENCE: Final = 20
"""Rounds after which what is still crowded gets more room."""

_GROWTH: Final = 1.06


def apart(at: Spots, extent: Spots) -> Spots:
    """Centres near `at`, shape (n, 2), at which boxes of size `extent`, shape (n, 2), do not overlap.

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


def _clashes(at: Spots, extent: Spots) -> tuple[Numbers, Numbers, Spots]:
    """Pairs of boxes that overlap by more than half a pixel, and by how much on each axis.

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


def _drawn_out(at: Spots, extent: Spots) -> Spots:
    """The same picture, larger: a last resort that always ends, because equal places are told apart."""
    at += np.arange(len(at))[:, None] * 1e-3
    while len(_clashes(at, extent)[0]) > 0:
        at *= 1.15
    return at
