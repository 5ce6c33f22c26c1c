"""The drawing of the mesh: where cards stand, how lines run, which names are seen."""

from __future__ import annotations

import itertools
import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from vpnrouter.report.page import drawing as drawing_module
from vpnrouter.report.page.arrows import (
    LABEL_SIZE,
    LETTER,
    Area,
    Label,
    arcs,
    arrow_paths,
    block_of,
    label_position,
    on_curve,
    place_labels,
    route,
    visible_until,
)
from vpnrouter.report.page.contents import Contents, ShapeIndex, grade
from vpnrouter.report.page.drawing import Drawing, draw
from vpnrouter.report.page.layout import Point, place, spread_points
from vpnrouter.report.schema import FINDINGS, Rows

Make = Callable[..., dict[str, Any]]
Draw = Callable[[Rows, Rows], Drawing]


def test_every_node_and_edge_is_drawn(node: Make, edge: Make, drawn: Draw) -> None:
    """As many cards as VPNs, boxes as routers, arrows as bridges, each pointing to its row."""
    nodes = [node("core", "red"), node("core", "yellow"), node("edge", "blue", traced=False)]
    edges = [
        edge("edge/blue", "core/yellow"),
        edge("core/yellow", "edge/blue"),
        edge("core/red", "core/yellow"),
        edge("edge/blue", "core/yellow", bridge="second"),
    ]
    drawing = drawn(nodes, edges)
    cards = {card.row: card for box in drawing.boxes for card in box.cards}
    assert {row: card.full_name for row, card in cards.items()} == {
        0: "core/red",
        1: "core/yellow",
        2: "edge/blue",
    }
    assert [box.full_name for box in drawing.boxes] == ["core", "edge"]
    assert sorted(arrow.row for arrow in drawing.arrows) == [0, 1, 2, 3]
    assert [card.traced for _, card in sorted(cards.items())] == [True, True, False]


def test_all_shapes_are_on_the_sheet(node: Make, edge: Make, drawn: Draw) -> None:
    """Cards are inside their boxes, boxes inside the sheet."""
    nodes = [node(f"r{n % 7}", f"vpn-{n}") for n in range(40)]
    nodes.sort(key=lambda row: row["router"])
    ends = [f"{row['router']}/{row['vpn']}" for row in nodes]
    edges = [edge(ends[n], ends[(n * 7) % 40]) for n in range(40)]
    drawing = drawn(nodes, edges)
    for box in drawing.boxes:
        assert box.x >= 0
        assert box.y >= 0
        assert box.x + box.width <= drawing.width
        assert box.y + box.height <= drawing.height
        for card in box.cards:
            assert box.x <= card.x
            assert card.x + card.width <= box.x + box.width
            assert box.y < card.y
            assert card.y + card.height < box.y + box.height


def test_load_and_trouble_show(node: Make, edge: Make, drawn: Draw) -> None:
    """The busiest arrow is the thickest, an idle one is marked, a link that went down as well."""
    nodes = [node("a", "x"), node("b", "y"), node("c", "z")]
    edges = [
        edge("a/x", "b/y", messages=10_000),
        edge("b/y", "c/z", messages=100, link_ups=2, link_downs=1),
        edge("a/x", "c/z", messages=0),
    ]
    arrows = sorted(drawn(nodes, edges).arrows, key=lambda arrow: arrow.row)
    busy, troubled, idle = arrows
    assert busy.width > troubled.width > idle.width > 0
    assert (busy.grade.trouble, troubled.grade.trouble, idle.idle) == (0, 2, True)
    assert busy.title == "fares: b/y attracts 10.0k messages from a/x"


def test_long_and_hostile_names_fit(node: Make, edge: Make, drawn: Draw) -> None:
    """Names are cut to their card, spelt out where they would disturb, whole in the title."""
    long = "n" * 300
    drawing = drawn([node("r\u202e", long), node("s", "t")], [edge(f"r\u202e/{long}", "s/t")])
    (card,) = drawing.boxes[0].cards
    assert card.name.endswith("…")
    assert len(card.name) < 40
    assert len(drawing.boxes[0].name) < 40
    assert card.full_name == rf"r\u202e/{long}"
    assert drawing.boxes[0].name == r"r\u202e"


def test_nothing_is_an_empty_sheet(drawn: Draw) -> None:
    """Without nodes there is a small empty sheet."""
    drawing = drawn([], [])
    assert (drawing.boxes, drawing.arrows) == ([], [])
    assert drawing.width > 0


def test_labels_are_left_out_of_a_crowd(node: Make, edge: Make, drawn: Draw) -> None:
    """Many arrows have no labels beside them; their titles stay."""
    nodes = [node("hub", "v"), *(node(f"r{n:02}", "v") for n in range(41))]
    arrows = drawn(nodes, [edge(f"r{n:02}/v", "hub/v") for n in range(41)]).arrows
    assert {arrow.label for arrow in arrows} == {""}
    assert all(arrow.title for arrow in arrows)


def test_arrows_lie_in_order_of_load(node: Make, edge: Make, drawn: Draw) -> None:
    """The busiest arrow is painted last, over the others."""
    nodes = [node("a", "x"), node("b", "y"), node("c", "z")]
    edges = [edge("a/x", "b/y", messages=900), edge("b/y", "c/z", messages=1)]
    assert [arrow.row for arrow in drawn(nodes, edges).arrows] == [1, 0]


def test_beyond_the_bound_the_busiest_and_the_troubled_are_drawn(
    node: Make, edge: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left out is counted, every arrow drawn has both its cards, errors come first."""
    monkeypatch.setattr(drawing_module, "REPORT_DRAWN_SHAPES", 6)
    nodes = [node(f"r{n}", "v") for n in range(20)]
    edges = [edge(f"r{n}/v", f"r{n + 1}/v", messages=n) for n in range(19)]
    contents = Contents(
        nodes=nodes,
        edges=edges,
        findings=[
            dict.fromkeys(FINDINGS.names)
            | {"kind": "loop", "severity": "error", "router": "r1", "vpn": "v"}
            | {"peer_router": "r0", "peer_vpn": "v", "bridge": "fares"}
        ],
    )
    drawing = draw(nodes, edges, grade(contents, ShapeIndex(nodes, edges)))
    cards = {card.row for box in drawing.boxes for card in box.cards}
    rows = {arrow.row for arrow in drawing.arrows}
    assert len(cards) == 6
    assert {0, 18} <= rows
    assert drawing.left_out == (14, 19 - len(rows))
    assert {end for row in rows for end in (row, row + 1)} <= cards


def test_as_many_shapes_as_data_up_to_the_bound(node: Make, edge: Make, drawn: Draw) -> None:
    """2,000 bridges are all drawn, none of them on another's spot."""
    nodes = [node(f"r{n % 60}", f"v{n // 60}") for n in range(600)]
    names = [f"{row['router']}/{row['vpn']}" for row in nodes]
    edges = [
        edge(names[n % 600], names[(n * 7 + n // 600 + 1) % 600], bridge=f"b{n}")
        for n in range(2_000)
    ]
    drawing = drawn(nodes, edges)
    assert len(drawing.arrows) == 2_000
    assert sum(len(box.cards) for box in drawing.boxes) == 600
    assert len({arrow.path for arrow in drawing.arrows}) == 2_000


def blocks(drawing: Drawing) -> list[tuple[str, tuple[float, float, float, float]]]:
    """The labels of bridges as rectangles: letters of 12 pixels, 0.6 of that wide at least."""
    found = []
    for arrow in drawing.arrows:
        if arrow.label:
            width = len(arrow.label) * 12 * 0.6
            shift = {"start": 0.0, "middle": 0.5, "end": 1.0}[arrow.label_at.anchor]
            left = arrow.label_at.x - width * shift
            found.append(
                (arrow.label, (left, arrow.label_at.y - 10, left + width, arrow.label_at.y + 3))
            )
    return found


def overlaps(drawing: Drawing) -> list[str]:
    """What lies on what: labels on labels, on cards, on names of routers, or off the sheet."""
    labels = blocks(drawing)
    others = [
        (card.full_name, (card.x, card.y, card.x + card.width, card.y + card.height))
        for box in drawing.boxes
        for card in box.cards
    ]
    others += [
        (box.name, (box.x + 10, box.name_y - 10, box.x + 10 + len(box.name) * 8, box.name_y + 3))
        for box in drawing.boxes
    ]
    found = []
    for at, (label, one) in enumerate(labels):
        if one[0] < 0 or one[1] < 0 or one[2] > drawing.width or one[3] > drawing.height:
            found.append(f"{label} is off the sheet")
        for other, two in (*labels[at + 1 :], *others):
            if one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]:
                found.append(f"{label} lies on {other}")
    return found


@pytest.mark.parametrize("number", range(30))
def test_labels_lie_on_nothing(node: Make, edge: Make, drawn: Draw, number: int) -> None:
    """Small meshes of any shape: no label is on another, on a card or on a router's name; nearly all are there."""
    seed = random.randrange(1 << 30)
    draw_ = random.Random(seed)
    routers = [f"router-{n}" for n in range(draw_.randint(1, 6))]
    places = [f"{router}/vpn{n}" for router in routers for n in range(draw_.randint(1, 3))]
    nodes = [node(*place.split("/"), ingress=draw_.randrange(1_000_000)) for place in places]
    pairs = [(one, other) for one in places for other in places if one != other]
    wanted = draw_.sample(pairs, min(len(pairs), draw_.randint(1, 10)))
    edges = [
        edge(one, other, bridge=f"from-{one.replace('/', '-')}", messages=draw_.randrange(100_000))
        for one, other in wanted
    ]
    drawing = drawn(nodes, edges)
    assert overlaps(drawing) == [], f"seed {seed}"
    # One may find no place, however few there are.
    assert len(blocks(drawing)) >= min(0.8 * len(edges), len(edges) - 1), f"seed {seed}"


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
    path, head = arrow_paths(curve, 4.0)
    tip = re.match(r"M([\d.]+) ([\d.]+)", head)
    assert tip is not None
    assert (float(tip[1]), float(tip[2])) == curve[3]
    end = [float(number) for number in path.split()[-2:]]
    assert 5 < math.dist(end, curve[3]) < 20


def test_texts_stand_clear_of_their_line() -> None:
    """Above a level line, beside an upright or slanting one, on the side that leans up."""
    level, falling, rising = route(
        [(LEFT, RIGHT), (LEFT, Card(400, 300)), (LEFT, Card(400, -300))], [False] * 3
    )
    x, y, anchor = label_position(level, 0.5, 10)
    assert (x, y, anchor) == (*map(pytest.approx, (250, level[0][1] - 10)), "middle")
    assert label_position(falling, 0.5, 10)[2] == "start"
    assert label_position(falling, 0.5, 10)[0] > on_curve(falling, 0.5)[0]
    assert label_position(rising, 0.5, 10)[2] == "end"
    assert label_position(rising, 0.5, 10)[0] < on_curve(rising, 0.5)[0]


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


def test_of_two_names_on_one_spot_the_weightier_is_seen() -> None:
    """The other one is seen once zoomed in far enough; one that stands alone always."""
    names = [(0.0, 100.0, "first"), (40.0, 100.0, "second"), (5_000.0, 100.0, "alone")]
    until = visible_until(names, [1.0, 2.0, 0.0], unit=10.0)
    assert until[1] > 10.0
    assert until[2] > 10.0
    assert 1.0 <= until[0] < 10.0


def test_names_seen_together_do_not_overlap() -> None:
    """At every zoom the names that are seen have room."""
    names = [(float(n * 37 % 997), float(n * 91 % 499), f"router-{n}") for n in range(120)]
    until = visible_until(names, [float(n) for n in range(120)], unit=6.0)
    for unit in (6.0, 4.0, 2.7):
        seen = [name for name, most in zip(names, until, strict=True) if most >= unit]
        assert seen
        for at, (x, y, text) in enumerate(seen):
            for other_x, other_y, other in seen[at + 1 :]:
                apart_x = max(x, other_x) - min(
                    x + len(text) * LABEL_SIZE * 0.6 * unit
                    if x < other_x
                    else other_x + len(other) * LABEL_SIZE * 0.6 * unit,
                    1e9,
                )
                assert apart_x > 0 or abs(y - other_y) > LABEL_SIZE * unit * 0.9


Sizes = dict[str, tuple[float, float]]


def boxes_overlap(sizes: Sizes, at: dict[str, Point]) -> list[tuple[str, str]]:
    """Pairs of boxes that share a pixel."""
    return [
        (a, b)
        for a, b in itertools.combinations(at, 2)
        if abs(at[a][0] - at[b][0]) < (sizes[a][0] + sizes[b][0]) / 2 - 1
        and abs(at[a][1] - at[b][1]) < (sizes[a][1] + sizes[b][1]) / 2 - 1
    ]


def test_no_name_reaches_beyond_the_drawing() -> None:
    """One at its edge is seen from where it fits, all others from where they were."""
    names = [(0.0, 0.0, "bremen"), (900.0, 200.0, "bremerhaven"), (900.0, 400.0, "ulm")]
    weights = [1.0, 1.0, 1.0]
    free = visible_until(names, weights, unit=4.0)
    bounded = visible_until(names, weights, unit=4.0, rights=[1_000.0] * 3)
    assert free == [4.2, 4.2, 4.2]
    assert bounded[0] == bounded[2] == 4.2
    unit = bounded[1] / 1.05
    assert 900 + len("bremerhaven") * LABEL_SIZE * LETTER * unit <= 1_000 or bounded[1] == 1.0


def test_a_label_keeps_off_a_thick_arrow() -> None:
    """Its block lies beside the arrow's whole width, not beside its middle alone."""
    level = ((0.0, 100.0), (100.0, 100.0), (200.0, 100.0), (300.0, 100.0))
    other = ((0.0, 78.0), (100.0, 78.0), (200.0, 78.0), (300.0, 78.0))
    sheet = Area(-500.0, -500.0, 900.0, 900.0)
    names = [
        Label("from-blue · 90.2k", level, 0.5, 12.0, False, 4.0),
        Label("", other, 0.5, 30.0, False, 12.0),
    ]
    place = place_labels(names, [], [], [], sheet)[0]
    assert place is not None
    block = block_of(names[0].text, place)
    for middle, half in ((100.0, 4.0), (78.0, 12.0)):
        assert block.bottom <= middle - half or block.top >= middle + half


@pytest.mark.parametrize("boxes", [1, 2, 3, 12, 80])
def test_boxes_do_not_overlap(boxes: int) -> None:
    """Boxes of many sizes, linked at random, all find a place of their own."""
    draw = random.Random(boxes)
    sizes = {f"r{n}": (draw.uniform(120, 400), draw.uniform(80, 500)) for n in range(boxes)}
    names = list(sizes)
    links = [(draw.choice(names), draw.choice(names), draw.uniform(1, 9)) for _ in range(2 * boxes)]
    at = place(sizes, links)
    assert set(at) == set(sizes)
    assert boxes_overlap(sizes, at) == []


def test_equal_data_gives_an_equal_drawing() -> None:
    """Nothing is left to chance."""
    sizes = dict.fromkeys("abcdef", (100.0, 80.0))
    links = [("a", "b", 1.0), ("b", "c", 2.0), ("c", "a", 1.0), ("d", "e", 1.0)]
    assert place(sizes, links) == place(sizes, links)


def test_traffic_flows_to_the_right() -> None:
    """Two routers stand side by side, where messages come from on the left."""
    sizes = {"core": (150.0, 100.0), "edge": (150.0, 100.0)}
    for source, sink in (("edge", "core"), ("core", "edge")):
        at = place(sizes, [(source, sink, 5.0), (sink, source, 1.0)])
        assert at[source][0] + 300 < at[sink][0]
        assert abs(at[source][1] - at[sink][1]) < 1


@pytest.mark.parametrize("points", [1, 2, 3, 40])
def test_every_point_has_a_spot_of_its_own(points: int) -> None:
    """No two points coincide, not even leaves of one hub, and all places are finite."""
    at = spread_points(points, [(0, n) for n in range(1, points)])
    assert at.shape == (points, 2)
    assert np.isfinite(at).all()
    assert len({tuple(spot) for spot in at.round(4)}) == points


def test_linked_points_are_nearer_than_others() -> None:
    """In a ring of 24 neighbours stand nearer than points across."""
    at = spread_points(24, [(n, (n + 1) % 24) for n in range(24)])
    beside = [np.hypot(*(at[n] - at[(n + 1) % 24])) for n in range(24)]
    across = [np.hypot(*(at[n] - at[(n + 12) % 24])) for n in range(24)]
    assert max(beside) < min(across)


def test_equal_graphs_look_equal() -> None:
    """The order in which links are named, and their direction, change nothing."""
    links = [(n, n // 2) for n in range(1, 30)]
    turned = [(b, a) for a, b in reversed(links)]
    assert (spread_points(30, links) == spread_points(30, turned)).all()
