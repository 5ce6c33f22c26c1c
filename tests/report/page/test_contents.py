"""Numbers and texts as people read them, grades, and where rows are in the drawing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter.report.page import contents
from vpnrouter.report.page.contents import (
    CUT,
    PLAIN,
    UNPLANNED,
    Contents,
    Grades,
    ShapeIndex,
    grade,
    has_reconnected,
    place_of,
    title_of,
)
from vpnrouter.report.schema import FINDINGS


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0"), (9_999, "9,999"), (12_345, "12.3k"), (336_776, "337k"), (5_000_000, "5.0M"),
     (2_500_000_000, "2.5G")],
)  # fmt: skip
def test_short_counts(value: int | None, text: str) -> None:
    """Three digits and a unit from ten thousand on, exact below."""
    assert contents.short_count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0 B"), (1_023, "1023 B"), (1_024, "1.00 KiB"), (12_345, "12.1 KiB"),
     (500 * 1024**2, "500 MiB"), (2**70, "1048576 PiB")],
)  # fmt: skip
def test_sizes(value: int | None, text: str) -> None:
    """Binary units, three digits, the largest unit for whatever is beyond."""
    assert contents.size(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0 ns"), (999, "999 ns"), (305_000, "305 µs"), (999_600, "1 ms"), (1_150_000, "1.15 ms"),
     (-3_000, "-3 µs"), (59_900_000_000, "59.9 s"), (90_000_000_000, "1 min 30 s"),
     (-90_000_000_000, "-1 min 30 s"), (86_400_000_000_000 * 3, "3 d 0 h")],
)  # fmt: skip
def test_durations(value: int | None, text: str) -> None:
    """Three digits in the unit that fits; the two greatest units from a minute on."""
    assert contents.duration(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (1_371_000_000_123_456_789, "2013-06-12 01:20:00"), (10**30, f"{10**30} ns")],
)
def test_moments(value: int | None, text: str) -> None:
    """UTC to the second; a clock beyond all calendars keeps its number."""
    assert contents.moment(value) == text


def test_shares_and_counts() -> None:
    """Percent without needless digits, thousands apart."""
    assert [contents.share(rate) for rate in (1.0, 0.01, 0.00125)] == ["100 %", "1 %", "0.125 %"]
    assert [contents.count(value) for value in (None, 0, 1_234_567)] == ["–", "0", "1,234,567"]


def test_names_cannot_disturb_their_line() -> None:
    """Control, formatting and line-breaking characters are spelt out; letters of any script stay."""
    hostile = "a\x00\n\u202eb\u2028\ufeff\ud800é漢"
    assert contents.visible(hostile) == r"a\x00\n\u202eb\u2028\ufeff\ud800é漢"
    assert contents.visible(None) == "–"


def test_decimals() -> None:
    """Whole from a thousand on, four digits below."""
    values = (None, 0.0, 1_234_567.8, 12.3456, -2_500.0)
    assert [contents.decimal(value) for value in values] == [
        "–",
        "0",
        "1,234,568",
        "12.35",
        "-2,500",
    ]


Make = Callable[..., dict[str, Any]]


def graded(contents: Contents) -> Grades:
    """Grades of all shapes."""
    return grade(contents, ShapeIndex(contents.nodes, contents.edges))


def test_load_and_latency_are_logarithmic_steps(node: Make, edge: Make) -> None:
    """From the least to the greatest in five steps, nothing for none; the scale's ends are in words."""
    edges = [
        edge("a/x", "b/y", bridge=f"b{messages}", messages=messages, latency=latency)
        for messages, latency in (
            (0, None),
            (1, (1, 1_000, 1)),
            (100, (1, 10_000, 1)),
            (10_000, (1, 100_000_000, 1)),
        )
    ]
    grades = graded(Contents(nodes=[node("a", "x"), node("b", "y")], edges=edges))
    assert [one.load for one in grades.edges] == [0, 1, 3, 5]
    assert [one.latency for one in grades.edges] == [0, 1, 2, 5]
    assert grades.load_ends == ("1", "10.0k")
    assert grades.latency_ends == ("1 µs", "100 ms")


def test_the_worst_finding_counts(node: Make, edge: Make) -> None:
    """Errors over warnings over notes; a bridge's findings are not its VPN's; links that came back warn."""
    nodes = [node("a", "x"), node("b", "y")]
    edges = [edge("a/x", "b/y"), edge("b/y", "a/x", link_ups=2, link_downs=2)]
    blank = dict.fromkeys(FINDINGS.names)
    on_bridge = {"router": "b", "vpn": "y", "peer_router": "a", "peer_vpn": "x", "bridge": "fares"}
    findings = [
        blank | on_bridge | {"kind": "cut_bridge", "severity": "info"},
        blank | on_bridge | {"kind": "hot_bridge", "severity": "error"},
        blank | {"router": "a", "vpn": "x", "kind": "black_hole", "severity": "warning"},
    ]
    grades = graded(Contents(nodes=nodes, edges=edges, findings=findings))
    assert [one.trouble for one in grades.edges] == [3, 2]
    assert [one.trouble for one in grades.nodes] == [2, 0]
    assert grades.edge_findings == [[0, 1], []]
    assert grades.node_findings == [[2], []]
    assert (grades.edges[0].errors, grades.edges[0].warnings) == (1, 0)


def test_structure(node: Make, edge: Make) -> None:
    """Only ways, articulation points, and what the configuration does not know."""
    nodes = [node("a", "x"), node("b", "y")]
    edges = [
        edge("a/x", "b/y", bridge="1", cut=True, configured=None),
        edge("a/x", "b/y", bridge="2", cut=False, configured=True),
        edge("a/x", "b/y", bridge="3", cut=True, configured=False),
    ]
    vpns = [{"router": "a", "vpn": "x", "articulation": True, "centrality": 0.5, "component": 1}]
    grades = graded(Contents(nodes=nodes, edges=edges, vpns=vpns))
    assert [one.structure for one in grades.edges] == [CUT, PLAIN, UNPLANNED]
    assert [one.structure for one in grades.nodes] == [CUT, PLAIN]
    assert grades.nodes[0].classes.split()[-1] == f"s{CUT}"


def finding(**values: Any) -> dict[str, Any]:
    """A row of FINDINGS."""
    return dict.fromkeys(FINDINGS.names) | values


ON_BRIDGE = {"router": "b", "vpn": "y", "peer_router": "a", "peer_vpn": "x"}


def test_rows_lead_to_their_shapes(node: Make, edge: Make) -> None:
    """A finding on a bridge leads to its arrow, one on a VPN or a router to a card, others nowhere."""
    nodes = [node("a", "x"), node("b", "y"), node("b", "z")]
    edges = [edge("a/x", "b/y", bridge="one"), edge("a/x", "b/y", bridge="two")]
    places = ShapeIndex(nodes, edges)
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
    places = ShapeIndex([node("a", "x"), node("b", "y")], [edge("a/x", "b/y")])
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
    found = [
        has_reconnected(edge("a/x", "b/y", link_ups=u, link_downs=d)) for u, d in ups_and_downs
    ]
    assert found == [True, False, False, False]
