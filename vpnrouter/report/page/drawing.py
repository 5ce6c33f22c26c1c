"""Draws the topology: routers as boxes, their message VPNs as cards inside, bridges as arrows.

The result is geometry in pixels, which the page's template turns into SVG. Every node and edge is drawn up to a bound;
beyond it those with errors and the busiest are.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from vpnrouter.limits import REPORT_DRAWN_SHAPES
from vpnrouter.report.page.arrows import (
    Area,
    Curve,
    Label,
    LabelAnchor,
    arcs,
    arrow_paths,
    block_of,
    on_curve,
    place_labels,
    route,
)
from vpnrouter.report.page.contents import Grade, Grades, ShapeIndex, short_count, visible
from vpnrouter.report.page.layout import place
from vpnrouter.report.page.outside import Feed, Outside, Provider, outside
from vpnrouter.report.schema import Rows

_MARGIN: Final = 36.0
_THINNEST: Final = 1.6
_LABELS: Final = 200.0
"""Pixels by which labels may reach beyond boxes and arrows."""
_NOWHERE: Final = LabelAnchor(0.0, 0.0, "middle")
_WIDEST_PILL: Final = 300.0
_MARK: Final = 8.0
"""Half of the size of a trouble mark, in pixels."""
_ARCS_FROM: Final = 60
"""Arrows from which on they are arcs instead of lines that are led to sides and sorted there."""


@dataclass(frozen=True, kw_only=True)
class DrawingStyle:
    """Sizes of things: the more there are, the smaller and plainer."""

    card_height: float
    card_gap: float
    narrowest_card: float
    widest_card: float
    pad: float
    head: float
    gaps: tuple[float, float]
    character: float
    thickest: float
    notes: bool
    labels: bool


_ROOMY: Final = DrawingStyle(
    card_height=54.0, card_gap=14.0, narrowest_card=116.0, widest_card=230.0, pad=16.0, head=34.0,
    gaps=(190.0, 70.0), character=8.0, thickest=8.0, notes=True, labels=True,
)  # fmt: skip
_PLAIN: Final = DrawingStyle(
    card_height=27.0, card_gap=7.0, narrowest_card=84.0, widest_card=170.0, pad=9.0, head=26.0,
    gaps=(92.0, 64.0), character=7.4, thickest=6.5, notes=False, labels=False,
)  # fmt: skip
_DENSE: Final = DrawingStyle(
    card_height=24.0, card_gap=6.0, narrowest_card=64.0, widest_card=150.0, pad=8.0, head=24.0,
    gaps=(90.0, 80.0), character=7.0, thickest=7.0, notes=False, labels=False,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Card:
    """A message VPN. `row` is its place among the nodes."""

    row: int
    x: float
    y: float
    width: float
    height: float
    name: str
    note: str
    full_name: str
    traced: bool
    grade: Grade


@dataclass(frozen=True, kw_only=True)
class Box:
    """A router around its cards; `name_y` is the foot of its name."""

    x: float
    y: float
    width: float
    height: float
    name: str
    full_name: str
    name_y: float
    cards: list[Card]


@dataclass(frozen=True, kw_only=True)
class Pill:
    """A provider. `row` is its place among the providers; `name_y` is the foot of its name."""

    row: int
    x: float
    y: float
    width: float
    height: float
    name: str
    title: str
    name_y: float


@dataclass(frozen=True, kw_only=True)
class Arrow:
    """A bridge, or a feed with `feed` true. `path` and `head` are SVG path data; `badge` is where a mark of trouble
    goes. `label` is "" where it would lie on something else; it is to stand beside `curve` at `middle`, on the right
    of a `bow`.
    """

    row: int
    path: str
    head: str
    width: float
    label: str
    middle: float
    curve: Curve
    bow: bool
    badge: tuple[float, float]
    title: str
    idle: bool
    grade: Grade
    feed: bool = False
    label_at: LabelAnchor = _NOWHERE


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """All shapes, and the size of the sheet. `left_out` counts the nodes and edges not drawn, `outside` has what
    `pills` and feeds stand for.
    """

    width: float
    height: float
    boxes: list[Box]
    arrows: list[Arrow]
    notes: bool
    outside: Outside
    pills: list[Pill]
    left_out: tuple[int, int] = (0, 0)


def draw(nodes: Rows, edges: Rows, grades: Grades, providers: Rows | None = None) -> Drawing:
    """Place `nodes` (rows of NODES), `edges` (of EDGES, whose ends are among them) and `providers` (of PROVIDERS)."""
    shown_nodes, shown_edges = _shown(nodes, edges, grades)
    beyond = outside(providers or [], ShapeIndex(nodes, edges), frozenset(shown_nodes))
    manner = _style_for(
        len(shown_nodes) + len(beyond.providers), len(shown_edges) + len(beyond.feeds)
    )
    plans = _plans(nodes, shown_nodes, manner)
    sizes = {router: plan.size for router, plan in plans.items()} | {
        _key(at): _pill_size(one, manner) for at, one in enumerate(beyond.providers)
    }
    centres = place(
        sizes,
        [
            (edge["from_router"], edge["to_router"], 1.0 + math.log1p(edge["messages"] or 0))
            for edge in (edges[at] for at in shown_edges)
        ]
        + [_tie(feed, nodes) for feed in beyond.feeds],
        manner.gaps,
    )
    left_out = (len(nodes) - len(shown_nodes), len(edges) - len(shown_edges))
    if not centres:
        return Drawing(
            width=2 * _MARGIN,
            height=2 * _MARGIN,
            boxes=[],
            arrows=[],
            notes=False,
            outside=beyond,
            pills=[],
            left_out=left_out,
        )
    shift = (
        _MARGIN - min(centres[name][0] - size[0] / 2 for name, size in sizes.items()),
        _MARGIN - min(centres[name][1] - size[1] / 2 for name, size in sizes.items()),
    )
    boxes = _boxes(nodes, plans, centres, shift, manner, grades.nodes)
    pills = [
        _pill(at, one, centres[_key(at)], shift, manner) for at, one in enumerate(beyond.providers)
    ]
    cards = {
        (nodes[card.row]["router"], nodes[card.row]["vpn"]): card
        for box in boxes
        for card in box.cards
    }
    placed: list[Box | Pill] = [*boxes, *pills]
    width = max(one.x + one.width for one in placed) + _MARGIN + _loop_room(edges)
    height = max(one.y + one.height for one in placed) + _MARGIN
    # A label may reach a little beyond boxes and arrows.
    sheet = Area(4.0, 4.0, width + _LABELS, height + _LABELS)
    by_row = {card.row: card for card in cards.values()}
    arrows = _arrows(
        [
            *(_bridge(at, edges[at], cards, grades.edges[at]) for at in shown_edges),
            *(_carried(at, feed, by_row, pills) for at, feed in enumerate(beyond.feeds)),
        ],
        manner,
    )
    arrows = _named(arrows, boxes, pills, manner, sheet)
    named = [block_of(arrow.label, arrow.label_at) for arrow in arrows if arrow.label]
    return Drawing(
        width=max([width, *(block.right + 4.0 for block in named)]),
        height=max([height, *(block.bottom + 4.0 for block in named)]),
        boxes=boxes,
        arrows=arrows,
        notes=manner.notes,
        outside=beyond,
        pills=pills,
        left_out=left_out,
    )


@dataclass(frozen=True, slots=True)
class _BoxPlan:
    """The cards of a router, as indices in `nodes`, and the size of its box with them."""

    rows: list[int]
    columns: int
    card_width: float
    size: tuple[float, float]


def _plans(nodes: Rows, shown_nodes: list[int], manner: DrawingStyle) -> dict[str, _BoxPlan]:
    by_router: dict[str, list[int]] = {}
    for at in shown_nodes:
        by_router.setdefault(nodes[at]["router"], []).append(at)
    plans = {}
    for router, rows in by_router.items():
        down, columns = _grid(len(rows), manner)
        card_width = _card_width([nodes[at] for at in rows], manner)
        size = _box_size(router, down, columns, card_width, manner)
        plans[router] = _BoxPlan(rows, columns, card_width, size)
    return plans


def _boxes(
    nodes: Rows,
    plans: Mapping[str, _BoxPlan],
    centres: Mapping[str, tuple[float, float]],
    shift: tuple[float, float],
    manner: DrawingStyle,
    grades: list[Grade],
) -> list[Box]:
    """Return the boxes with their cards, moved by `shift`."""
    boxes = []
    for router, plan in plans.items():
        width, height = plan.size
        x = centres[router][0] + shift[0] - width / 2
        y = centres[router][1] + shift[1] - height / 2
        corner = (x + (width - _inner(plan.columns, plan.card_width, manner)) / 2, y)
        boxes.append(
            Box(
                x=x,
                y=y,
                width=width,
                height=height,
                name=_fitting(router, manner.widest_card, manner.character),
                full_name=visible(router),
                name_y=y + manner.head - (12.0 if manner.notes else 9.0),
                cards=_cards(nodes, plan, corner, manner, grades),
            )
        )
    return boxes


def _key(provider: int) -> str:
    """Return what stands for a provider where routers stand by their names."""
    return f"\0{provider}"


def _tie(feed: Feed, nodes: Rows) -> tuple[str, str, float]:
    ends = (_key(feed.provider), nodes[feed.node]["router"])
    start, goal = ends if feed.inward else ends[::-1]
    return start, goal, 1.0 + math.log1p(feed.messages)


def _pill_size(provider: Provider, manner: DrawingStyle) -> tuple[float, float]:
    name = _pill_name(provider, manner)
    return len(name) * manner.character * 1.1 + 32.0, manner.head


def _pill_name(provider: Provider, manner: DrawingStyle) -> str:
    """Return the address; where there is little room, without what most have in common."""
    if manner.labels:
        return _fitting(provider.name, _WIDEST_PILL, manner.character)
    host = provider.name.partition("://")[2] or provider.name
    return _fitting(host.removesuffix(":1883"), manner.widest_card, manner.character)


def _pill(
    at: int,
    provider: Provider,
    centre: tuple[float, float],
    shift: tuple[float, float],
    manner: DrawingStyle,
) -> Pill:
    width, height = _pill_size(provider, manner)
    y = centre[1] + shift[1] - height / 2
    return Pill(
        row=at,
        x=centre[0] + shift[0] - width / 2,
        y=y,
        width=width,
        height=height,
        name=_pill_name(provider, manner),
        title=provider.name,
        name_y=y + height / 2 + 4.5,
    )


def _shown(nodes: Rows, edges: Rows, grades: Grades) -> tuple[list[int], list[int]]:
    """Return the indices of what is drawn: all, or beyond the bound those with errors, then the busiest."""
    if len(nodes) <= REPORT_DRAWN_SHAPES and len(edges) <= REPORT_DRAWN_SHAPES:
        return list(range(len(nodes))), list(range(len(edges)))
    index = {(row["router"], row["vpn"]): at for at, row in enumerate(nodes)}
    shown_nodes: set[int] = set()
    lines: list[int] = []
    for at in sorted(
        range(len(edges)),
        key=lambda at: (-grades.edges[at].errors, -(edges[at]["messages"] or 0), at),
    ):
        ends = {index[_from(edges[at])], index[_to(edges[at])]} - shown_nodes
        if len(lines) < REPORT_DRAWN_SHAPES and len(shown_nodes) + len(ends) <= REPORT_DRAWN_SHAPES:
            shown_nodes |= ends
            lines.append(at)
    for at in sorted(
        range(len(nodes)),
        key=lambda at: (-grades.nodes[at].errors, -(nodes[at]["ingress"] or 0), at),
    ):
        if len(shown_nodes) >= REPORT_DRAWN_SHAPES:
            break
        shown_nodes.add(at)
    return sorted(shown_nodes), sorted(lines)


def _style_for(nodes: int, edges: int) -> DrawingStyle:
    if nodes <= 40 and edges <= 40:
        return _ROOMY
    return _PLAIN if nodes <= 160 and edges <= 320 else _DENSE


def _loop_room(edges: Rows) -> float:
    """Return the space for arrows within a router, which bow out on its right."""
    return (
        170.0
        if len(edges) <= _ARCS_FROM
        and any(edge["from_router"] == edge["to_router"] for edge in edges)
        else 0.0
    )


def _grid(cards: int, manner: DrawingStyle) -> tuple[int, int]:
    flat = manner.card_height / manner.narrowest_card
    columns = max(math.ceil(cards / 12), math.ceil(math.sqrt(cards * flat * 0.55)))
    return math.ceil(cards / columns), columns


def _inner(columns: int, card_width: float, manner: DrawingStyle) -> float:
    return columns * card_width + (columns - 1) * manner.card_gap


def _card_width(nodes: Rows, manner: DrawingStyle) -> float:
    longest = max(
        max(len(visible(node["vpn"])) * 1.1, len(_note(node)) * 0.92 if manner.notes else 0)
        for node in nodes
    )
    text_width = longest * manner.character * 0.92 + (30 if manner.notes else 28)
    return min(max(text_width, manner.narrowest_card), manner.widest_card)


def _box_size(
    router: str, rows: int, columns: int, card_width: float, manner: DrawingStyle
) -> tuple[float, float]:
    named = min(len(visible(router)) * manner.character, manner.widest_card)
    width = max(_inner(columns, card_width, manner), named) + 2 * manner.pad
    inside = rows * manner.card_height + (rows - 1) * manner.card_gap
    return width, manner.head + inside + manner.pad


def _cards(
    nodes: Rows,
    plan: _BoxPlan,
    corner: tuple[float, float],
    manner: DrawingStyle,
    grades: list[Grade],
) -> list[Card]:
    width = plan.card_width
    cards = []
    for position, at in enumerate(plan.rows):
        node = nodes[at]
        down, across = divmod(position, plan.columns)
        cards.append(
            Card(
                row=at,
                x=corner[0] + across * (width + manner.card_gap),
                y=corner[1] + manner.head + down * (manner.card_height + manner.card_gap),
                width=width,
                height=manner.card_height,
                name=_fitting(node["vpn"], width - 20, manner.character),
                note=_note(node) if manner.notes else "",
                full_name=f"{visible(node['router'])}/{visible(node['vpn'])}",
                traced=bool(node["traced"]),
                grade=grades[at],
            )
        )
    return cards


def _note(node: dict[str, Any]) -> str:
    if not node["traced"]:
        return "no traces"
    return f"{short_count(node['ingress'])} in · {short_count(node['delivered'])} out"


def _fitting(text: str, width: float, character: float) -> str:
    shown = visible(text)
    most = max(int(width / character), 4)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Line:
    """What an arrow is drawn of: `ends` are the shapes from which and to which it leads."""

    row: int
    ends: tuple[Card | Pill, Card | Pill]
    messages: int
    name: str
    title: str
    bow: bool
    grade: Grade
    feed: bool


def _bridge(
    at: int, edge: dict[str, Any], cards: Mapping[tuple[str, str], Card], grade: Grade
) -> _Line:
    start, goal = cards[_from(edge)], cards[_to(edge)]
    messages = edge["messages"] or 0
    name = visible(edge["bridge"]) if edge["bridge"] else "bridge"
    return _Line(
        row=at,
        ends=(start, goal),
        messages=messages,
        name=name,
        title=f"{name}: {goal.full_name} attracts {short_count(messages)} messages "
        f"from {start.full_name}",
        bow=edge["from_router"] == edge["to_router"],
        grade=grade,
        feed=False,
    )


def _carried(at: int, feed: Feed, cards: Mapping[int, Card], pills: list[Pill]) -> _Line:
    card, pill = cards[feed.node], pills[feed.provider]
    return _Line(
        row=at,
        ends=(pill, card) if feed.inward else (card, pill),
        messages=feed.messages,
        name=feed.connector,
        title=f"connector {feed.title}, {short_count(feed.messages)} messages",
        bow=False,
        grade=Grade(),
        feed=True,
    )


def _arrows(lines: list[_Line], manner: DrawingStyle) -> list[Arrow]:
    most = max((line.messages for line in lines), default=0)
    pairs = [line.ends for line in lines]
    curves = arcs(pairs) if len(lines) > _ARCS_FROM else route(pairs, [line.bow for line in lines])
    ends = {(id(start), id(goal)) for start, goal in pairs}
    arrows = []
    for line, points in zip(lines, curves, strict=True):
        start, goal = line.ends
        share = math.sqrt(line.messages / most) if most else 0.0
        width = _THINNEST + (manner.thickest - _THINNEST) * share
        path, head = arrow_paths(points, width)
        label = _fitting(f"{line.name} · {short_count(line.messages)}", 170, manner.character)
        arrows.append(
            Arrow(
                row=line.row,
                path=path,
                head=head,
                width=width,
                label=label if manner.labels else "",
                # The labels of a pair's two directions are kept apart.
                middle=0.36 if (id(goal), id(start)) in ends else 0.5,
                curve=points,
                bow=line.bow,
                badge=on_curve(points, 0.62),
                title=line.title,
                idle=line.messages == 0,
                grade=line.grade,
                feed=line.feed,
            )
        )
    # The busiest lie on top.
    return sorted(arrows, key=lambda arrow: (arrow.grade.errors > 0, arrow.width))


def _named(
    arrows: list[Arrow], boxes: list[Box], pills: list[Pill], manner: DrawingStyle, sheet: Area
) -> list[Arrow]:
    """Return the arrows with positions for their labels, the busiest first. A label without space is left out."""
    if not manner.labels:
        return arrows
    shapes: list[Card | Pill] = [*(card for box in boxes for card in box.cards), *pills]
    occupied = [Area(one.x, one.y, one.x + one.width, one.y + one.height) for one in shapes]
    occupied += [
        Area(
            box.x,
            box.name_y - manner.head * 0.5,
            box.x + manner.pad + len(box.name) * manner.character * 1.2,
            box.name_y + 6.0,
        )
        for box in boxes
    ]
    frames = [Area(box.x, box.y, box.x + box.width, box.y + box.height) for box in boxes]
    marks = [
        Area(x - _MARK, y - _MARK, x + _MARK, y + _MARK)
        for x, y in (arrow.badge for arrow in arrows if arrow.grade.trouble > 1)
    ]
    names = [
        Label(
            arrow.label, arrow.curve, arrow.middle, arrow.width / 2 + 8, arrow.bow, arrow.width / 2
        )
        for arrow in reversed(arrows)
    ]
    named = []
    for arrow, spot in zip(
        arrows, reversed(place_labels(names, occupied, frames, marks, sheet)), strict=True
    ):
        if spot is None:
            named.append(replace(arrow, label=""))
        else:
            named.append(replace(arrow, label_at=spot))
    return named


def _from(edge: dict[str, Any]) -> tuple[str, str]:
    return edge["from_router"], edge["from_vpn"]


def _to(edge: dict[str, Any]) -> tuple[str, str]:
    return edge["to_router"], edge["to_vpn"]
