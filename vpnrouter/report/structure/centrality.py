"""Computes the share of shortest paths over each message VPN and bridge (betweenness), and the widest paths.

The narrowest step of a widest path was crossed by the most messages. A maximum spanning tree holds a widest path
between any two places. Built by joining parts (Kruskal), the smaller one under the root of the larger, the tree of
joinings is at most log2(places) deep, and the step that joined two places is the narrowest of their widest path.

Shortest paths follow bridges in their direction. Several starts are followed at once, level by level, in numpy: a start
takes a few milliseconds in a mesh of 50,000 bridges. Small meshes are counted in full, large ones from a sample of
starts, which is the same for equal data.
"""

from __future__ import annotations

from typing import Final, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from vpnrouter.limits import REPORT_CENTRALITY_STEPS
from vpnrouter.report.structure.graph import Mesh


@final
class WidestPaths:
    """Answers how wide the widest way between two places is."""

    __slots__ = ("_above", "_joined", "_width")

    def __init__(self, mesh: Mesh) -> None:
        count = len(mesh.places)
        self._above: Final = list(range(count))
        self._joined: Final = [len(mesh.joints) + 1] * count
        self._width: Final = [0] * count
        size = [1] * count
        ordered = sorted(mesh.joints, key=lambda joint: (-joint.messages, joint.one, joint.other))
        for turn, joint in enumerate(ordered):
            one, other = self._root(joint.one), self._root(joint.other)
            if one == other:
                continue
            if size[one] > size[other]:
                one, other = other, one
            self._above[one], self._joined[one], self._width[one] = other, turn, joint.messages
            size[other] += size[one]

    def _root(self, place: int) -> int:
        while self._above[place] != place:
            place = self._above[place]
        return place

    def between(self, one: int, other: int) -> int | None:
        """Return messages over the narrowest step of the widest way; None when there is no way."""
        width: int | None = None
        while one != other:
            # The one that was joined earlier has its way up within what the other has yet to join.
            if self._joined[one] > self._joined[other]:
                one, other = other, one
            if self._above[one] == one:
                return None
            width = self._width[one] if width is None else min(width, self._width[one])
            one = self._above[one]
        return width


_SEED: Final = 11
_TOGETHER: Final = 2_000_000
"""Starts times arcs that are followed at once: bounds the memory, about 30 bytes each."""

_A_LEVEL: Final = 1_000
"""Steps that take as long as beginning a level does: what makes long chains slow."""

_LARGE: Final = 1e150
"""Counts of ways beyond are scaled down; only their ratios within a level matter."""

Numbers = NDArray[np.int64]
Figures = NDArray[np.float64]


class Centrality(NamedTuple):
    """Shares from 0.0 to 1.0 of the shortest ways between message VPNs: that lead on through each place (not
    those that begin or end there), and over each row of EDGES (bridges side by side share evenly). `starts`
    is how many places the ways were followed from.
    """

    places: list[float]
    rows: list[float]
    starts: int


def centrality(mesh: Mesh, most_steps: int = REPORT_CENTRALITY_STEPS) -> Centrality:
    """Compute exactly while places times arcs are at most `most_steps`, else from as many starts as that allows."""
    arcs = mesh.arcs()
    count = len(mesh.places)
    rows = [0.0] * len(mesh.ends)
    if not arcs:
        return Centrality([0.0] * count, rows, 0)
    # Where nothing leaves, no way begins; with many leaves this spares most of the work.
    begins = np.unique(np.array([start for start, _ in arcs], dtype=np.int64))
    a_start = count + len(arcs)
    allowed = max(1, most_steps // a_start)
    sampled = len(begins) > allowed
    if sampled:
        begins = np.random.default_rng(_SEED).choice(begins, allowed, replace=False)
    followed = _PathCounts(count, sorted(arcs))
    together = max(1, _TOGETHER // a_start)
    starts = 0
    for first in range(0, len(begins), together):
        if sampled and starts * a_start + followed.levels * _A_LEVEL > most_steps:
            break
        followed.follow(begins[first : first + together])
        starts = min(first + together, len(begins))
    pairs = max(1, followed.reached)
    over = followed.over / pairs
    for number, arc in enumerate(sorted(arcs)):
        for row in arcs[arc]:
            rows[row] = float(over[number]) / len(arcs[arc])
    return Centrality((followed.through / pairs).tolist(), rows, starts)


@final
class _PathCounts:
    """Sums over all starts so far: ways `through` places and `over` arcs, places `reached`, `levels`
    gone through.
    """

    def __init__(self, count: int, arcs: list[tuple[int, int]]) -> None:
        self.count = count
        starts = np.array([start for start, _ in arcs], dtype=np.int64)
        self.goals = np.array([goal for _, goal in arcs], dtype=np.int64)
        self.first = np.searchsorted(starts, np.arange(count + 1)).astype(np.int64)
        self.through: Figures = np.zeros(count)
        self.over: Figures = np.zeros(len(arcs))
        self.reached = 0
        self.levels = 0

    def follow(self, begins: Numbers) -> None:
        """Add the ways from these places. A start and a place are one number: start * count + place."""
        ways = np.zeros(len(begins) * self.count)
        visited = np.zeros(len(ways), dtype=np.bool_)
        slot = np.empty(len(ways), dtype=np.int64)
        here = np.arange(len(begins), dtype=np.int64) * self.count + begins
        roots = here
        ways[here] = 1.0
        visited[here] = True
        levels: list[tuple[Numbers, Numbers, Numbers, Figures]] = []
        while len(here):
            source, arc, goal = self._step(here)
            fresh = ~visited[goal]
            source, arc, goal = source[fresh], arc[fresh], goal[fresh]
            np.add.at(ways, goal, ways[source])
            levels.append((source, arc, goal, ways[source] / ways[goal]))
            slot[goal] = np.arange(len(goal))
            here = goal[slot[goal] == np.arange(len(goal))]
            visited[here] = True
            self.reached += len(here)
            self.levels += 1
            if len(here) and ways[here].max() > _LARGE:
                ways[here] /= _LARGE
        behind = np.zeros(len(ways))
        for source, arc, goal, share in reversed(levels):
            led = share * (1.0 + behind[goal])
            np.add.at(self.over, arc, led)
            np.add.at(behind, source, led)
        behind[roots] = 0.0
        self.through += behind.reshape(len(begins), self.count).sum(axis=0)

    def _step(self, here: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Return all arcs that leave from `here`, each with its begin and its end."""
        place = here % self.count
        many = self.first[place + 1] - self.first[place]
        ahead = np.cumsum(many) - many
        arc = (
            np.arange(int(many.sum())) - np.repeat(ahead, many) + np.repeat(self.first[place], many)
        )
        source = np.repeat(here, many)
        return source, arc, source - source % self.count + self.goals[arc]
