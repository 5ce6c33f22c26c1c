"""Routes the arrows between cards, places their labels, and decides which names are visible at which zoom."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

import numpy as np

from vpnrouter.report.page.layout import Point

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray


Curve = tuple[Point, Point, Point, Point]
"""A cubic Bézier curve: start, two controls, end."""

Side = Literal["left", "right", "top", "bottom"]

_SIDEWAYS: Final = 60.0
"""Pixels between two cards from which on a line runs from left to right rather than up or down."""

_LEVEL: Final = 0.2
"""Slope, as a part of the length, up to which a text stands above its line."""

_PORTS: Final = 0.68
"""Share of a side's length over which its lines are spread."""

_OUTWARD: Final = {
    "left": (-1.0, 0.0),
    "right": (1.0, 0.0),
    "top": (0.0, -1.0),
    "bottom": (0.0, 1.0),
}


class Rectangle(Protocol):
    """What a line may begin or end at; x and y are the upper left corner."""

    @property
    def x(self) -> float:
        """Left edge."""
        ...

    @property
    def y(self) -> float:
        """Upper edge."""
        ...

    @property
    def width(self) -> float:
        """Pixels across."""
        ...

    @property
    def height(self) -> float:
        """Pixels down."""
        ...


def route(pairs: Sequence[tuple[Rectangle, Rectangle]], bowed: Sequence[bool]) -> list[Curve]:
    """Return a curve for each (start, goal); a bowed one leaves and arrives on the right.

    The lines at one side of a rectangle are put in the order of where they come from, so that they
    do not cross.
    """
    sides: list[tuple[Side, Side]] = [
        ("right", "right") if bow else _facing(start, goal)
        for (start, goal), bow in zip(pairs, bowed, strict=True)
    ]
    # By rectangle and side: (where the other end is, rank among equals, line, which end of it).
    ports: dict[tuple[float, float, Side], list[tuple[float, int, int, int]]] = {}
    for line, (pair, bow) in enumerate(zip(pairs, bowed, strict=True)):
        for end in (0, 1):
            here, there = pair[end], pair[1 - end]
            side = sides[line][end]
            far = _middle(there)[1 if side in {"left", "right"} else 0]
            # Nested bows meet their two rectangles in opposite order, other pairs of lines in the
            # same.
            rank = -line if bow and _middle(there)[1] < _middle(here)[1] else line
            ports.setdefault((here.x, here.y, side), []).append((far, rank, line, end))
    spots: dict[tuple[int, int], Point] = {}
    for (_, _, side), waiting in ports.items():
        waiting.sort()
        for place, (_, _, line, end) in enumerate(waiting):
            offset = ((place + 0.5) / len(waiting) - 0.5) * _PORTS
            spots[line, end] = _port(pairs[line][end], side, offset)
    twins = {(id(start), id(goal)): line for line, (start, goal) in enumerate(pairs)}
    curves = []
    for line, (start, goal) in enumerate(pairs):
        a, d = spots[line, 0], spots[line, 1]
        if bowed[line]:
            outer = twins.get((id(goal), id(start)), -1) > line
            reach = 46.0 + 0.22 * abs(d[1] - a[1]) + (28.0 if outer else 0.0)
            x = max(a[0], d[0]) + reach
            curves.append((a, (x, a[1]), (x, d[1]), d))
        else:
            curves.append(_between(a, sides[line][0], d, sides[line][1]))
    return curves


def arcs(pairs: Sequence[tuple[Rectangle, Rectangle]]) -> list[Curve]:
    """Return a gentle arc from edge to edge for each (start, goal): for crowds, where routed lines tangle.

    There and back bend to different sides; lines that join the same two lie beside each other.
    """
    curves = []
    twins: dict[tuple[int, int], int] = {}
    for start, goal in pairs:
        key = (id(start), id(goal))
        turn = twins[key] = twins.get(key, 0) + 1
        (ax, ay), (dx, dy) = _middle(start), _middle(goal)
        run = math.hypot(dx - ax, dy - ay)
        if run < 1e-6:
            x = start.x + start.width
            bow = 30.0 + 10.0 * turn
            curves.append(((x, ay - 6), (x + bow, ay - 6), (x + bow, ay + 6), (x, ay + 6)))
            continue
        bend = min(0.10 + 0.07 * (turn - 1), 0.6)
        side_x, side_y = -(dy - ay) * bend, (dx - ax) * bend
        one = (ax + (dx - ax) * 0.3 + side_x, ay + (dy - ay) * 0.3 + side_y)
        two = (ax + (dx - ax) * 0.7 + side_x, ay + (dy - ay) * 0.7 + side_y)
        curves.append((_border(start, one), one, two, _border(goal, two)))
    return curves


def _border(card: Rectangle, towards: Point) -> Point:
    """Return where the way from the middle of `card` to a point leaves it."""
    x, y = _middle(card)
    run_x, run_y = towards[0] - x, towards[1] - y
    scale = max(abs(run_x) / (card.width / 2), abs(run_y) / (card.height / 2), 1e-9)
    return (x + run_x / scale, y + run_y / scale) if scale > 1 else (x, y)


def on_curve(points: Curve, t: float) -> Point:
    """Return the place on the curve at `t`, 0..1."""
    a, b, c, d = points
    u = 1 - t
    return (
        u**3 * a[0] + 3 * u * u * t * b[0] + 3 * u * t * t * c[0] + t**3 * d[0],
        u**3 * a[1] + 3 * u * u * t * b[1] + 3 * u * t * t * c[1] + t**3 * d[1],
    )


def label_position(points: Curve, t: float, distance: float) -> tuple[float, float, str]:
    """Return where a text beside the curve at `t` goes, and its SVG anchor: above level stretches, to the
    right of upright ones, so that it does not lie on the line.
    """
    x, y = on_curve(points, t)
    before, after = on_curve(points, t - 0.02), on_curve(points, t + 0.02)
    run_x, run_y = after[0] - before[0], after[1] - before[1]
    length = math.hypot(run_x, run_y) or 1.0
    # The normal that points up.
    up_x, up_y = run_y / length, -run_x / length
    if up_y > 0:
        up_x, up_y = -up_x, -up_y
    if abs(up_x) < _LEVEL:
        return x, y + up_y * distance, "middle"
    return x + up_x * distance, y + up_y * distance + 4, "start" if up_x > 0 else "end"


def arrow_paths(points: Curve, width: float) -> tuple[str, str]:
    """Return path data of the line, shortened by its head, and of the head."""
    a, b, c, d = points
    length = 7.0 + 1.6 * width
    half = 4.0 + 0.9 * width
    run = math.hypot(d[0] - c[0], d[1] - c[1]) or 1.0
    ux, uy = (d[0] - c[0]) / run, (d[1] - c[1]) / run
    neck = (d[0] - ux * length, d[1] - uy * length)
    head = (
        f"M{d[0]:.1f} {d[1]:.1f}L{neck[0] - uy * half:.1f} {neck[1] + ux * half:.1f}"
        f"L{neck[0] + uy * half:.1f} {neck[1] - ux * half:.1f}Z"
    )
    path = (
        f"M{a[0]:.1f} {a[1]:.1f}C{b[0]:.1f} {b[1]:.1f} "
        f"{c[0] - ux * length:.1f} {c[1] - uy * length:.1f} {neck[0]:.1f} {neck[1]:.1f}"
    )
    return path, head


def _facing(start: Rectangle, goal: Rectangle) -> tuple[Side, Side]:
    free_x = max(goal.x - start.x - start.width, start.x - goal.x - goal.width)
    free_y = max(goal.y - start.y - start.height, start.y - goal.y - goal.height)
    if free_x >= _SIDEWAYS or free_x >= free_y:
        return ("right", "left") if goal.x >= start.x else ("left", "right")
    return ("bottom", "top") if goal.y >= start.y else ("top", "bottom")


def _middle(card: Rectangle) -> Point:
    return card.x + card.width / 2, card.y + card.height / 2


def _port(card: Rectangle, side: Side, offset: float) -> Point:
    x, y = _middle(card)
    out_x, out_y = _OUTWARD[side]
    if out_x:
        return x + out_x * card.width / 2, y + offset * card.height
    return x + offset * card.width, y + out_y * card.height / 2


def _between(a: Point, leaves: Side, d: Point, arrives: Side) -> Curve:
    along = 0 if leaves in {"left", "right"} else 1
    reach = max(abs(d[along] - a[along]) * 0.45, 40.0)
    out, back = _OUTWARD[leaves], _OUTWARD[arrives]
    return (
        a,
        (a[0] + out[0] * reach, a[1] + out[1] * reach),
        (d[0] + back[0] * reach, d[1] + back[1] * reach),
        d,
    )


LABEL_SIZE: Final = 10.5
"""Screen pixels of a name's letters when all of a large drawing is seen."""

_STEP: Final = 1.5
_CELL: Final = (24.0, 14.0)
LETTER: Final = 0.68
"""Width of a letter against its size, as wide fonts have it."""


def visible_until(
    names: Sequence[tuple[float, float, str]],
    weights: Sequence[float],
    unit: float,
    rights: Sequence[float] = (),
) -> list[float]:
    """Return for each name the largest unit (sheet pixels to a screen pixel) at which it is visible.

    `names` are x, y and text of names that begin there, in sheet pixels; those of more weight come
    first. `unit` is that of the whole drawing. `rights` are the edges beyond which no name reaches, none without
    them. At 1 every name is seen.
    """
    order = sorted(range(len(names)), key=lambda at: (-weights[at], at))
    until = [1.0] * len(names)
    visible: list[int] = []
    waiting = order
    while unit > 1.0 and waiting:
        occupied: set[tuple[int, int]] = set()
        for at in visible:
            occupied |= _cells(names[at], unit)
        left = []
        for at in waiting:
            mine = _cells(names[at], unit)
            fits = not rights or names[at][0] + _long(names[at][2]) * unit <= rights[at]
            if fits and occupied.isdisjoint(mine):
                occupied |= mine
                visible.append(at)
                until[at] = unit * 1.05
            else:
                left.append(at)
        waiting = left
        unit /= _STEP
    return until


def _long(text: str) -> float:
    """Return the length of a name in screen pixels."""
    return len(text) * LABEL_SIZE * LETTER


def _cells(name: tuple[float, float, str], unit: float) -> set[tuple[int, int]]:
    """Return the cells of a grid over the screen that a name covers."""
    x, y, text = name[0] / unit, name[1] / unit, name[2]
    right = x + _long(text)
    columns = range(int(x // _CELL[0]), int(right // _CELL[0]) + 1)
    rows = range(int((y - LABEL_SIZE) // _CELL[1]), int(y // _CELL[1]) + 1)
    return {(column, row) for column in columns for row in rows}


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


class Area(NamedTuple):
    """A rectangle of the drawing, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Area) -> bool:
        """Return whether the two blocks overlap."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def inside(self, other: Area) -> bool:
        """Return whether the whole block is in `other`."""
        return (
            self.left >= other.left
            and self.right <= other.right
            and self.top >= other.top
            and self.bottom <= other.bottom
        )


class LabelAnchor(NamedTuple):
    """Where a text stands: its baseline, and its SVG anchor."""

    x: float
    y: float
    anchor: str


class Label(NamedTuple):
    """A name to stand beside `curve` at `middle` (0 to 1), `distance` pixels away, and beside a `bow` on its right.
    `half` is half of the width of the curve.
    """

    text: str
    curve: Curve
    middle: float
    distance: float
    bow: bool
    half: float = 0.0


def block_of(text: str, place: LabelAnchor) -> Area:
    """Return the block that a text covers, computed with the widest letters that a font is likely to have."""
    width = len(text) * SIZE * LETTER
    left = {"start": place.x, "end": place.x - width}.get(place.anchor, place.x - width / 2)
    return Area(
        left - _HALO,
        place.y - SIZE * 0.9 - _HALO,
        left + width + _HALO,
        place.y + SIZE * 0.3 + _HALO,
    )


def place_labels(
    names: Sequence[Label],
    occupied: Iterable[Area],
    frames: Sequence[Area],
    marks: Sequence[Area],
    sheet: Area,
) -> list[LabelAnchor | None]:
    """Return a place for each name, None where there is none. Earlier names have the first choice.

    No name lies on another, on what is `occupied` (cards, names of routers) or on a mark (of its own place in the
    list), nor leaves the `sheet`. Among the other places, the name gets the one with the fewest parts of arrows and
    `frames` of routers under it, and the nearest one among equals.
    """
    blocked = list(occupied)
    lines = np.concatenate([np.empty((0, 3)), *(_points(name) for name in names)])
    anchors: list[LabelAnchor | None] = []
    for name in names:
        best: LabelAnchor | None = None
        least = -1
        for place in _candidates(name):
            block = block_of(name.text, place)
            if not block.inside(sheet) or any(block.meets(one) for one in (*blocked, *marks)):
                continue
            cost = _under(block, lines) + _BOX_WEIGHT * sum(block.meets(frame) for frame in frames)
            if best is None or cost < least:
                best, least = place, cost
            if cost == 0:
                break
        if best is not None:
            blocked.append(block_of(name.text, best))
        anchors.append(best)
    return anchors


def _candidates(name: Label) -> Iterable[LabelAnchor]:
    for farther in _FARTHER:
        for step in _STEPS:
            t = name.middle + step
            if not _NEAREST <= t <= 1 - _NEAREST:
                continue
            yield from _at(name, t, name.distance + farther)


def _at(name: Label, t: float, distance: float) -> Iterable[LabelAnchor]:
    """Yield the places on both sides of the arrow at `t`."""
    x, y, anchor = label_position(name.curve, t, distance)
    if name.bow:
        # On the inner side of a bow the text would be under the cards.
        yield LabelAnchor(max(x, on_curve(name.curve, t)[0] + distance), y, "start")
        return
    yield LabelAnchor(x, y, anchor)
    x, y, anchor = label_position(name.curve, t, -distance)
    if anchor == "middle":
        yield LabelAnchor(x, y + SIZE * 0.8, anchor)
    else:
        yield LabelAnchor(x, y, "end" if anchor == "start" else "start")


def _points(name: Label) -> NDArray[np.float64]:
    """Return points of an arrow, each with half of the arrow's width."""
    steps = (step / _SAMPLES for step in range(_SAMPLES + 1))
    return np.array([(*on_curve(name.curve, step), name.half) for step in steps])


def _under(block: Area, points: NDArray[np.float64]) -> int:
    """Return how many points of arrows are within a block or touch it."""
    x, y, half = points[:, 0], points[:, 1], points[:, 2]
    inside = (x > block.left - half) & (x < block.right + half)
    inside &= (y > block.top - half) & (y < block.bottom + half)
    return int(inside.sum())
