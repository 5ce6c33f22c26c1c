"""The topology as shapes: routers as boxes, their message VPNs as cards inside, bridges as arrows.

Plain geometry in pixels; the page's template turns it into SVG. Every node and every edge of the
data is drawn.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

from vpnrouter.topology.page.curves import beside, on_curve, route, stroke
from vpnrouter.topology.page.figures import short_count, visible
from vpnrouter.topology.page.layout import place

_CARD_HEIGHT: Final = 54.0
_CARD_GAP: Final = 14.0
_BOX_PAD: Final = 16.0
_BOX_HEAD: Final = 34.0
_MARGIN: Final = 36.0
_NARROWEST_CARD: Final = 116.0
_WIDEST_CARD: Final = 230.0
_CHARACTER: Final = 8.0
_ROWS_PER_COLUMN: Final = 8
_THINNEST: Final = 1.6
_THICKEST: Final = 8.0
_LABELS_AT_MOST: Final = 40

Rows = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Card:
    """A message VPN. `row` is its place in the table of nodes."""

    row: int
    x: float
    y: float
    width: float
    height: float
    name: str
    note: str
    full_name: str
    traced: bool


@dataclass(frozen=True, kw_only=True)
class Box:
    """A router around its cards."""

    x: float
    y: float
    width: float
    height: float
    name: str
    full_name: str
    cards: list[Card]


@dataclass(frozen=True, kw_only=True)
class Arrow:
    """A bridge. `path` and `head` are SVG path data; `troubled` when its link went down and came back."""

    row: int
    path: str
    head: str
    width: float
    label: str
    label_x: float
    label_y: float
    label_anchor: str
    title: str
    troubled: bool
    idle: bool


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """All shapes, and the size of the sheet."""

    width: float
    height: float
    boxes: list[Box]
    arrows: list[Arrow]


def draw(nodes: Rows, edges: Rows) -> Drawing:
    """Place `nodes` (rows of NODES) and `edges` (rows of EDGES whose ends are among them)."""
    by_router: dict[str, list[int]] = {}
    for at, node in enumerate(nodes):
        by_router.setdefault(node["router"], []).append(at)
    grids = {router: _grid(len(rows)) for router, rows in by_router.items()}
    card_widths = {
        router: _card_width([nodes[at] for at in rows]) for router, rows in by_router.items()
    }
    sizes = {router: _box_size(router, *grids[router], card_widths[router]) for router in by_router}
    centres = place(
        sizes,
        [
            (edge["from_router"], edge["to_router"], 1.0 + math.log1p(edge["messages"]))
            for edge in edges
        ],
    )
    if not centres:
        return Drawing(width=2 * _MARGIN, height=2 * _MARGIN, boxes=[], arrows=[])
    shift_x = _MARGIN - min(centres[r][0] - sizes[r][0] / 2 for r in centres)
    shift_y = _MARGIN - min(centres[r][1] - sizes[r][1] / 2 for r in centres)
    boxes = []
    cards: dict[tuple[str, str], Card] = {}
    for router, rows in by_router.items():
        width, height = sizes[router]
        x = centres[router][0] + shift_x - width / 2
        y = centres[router][1] + shift_y - height / 2
        inside = _cards(nodes, rows, grids[router][1], card_widths[router], x, y, width)
        cards.update({(router, nodes[card.row]["vpn"]): card for card in inside})
        boxes.append(
            Box(
                x=x,
                y=y,
                width=width,
                height=height,
                name=_fitting(router, width - 2 * _BOX_PAD),
                full_name=visible(router),
                cards=inside,
            )
        )
    arrows = _arrows(edges, cards)
    return Drawing(
        width=max(box.x + box.width for box in boxes) + _MARGIN + _loop_room(edges),
        height=max(box.y + box.height for box in boxes) + _MARGIN,
        boxes=boxes,
        arrows=arrows,
    )


def _loop_room(edges: Rows) -> float:
    """Arrows between VPNs of one router bow out on its right."""
    return 170.0 if any(edge["from_router"] == edge["to_router"] for edge in edges) else 0.0


def _grid(cards: int) -> tuple[int, int]:
    columns = max(math.ceil(cards / _ROWS_PER_COLUMN), math.ceil(math.sqrt(cards / 4)))
    return math.ceil(cards / columns), columns


def _card_width(nodes: Rows) -> float:
    longest = max(max(len(visible(node["vpn"])) * 1.1, len(_note(node))) for node in nodes)
    return min(max(longest * _CHARACTER * 0.92 + 30, _NARROWEST_CARD), _WIDEST_CARD)


def _box_size(router: str, rows: int, columns: int, card_width: float) -> tuple[float, float]:
    inner = columns * card_width + (columns - 1) * _CARD_GAP
    named = min(len(visible(router)) * _CHARACTER, _WIDEST_CARD)
    width = max(inner, named) + 2 * _BOX_PAD
    height = _BOX_HEAD + rows * _CARD_HEIGHT + (rows - 1) * _CARD_GAP + _BOX_PAD
    return width, height


def _cards(
    nodes: Rows, rows: list[int], columns: int, width: float, x: float, y: float, box: float
) -> list[Card]:
    inner = columns * width + (columns - 1) * _CARD_GAP
    left = x + (box - inner) / 2
    cards = []
    for place_in_box, at in enumerate(rows):
        node = nodes[at]
        down, across = divmod(place_in_box, columns)
        cards.append(
            Card(
                row=at,
                x=left + across * (width + _CARD_GAP),
                y=y + _BOX_HEAD + down * (_CARD_HEIGHT + _CARD_GAP),
                width=width,
                height=_CARD_HEIGHT,
                name=_fitting(node["vpn"], width - 24),
                note=_note(node),
                full_name=f"{visible(node['router'])}/{visible(node['vpn'])}",
                traced=node["traced"],
            )
        )
    return cards


def _note(node: dict[str, Any]) -> str:
    if not node["traced"]:
        return "no traces"
    return f"{short_count(node['ingress'])} in · {short_count(node['delivered'])} out"


def _fitting(text: str, width: float) -> str:
    shown = visible(text)
    most = max(int(width / _CHARACTER), 4)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _arrows(edges: Rows, cards: dict[tuple[str, str], Card]) -> list[Arrow]:
    most = max((edge["messages"] for edge in edges), default=0)
    pairs = [(cards[_from(edge)], cards[_to(edge)]) for edge in edges]
    curves = route(pairs, [edge["from_router"] == edge["to_router"] for edge in edges])
    ends = {(_from(edge), _to(edge)) for edge in edges}
    labelled = len(edges) <= _LABELS_AT_MOST
    arrows = []
    for at, (edge, (start, goal), points) in enumerate(zip(edges, pairs, curves, strict=True)):
        share = math.sqrt(edge["messages"] / most) if most else 0.0
        width = _THINNEST + (_THICKEST - _THINNEST) * share
        path, head = stroke(points, width)
        # Labels of a pair's two directions keep apart.
        middle = 0.36 if (_to(edge), _from(edge)) in ends else 0.5
        label_x, label_y, label_anchor = beside(points, middle, width / 2 + 8)
        if edge["from_router"] == edge["to_router"]:
            # Inside a bow the text would lie under the cards.
            label_x = max(label_x, on_curve(points, middle)[0] + width / 2 + 8)
            label_anchor = "start"
        count = f"{short_count(edge['messages'])} messages"
        bridge = visible(edge["bridge"]) if edge["bridge"] else "bridge"
        label = _fitting(f"{bridge} · {short_count(edge['messages'])}", 170)
        arrows.append(
            Arrow(
                row=at,
                path=path,
                head=head,
                width=width,
                label=label if labelled else "",
                label_x=label_x,
                label_y=label_y,
                label_anchor=label_anchor,
                title=f"{bridge}: {goal.full_name} attracts {count} from {start.full_name}",
                troubled=came_back(edge),
                idle=edge["messages"] == 0,
            )
        )
    return arrows


def came_back(edge: dict[str, Any]) -> bool:
    """Whether a bridge's link broke and was made again. Every link goes down when a router stops."""
    return bool(edge["link_downs"] > 0 and edge["link_ups"] > 1)


def _from(edge: dict[str, Any]) -> tuple[str, str]:
    return edge["from_router"], edge["from_vpn"]


def _to(edge: dict[str, Any]) -> tuple[str, str]:
    return edge["to_router"], edge["to_vpn"]
