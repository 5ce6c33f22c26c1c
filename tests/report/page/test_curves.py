"""vpnrouter.report.page.curves: lines between cards."""

import math
import re
from dataclasses import dataclass

import pytest

from vpnrouter.report.page.curves import arcs, beside, on_curve, route, stroke


@dataclass(frozen=True)
class Card:
    """A rectangle."""

    x: float
    y: float
    width: float = 100.0
    height: float = 50.0


LEFT, RIGHT, BELOW = Card(0, 0), Card(400, 0), Card(0, 400)


def test_lines_join_the_sides_that_face() -> None:
    """Side by side: right to left. One above the other: bottom to top."""
    across, down, back = route([(LEFT, RIGHT), (LEFT, BELOW), (RIGHT, LEFT)], [False] * 3)
    assert (across[0][0], across[3][0]) == (100, 400)
    assert (down[0][1], down[3][1]) == (50, 400)
    assert (back[0][0], back[3][0]) == (400, 100)


def test_two_directions_run_beside_each_other() -> None:
    """There and back are parallel: apart at both ends, the same one above at both."""
    there, back = route([(LEFT, RIGHT), (RIGHT, LEFT)], [False, False])
    assert there[0][1] == there[3][1]
    assert back[0][1] == back[3][1]
    assert back[0][1] - there[0][1] > 10


def test_lines_at_one_side_do_not_cross() -> None:
    """Lines to targets above each other leave in the order of their targets."""
    targets = [Card(400, y) for y in (300.0, -300.0, 0.0)]
    lines = route([(LEFT, target) for target in targets], [False] * 3)
    leaves = {target.y: line[0][1] for target, line in zip(targets, lines, strict=True)}
    assert sorted(leaves, key=lambda y: leaves[y]) == [-300, 0, 300]


def test_bows_nest() -> None:
    """Two bows between the same cards keep apart, one inside the other."""
    upper, lower = Card(0, 0), Card(0, 100)
    outer, inner = route([(upper, lower), (lower, upper)], [True, True])
    assert outer[1][0] > inner[1][0] + 10
    assert outer[0][1] < inner[3][1] < inner[0][1] < outer[3][1]
    assert min(point[0] for point in outer) >= 100


def test_the_head_ends_where_the_line_points() -> None:
    """The head's tip is the curve's end, and the line stops at the head's foot."""
    (curve,) = route([(LEFT, RIGHT)], [False])
    path, head = stroke(curve, 4.0)
    tip = re.match(r"M([\d.]+) ([\d.]+)", head)
    assert tip is not None
    assert (float(tip[1]), float(tip[2])) == curve[3]
    end = [float(number) for number in path.split()[-2:]]
    assert 5 < math.dist(end, curve[3]) < 20


def test_on_curve_runs_from_start_to_end() -> None:
    """At 0 the start, at 1 the end, at 0.5 between."""
    (curve,) = route([(LEFT, RIGHT)], [False])
    assert on_curve(curve, 0.0) == curve[0]
    assert on_curve(curve, 1.0) == curve[3]
    assert 200 < on_curve(curve, 0.5)[0] < 300


def test_texts_stand_clear_of_their_line() -> None:
    """Above a level line, beside an upright or slanting one, on the side that leans up."""
    level, falling, rising = route(
        [(LEFT, RIGHT), (LEFT, Card(400, 300)), (LEFT, Card(400, -300))], [False] * 3
    )
    x, y, anchor = beside(level, 0.5, 10)
    assert (x, y, anchor) == (*map(pytest.approx, (250, level[0][1] - 10)), "middle")
    assert beside(falling, 0.5, 10)[2] == "start"
    assert beside(falling, 0.5, 10)[0] > on_curve(falling, 0.5)[0]
    assert beside(rising, 0.5, 10)[2] == "end"
    assert beside(rising, 0.5, 10)[0] < on_curve(rising, 0.5)[0]


def test_arcs_keep_apart_and_end_at_the_borders() -> None:
    """There, back and a second way there are three arcs, each from border to border."""
    lines = arcs([(LEFT, RIGHT), (RIGHT, LEFT), (LEFT, RIGHT)])
    assert len({on_curve(line, 0.5) for line in lines}) == 3
    there, back, _ = lines
    assert (there[0][0], there[3][0]) == (100, 400)
    assert (back[0][0], back[3][0]) == (400, 100)
    assert (on_curve(there, 0.5)[1] - 25) * (on_curve(back, 0.5)[1] - 25) < 0


def test_an_arc_to_itself_is_a_loop() -> None:
    """A line from a card to itself leaves it and comes back."""
    (line,) = arcs([(LEFT, LEFT)])
    assert on_curve(line, 0.5)[0] > LEFT.x + LEFT.width + 10
