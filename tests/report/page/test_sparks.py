"""vpnrouter.report.page.charts: rates of each bridge over time."""

from collections.abc import Callable
from typing import Any

from vpnrouter.limits import REPORT_PAGE_STRETCHES
from vpnrouter.report.page.charts import SPARKS, lines, rates_of, sparks
from vpnrouter.report.page.figures import Contents, Places

Make = Callable[..., dict[str, Any]]


def contents_of(node: Make, edges: list[dict[str, Any]], starts: list[int]) -> Contents:
    """Contents in which every edge has 10 messages in each of the stretches."""
    key = ("from_router", "from_vpn", "to_router", "to_vpn", "bridge")
    return Contents(
        nodes=[node("a", "x"), node("b", "y")],
        edges=edges,
        timeline_width_ns=100,
        rates=[
            {name: edge[name] for name in key} | {"start_ns": start, "messages": 10}
            for edge in edges
            for start in starts
        ],
    )


def test_gaps_are_zero(node: Make, edge: Make) -> None:
    """Stretches without a row count as none; all curves have one length."""
    contents = contents_of(node, [edge("a/x", "b/y")], [1_000, 1_300])
    rates = rates_of(contents, Places(contents.nodes, contents.edges))
    assert rates.by_edge == {0: [10, 0, 0, 10]}
    assert (rates.first_ns, rates.width_ns, rates.columns) == (1_000, 100, 4)


def test_long_curves_are_joined(node: Make, edge: Make) -> None:
    """More stretches than the page bears are added up, none is lost."""
    many = [at * 100 for at in range(REPORT_PAGE_STRETCHES * 3)]
    contents = contents_of(node, [edge("a/x", "b/y")], many)
    rates = rates_of(contents, Places(contents.nodes, contents.edges))
    assert rates.columns == REPORT_PAGE_STRETCHES
    assert rates.width_ns == 300
    assert set(rates.by_edge[0]) == {30}


def test_the_busiest_have_curves(node: Make, edge: Make) -> None:
    """As many curves as the page shows, of bridges that it knows."""
    edges = [edge("a/x", "b/y", bridge=f"b{n}") for n in range(SPARKS + 5)]
    contents = contents_of(node, edges, [0, 100])
    rates = rates_of(contents, Places(contents.nodes, contents.edges))
    places = Places(contents.nodes, contents.edges)
    places.drawn_edges = frozenset({1})
    drawn = sparks(contents, rates, places)
    assert [one.shape for one in drawn[:3]] == [None, "edge-1", None]
    assert len(drawn) == SPARKS
    assert drawn[0].title == "b0: a/x → b/y"
    assert (drawn[0].total, drawn[0].peak) == ("20", "10 in 100 ns")


def test_no_rates_no_curves(node: Make) -> None:
    """Without rows there is nothing, and no error."""
    contents = contents_of(node, [], [])
    rates = rates_of(contents, Places(contents.nodes, []))
    assert (rates.columns, sparks(contents, rates, Places(contents.nodes, []))) == (0, [])


def test_a_curve_spans_its_box() -> None:
    """The greatest value touches the top, none the floor."""
    line, area = lines([0, 5, 10], 10, 300.0, 40.0)
    assert line == "M50.0 40.0L150.0 20.0L250.0 0.0"
    assert area.endswith("L250.0 40.0L50.0 40.0Z")
