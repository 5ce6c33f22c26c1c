"""vpnrouter.topology.page.drawing: nodes and edges as shapes."""

from collections.abc import Callable
from typing import Any

from vpnrouter.topology.page.drawing import draw

Make = Callable[..., dict[str, Any]]


def test_every_node_and_edge_is_drawn(node: Make, edge: Make) -> None:
    """As many cards as VPNs, boxes as routers, arrows as bridges, each pointing to its row."""
    nodes = [node("core", "red"), node("core", "yellow"), node("edge", "blue", traced=False)]
    edges = [
        edge("edge/blue", "core/yellow"),
        edge("core/yellow", "edge/blue"),
        edge("core/red", "core/yellow"),
        edge("edge/blue", "core/yellow", bridge="second"),
    ]
    drawing = draw(nodes, edges)
    cards = {card.row: card for box in drawing.boxes for card in box.cards}
    assert {row: card.full_name for row, card in cards.items()} == {
        0: "core/red",
        1: "core/yellow",
        2: "edge/blue",
    }
    assert [box.full_name for box in drawing.boxes] == ["core", "edge"]
    assert [arrow.row for arrow in drawing.arrows] == [0, 1, 2, 3]
    assert [card.traced for _, card in sorted(cards.items())] == [True, True, False]


def test_all_shapes_are_on_the_sheet(node: Make, edge: Make) -> None:
    """Cards are inside their boxes, boxes inside the sheet."""
    nodes = [node(f"r{n % 7}", f"vpn-{n}") for n in range(40)]
    nodes.sort(key=lambda row: row["router"])
    ends = [f"{row['router']}/{row['vpn']}" for row in nodes]
    edges = [edge(ends[n], ends[(n * 7) % 40]) for n in range(40)]
    drawing = draw(nodes, edges)
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


def test_load_and_trouble_show(node: Make, edge: Make) -> None:
    """The busiest arrow is the thickest, an idle one is marked, a link that went down as well."""
    nodes = [node("a", "x"), node("b", "y"), node("c", "z")]
    edges = [
        edge("a/x", "b/y", messages=10_000),
        edge("b/y", "c/z", messages=100, link_ups=2, link_downs=1),
        edge("a/x", "c/z", messages=0),
    ]
    busy, troubled, idle = draw(nodes, edges).arrows
    assert busy.width > troubled.width > idle.width > 0
    assert (busy.troubled, troubled.troubled, idle.idle) == (False, True, True)
    assert busy.title == "fares: b/y attracts 10.0k messages from a/x"


def test_long_and_hostile_names_fit(node: Make, edge: Make) -> None:
    """Names are cut to their card, spelt out where they would disturb, whole in the title."""
    long = "n" * 300
    drawing = draw([node("r\u202e", long), node("s", "t")], [edge(f"r\u202e/{long}", "s/t")])
    (card,) = drawing.boxes[0].cards
    assert card.name.endswith("…")
    assert len(card.name) < 40
    assert card.full_name == rf"r\u{{202e}}/{long}"
    assert drawing.boxes[0].name == r"r\u{202e}"


def test_nothing_is_an_empty_sheet() -> None:
    """Without nodes there is a small empty sheet."""
    drawing = draw([], [])
    assert (drawing.boxes, drawing.arrows) == ([], [])
    assert drawing.width > 0


def test_labels_are_left_out_of_a_crowd(node: Make, edge: Make) -> None:
    """Many arrows have no labels beside them; their titles stay."""
    nodes = [node("hub", "v"), *(node(f"r{n:02}", "v") for n in range(41))]
    arrows = draw(nodes, [edge(f"r{n:02}/v", "hub/v") for n in range(41)]).arrows
    assert {arrow.label for arrow in arrows} == {""}
    assert all(arrow.title for arrow in arrows)
