"""Places the names of bridges in the drawing: beside their arrows, and on no other text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from vpnrouter.topology.page.curves import beside, on_curve
from vpnrouter.topology.page.labels import LETTER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from vpnrouter.topology.page.curves import Curve

SIZE: Final = 12.0
"""Font size in pixels, as in drawing.css."""

_HALO: Final = 3.0
"""Pixels around the letters that are painted over what lies below."""

_STEPS: Final = (
    0.0, 0.06, -0.06, 0.12, -0.12, 0.18, -0.18, 0.24, -0.24, 0.3, -0.3, 0.36, -0.36, 0.44, -0.44
)  # fmt: skip
"""Shifts along the arrow that are tried for a name, the smallest first, as shares of its length."""

_NEAREST: Final = 0.08
"""Share of an arrow at each end that its name keeps off: there is the card, or the head."""

_FARTHER: Final = (0.0, 14.0, 28.0, 44.0, 62.0, 82.0)
"""Additional distances in pixels from the arrow that are tried for a name."""

_SAMPLES: Final = 32
"""Points of a curve that are checked."""

_BOX_WEIGHT: Final = 8
"""A router's frame under a name counts as so many points of arrows."""


class Block(NamedTuple):
    """A rectangle of the drawing, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Block) -> bool:
        """Whether the two have a part in common."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def inside(self, other: Block) -> bool:
        """Whether all of it is in `other`."""
        return (
            self.left >= other.left
            and self.right <= other.right
            and self.top >= other.top
            and self.bottom <= other.bottom
        )


class Spot(NamedTuple):
    """Where a text stands: the foot of its letters, and its SVG anchor."""

    x: float
    y: float
    anchor: str


class Name(NamedTuple):
    """A name to stand beside `curve` at `middle` (0 to 1), `distance` pixels away, and beside a `bow` on its right."""

    text: str
    curve: Curve
    middle: float
    distance: float
    bow: bool


def block_of(text: str, place: Spot) -> Block:
    """The block that a text covers, computed with the widest letters that a font is likely to have."""
    width = len(text) * SIZE * LETTER
    left = {"start": place.x, "end": place.x - width}.get(place.anchor, place.x - width / 2)
    return Block(
        left - _HALO,
        place.y - SIZE * 0.9 - _HALO,
        left + width + _HALO,
        place.y + SIZE * 0.3 + _HALO,
    )


def lettered(
    names: Sequence[Name],
    taken: Iterable[Block],
    frames: Sequence[Block],
    marks: Sequence[Block],
    sheet: Block,
) -> list[Spot | None]:
    """A place for each name, None where there is none. Earlier names have the first choice.

    No name lies on another, on what is `taken` (cards, names of routers) or on a mark (of its own place in the
    list), nor leaves the `sheet`. Among the other places, the name gets the one with the fewest parts of arrows and
    `frames` of routers under it, and the nearest one among equals.
    """
    blocked = list(taken)
    lines = np.concatenate([np.empty((0, 2)), *(_points(name.curve) for name in names)])
    found: list[Spot | None] = []
    for name in names:
        best: Spot | None = None
        least = -1
        for place in _candidates(name):
            block = block_of(name.text, place)
            if not block.inside(sheet) or any(block.meets(one) for one in (*blocked, *marks)):
                continue
            cost = _under(block, lines) + _BOX_WEIGHT * sum(block.meets(one) for one in frames)
            if best is None or cost < least:
                best, least = place, cost
            if cost == 0:
                break
        if best is not None:
            blocked.append(block_of(name.text, best))
        found.append(best)
    return found


def _candidates(name: Name) -> Iterable[Spot]:
    for farther in _FARTHER:
        for step in _STEPS:
            t = name.middle + step
            if not _NEAREST <= t <= 1 - _NEAREST:
                continue
            yield from _at(name, t, name.distance + farther)


def _at(name: Name, t: float, distance: float) -> Iterable[Spot]:
    """The places on both sides of the arrow at `t`."""
    x, y, anchor = beside(name.curve, t, distance)
    if name.bow:
        # On the inner side of a bow the text would be under the cards.
        yield Spot(max(x, on_curve(name.curve, t)[0] + distance), y, "start")
        return
    yield Spot(x, y, anchor)
    x, y, anchor = beside(name.curve, t, -distance)
    if anchor == "middle":
        yield Spot(x, y + SIZE * 0.8, anchor)
    else:
        yield Spot(x, y, "end" if anchor == "start" else "start")


def _points(curve: Curve) -> NDArray[np.float64]:
    return np.array([on_curve(curve, step / _SAMPLES) for step in range(_SAMPLES + 1)])


def _under(block: Block, points: NDArray[np.float64]) -> int:
    """The number of points within the block."""
    x, y = points[:, 0], points[:, 1]
    inside = (x > block.left) & (x < block.right) & (y > block.top) & (y < block.bottom)
    return int(inside.sum())
