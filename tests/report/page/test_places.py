"""vpnrouter.report.page.figures: from a row to its shape."""

from collections.abc import Callable
from typing import Any

from vpnrouter.report.page.figures import Places, came_back, place_of, title_of
from vpnrouter.report.schema import FINDINGS

Make = Callable[..., dict[str, Any]]


def finding(**values: Any) -> dict[str, Any]:
    """A row of FINDINGS."""
    return dict.fromkeys(FINDINGS.names) | values


ON_BRIDGE = {"router": "b", "vpn": "y", "peer_router": "a", "peer_vpn": "x"}


def test_rows_lead_to_their_shapes(node: Make, edge: Make) -> None:
    """A finding on a bridge leads to its arrow, one on a VPN or a router to a card, others nowhere."""
    nodes = [node("a", "x"), node("b", "y"), node("b", "z")]
    edges = [edge("a/x", "b/y", bridge="one"), edge("a/x", "b/y", bridge="two")]
    places = Places(nodes, edges)
    assert places.shape(finding(**ON_BRIDGE, bridge="two")) == "edge-1"
    assert places.shape(finding(**ON_BRIDGE)) == "edge-0"
    assert places.edges_of(finding(**ON_BRIDGE)) == [0, 1]
    assert places.shape(finding(**ON_BRIDGE, bridge="gone")) == "node-1"
    assert places.shape(finding(router="b", vpn="z")) == "node-2"
    assert places.shape(finding(router="b")) == "node-1"
    assert places.shape(finding(router="c", vpn="z")) is None
    assert places.shape(finding()) is None
    assert [places.edge(row) for row in edges] == [0, 1]


def test_what_is_not_drawn_is_not_led_to(node: Make, edge: Make) -> None:
    """A bridge without an arrow leads to the card of its local end."""
    places = Places([node("a", "x"), node("b", "y")], [edge("a/x", "b/y")])
    places.drawn_edges = frozenset()
    assert places.shape(finding(**ON_BRIDGE, bridge="fares")) == "node-1"
    places.drawn_nodes = frozenset()
    assert places.shape(finding(**ON_BRIDGE, bridge="fares")) is None


def test_places_in_words(edge: Make) -> None:
    """A bridge is written in the direction of its messages."""
    assert place_of(finding(**ON_BRIDGE, bridge="one")) == "one: a/x → b/y"
    assert place_of(finding(router="b", vpn="y")) == "b/y"
    assert place_of(finding(router="b")) == "b"
    assert place_of(finding()) == ""
    assert title_of(edge("a/x", "b/y")) == "fares: a/x → b/y"


def test_a_link_that_came_back(edge: Make) -> None:
    """Down and up again is trouble; down with its router, or not known, is none."""
    ups_and_downs = [(3, 2), (1, 1), (2, 0), (None, None)]
    found = [came_back(edge("a/x", "b/y", link_ups=u, link_downs=d)) for u, d in ups_and_downs]
    assert found == [True, False, False, False]
