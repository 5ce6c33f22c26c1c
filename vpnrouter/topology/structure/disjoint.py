"""How far apart two places are, and how many links have to go before they are apart (Menger 1927).

Links without direction, each used once: ways that share none are found one by one, from both ends at once, each
free to take back what an earlier one uses (Ford and Fulkerson 1956).
"""

from collections.abc import Sequence
from typing import final

from vpnrouter.limits import REPORT_PAIR_LINKS
from vpnrouter.topology.structure.graph import Mesh


class OutOfSteps(Exception):
    """The search has looked at as many joints as it may."""


@final
class Steps:
    """How many joints all searches together may still look at."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, count: int) -> None:
        """Use some.

        Raises:
            OutOfSteps: they are used up.
        """
        self.left -= count
        if self.left < 0:
            raise OutOfSteps


@final
class Ways:
    """Ways between two places. `used`: links of each joint in use, from its one to its other end (negative:
    the other way).
    """

    __slots__ = ("_mesh", "_steps", "used")

    def __init__(self, mesh: Mesh, steps: Steps) -> None:
        self._mesh = mesh
        self._steps = steps
        self.used: dict[int, int] = {}

    def _free(self, joint: int, here: int) -> bool:
        """Whether a link of the joint can be taken from `here`."""
        links, used = self._mesh.joints[joint].links, self.used.get(joint, 0)
        return (used if here == self._mesh.joints[joint].one else -used) < links

    def shortest(self, start: int, goal: int) -> list[int] | None:
        """The joints of a shortest way of what is free, from `start` on; None when there is none.

        Raises:
            OutOfSteps: the search would take too long.
        """
        # From each end: every place reached, and the (place before, joint) that led there.
        neighbours = self._mesh.neighbours
        reached: list[dict[int, tuple[int, int]]] = [{start: (start, -1)}, {goal: (goal, -1)}]
        rims = [[start], [goal]]
        work = [len(neighbours[start]), len(neighbours[goal])]
        while rims[0] and rims[1]:
            side = 0 if work[0] <= work[1] else 1
            self._steps.take(work[side])
            work[side] = 0
            mine, others = reached[side], reached[1 - side]
            rim: list[int] = []
            for here in rims[side]:
                for there, joint in neighbours[here]:
                    if there in mine or not self._free(joint, here if side == 0 else there):
                        continue
                    mine[there] = (here, joint)
                    if there in others:
                        return _traced(reached, there)
                    rim.append(there)
                    work[side] += len(neighbours[there])
            rims[side] = rim
        return None

    def take(self, start: int, way: Sequence[int]) -> None:
        """Use one link of each joint of a way."""
        here = start
        for number in way:
            joint = self._mesh.joints[number]
            self.used[number] = self.used.get(number, 0) + (1 if here == joint.one else -1)
            here = joint.beyond(here)

    def links(self, start: int, goal: int, first: Sequence[int]) -> int:
        """How many links have to go before the two are apart, counted up to REPORT_PAIR_LINKS; `first` is a way
        between them.

        Raises:
            OutOfSteps: the search would take too long.
        """
        most = min(self._degree(start), self._degree(goal), REPORT_PAIR_LINKS)
        found = 0
        way: Sequence[int] | None = first
        while way is not None:
            self.take(start, way)
            found += 1
            # With all links of one end in use, the last search, which finds nothing, can be spared.
            way = self.shortest(start, goal) if found < most else None
        return found

    def _degree(self, place: int) -> int:
        return sum(self._mesh.joints[joint].links for _, joint in self._mesh.neighbours[place])


def _traced(reached: Sequence[dict[int, tuple[int, int]]], middle: int) -> list[int]:
    way: list[int] = []
    before, joint = reached[0][middle]
    while joint >= 0:
        way.append(joint)
        before, joint = reached[0][before]
    way.reverse()
    after, joint = reached[1][middle]
    while joint >= 0:
        way.append(joint)
        after, joint = reached[1][after]
    return way
