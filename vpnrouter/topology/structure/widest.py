"""The widest ways: those whose narrowest step was crossed by the most messages.

A maximum spanning tree holds a widest way between any two places. Built by joining parts (Kruskal), the smaller
one under the root of the larger, the tree of joinings is at most log2(places) deep, and the step at which two
places first came together is the narrowest of their widest way.
"""

from typing import Final, final

from vpnrouter.topology.structure.graph import Mesh


@final
class Widest:
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
        """Messages over the narrowest step of the widest way; None when there is no way."""
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
