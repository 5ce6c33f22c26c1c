"""The lines between cards: which sides they join, in which order along a side, and their SVG path
data.
"""

import math
from collections.abc import Sequence
from typing import Final, Literal, Protocol

from vpnrouter.topology.page.layout import Point

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
    """A curve for each (start, goal); a bowed one leaves and arrives on the right.

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
    """A gentle arc from edge to edge for each (start, goal): for crowds, where routed lines tangle.

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
    """Where the way from the middle of `card` to a point leaves it."""
    x, y = _middle(card)
    run_x, run_y = towards[0] - x, towards[1] - y
    scale = max(abs(run_x) / (card.width / 2), abs(run_y) / (card.height / 2), 1e-9)
    return (x + run_x / scale, y + run_y / scale) if scale > 1 else (x, y)


def on_curve(points: Curve, t: float) -> Point:
    """The place on the curve at `t`, 0..1."""
    a, b, c, d = points
    u = 1 - t
    return (
        u**3 * a[0] + 3 * u * u * t * b[0] + 3 * u * t * t * c[0] + t**3 * d[0],
        u**3 * a[1] + 3 * u * u * t * b[1] + 3 * u * t * t * c[1] + t**3 * d[1],
    )


def beside(points: Curve, t: float, distance: float) -> tuple[float, float, str]:
    """Where a text beside the curve at `t` stands, and its SVG anchor: above level stretches, to the
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


def stroke(points: Curve, width: float) -> tuple[str, str]:
    """Path data of the line, shortened by its head, and of the head."""
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
