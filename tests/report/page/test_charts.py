"""Bars, timelines and latencies as shapes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter.limits import REPORT_PAGE_STRETCHES
from vpnrouter.report.page import charts
from vpnrouter.report.page.charts import (
    SPARKS,
    STEPS,
    Histogram,
    bridge_curves,
    curve_paths,
    histograms,
    rates_of,
    step_of,
)
from vpnrouter.report.page.contents import Contents, ShapeIndex

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("value", "most", "length"),
    [(0, 0, 0), (0, 10, 0), (5, 10, 50), (10, 10, 100), (1, 10**9, 0.6)],
)
def test_bars(value: int, most: int, length: float) -> None:
    """A bar is its share of the longest, and never invisible when there is something."""
    assert charts.bar(value, most) == length


def stretch(at_s: int, ingress: int = 0, discarded: int = 0) -> dict[str, int]:
    """A row of TIMELINE."""
    return {
        "start_ns": at_s * SECOND,
        "ingress": ingress,
        "bridged": 0,
        "delivered": 0,
        "discarded": discarded,
    }


def test_stretches_without_events_are_zero() -> None:
    """A gap in the rows is a line on the floor, not a slope across."""
    rows = [stretch(100, 5), stretch(103, 10)]
    chart = charts.timeline_chart(rows, SECOND)
    assert chart is not None
    ingress = chart.series[0]
    points = [tuple(map(float, point.split())) for point in ingress.line[1:].split("L")]
    floor = charts.TIMELINE_HEIGHT
    assert [y for _, y in points] == [floor / 2, floor, floor, 0.0]
    assert [one.title.split(": ")[1].split(",")[0] for one in chart.stretches] == ["5 in", "10 in"]
    assert chart.width_text == "1 s"


def test_discards_have_a_line_when_there_are_any() -> None:
    """The line of discards is drawn only when it says something."""
    without = charts.timeline_chart([stretch(0, 1), stretch(1, 1)], SECOND)
    with_one = charts.timeline_chart([stretch(0, 1), stretch(1, 1, 1)], SECOND)
    assert without is not None
    assert with_one is not None
    assert [len(chart.series) for chart in (without, with_one)] == [3, 4]


def test_a_clock_that_jumped_does_not_blow_up_the_chart() -> None:
    """Years between two rows are drawn side by side."""
    chart = charts.timeline_chart([stretch(0, 1), stretch(10**9, 1)], SECOND)
    assert chart is not None
    assert len(chart.series[0].line) < 100
    assert chart.x_ticks == []


def test_one_stretch_is_no_chart() -> None:
    """With less than two stretches there is nothing to see."""
    assert charts.timeline_chart([], SECOND) is None
    assert charts.timeline_chart([stretch(0, 1)], SECOND) is None


def test_ticks_fall_on_round_times() -> None:
    """Over ten minutes and three seconds the ticks stand at whole minutes."""
    chart = charts.timeline_chart(
        [stretch(1_371_000_003, 1), stretch(1_371_000_603, 1)], 5 * SECOND
    )
    assert chart is not None
    assert {tick.label[-2:] for tick in chart.x_ticks} <= {f"{n:02}" for n in range(20, 31)}
    assert 3 <= len(chart.x_ticks) <= 8


Make = Callable[..., dict[str, Any]]


@pytest.mark.parametrize(
    ("latency", "step"), [(1, 0), (10, STEPS), (999, 3 * STEPS - 1), (1_000, 3 * STEPS)]
)
def test_steps(latency: int, step: int) -> None:
    """Powers of ten begin a step."""
    assert step_of(latency) == step


def test_rows_are_counted_by_edge(edge: Make) -> None:
    """Gaps count zero, latencies below a nanosecond apart, rows of unknown bridges are passed over."""
    edges = [edge("a/x", "b/y"), edge("b/y", "a/x")]
    key = ("from_router", "from_vpn", "to_router", "to_vpn", "bridge")
    mine = {name: edges[0][name] for name in key}
    rows = [
        mine | {"latency_ns": 1_000, "messages": 3},
        mine | {"latency_ns": 1_001, "messages": 4},
        mine | {"latency_ns": 2_000, "messages": 5},
        mine | {"latency_ns": -7, "messages": 2},
        mine | {"bridge": "gone", "latency_ns": 5, "messages": 99},
    ]
    found = histograms(rows, ShapeIndex([], edges))
    assert list(found) == [0]
    assert (found[0].first, found[0].counts, found[0].below) == (3 * STEPS, [7, 0, 5], 2)


def test_latency_is_placed_on_a_logarithmic_axis(edge: Make) -> None:
    """Percentiles stand in order between the ticks of their powers of ten; its name is beside it."""
    quiet = edge("a/x", "b/y", messages=1, latency_samples=1, latency=(10_000, 10_000, 100_000))
    busy = edge("b/y", "a/x", messages=9, latency_samples=9, latency=(1_000, 10_000, 100_000))
    chart = charts.latency_chart([quiet, busy], {})
    assert chart is not None
    first = next(range_ for range_ in chart.ranges if range_.row == 1)
    assert (first.p50, first.p95) == (0, pytest.approx(charts.WIDTH / 3))
    assert first.p50 < first.p95 < first.p99 <= charts.WIDTH
    assert [tick.label for tick in chart.ticks] == ["1 µs", "10 µs", "100 µs", "1 ms"]


def test_latency_against_the_clock_is_counted_not_drawn(edge: Make) -> None:
    """Bridges whose median is not above zero are skewed; without samples there is no chart."""
    skewed = edge("a/x", "b/y", latency_samples=3, latency=(-5, 10, 20))
    chart = charts.latency_chart([skewed, edge("a/x", "c/z", latency_samples=0)], {})
    assert chart is not None
    assert (chart.skewed, chart.ranges) == (1, [])
    assert charts.latency_chart([edge("a/x", "b/y", latency_samples=0)], {}) is None


def test_the_busiest_and_the_slowest_are_drawn(edge: Make) -> None:
    """Of many bridges those of most messages and the slowest of the rest, the slowest first."""
    edges = [edge("a/x", f"b/v{n}", messages=n, latency=(10, 20, 1_000 - n)) for n in range(1, 101)]
    chart = charts.latency_chart(edges, {})
    assert chart is not None
    rows = [range_.row for range_ in chart.ranges]
    assert set(rows) == {*range(84, 100), *range(10)}
    assert rows == sorted(rows)
    assert (chart.total, chart.corrected, chart.uncorrected) == (100, 100, 0)


def test_what_is_not_corrected_is_marked(edge: Make) -> None:
    """Bridges whose clocks could not be compared are counted and say so."""
    raw = edge("a/x", "b/y", latency_corrected=False)
    chart = charts.latency_chart([raw, edge("a/x", "c/z")], {})
    assert chart is not None
    assert (chart.corrected, chart.uncorrected) == (1, 1)
    (marked,) = [range_ for range_ in chart.ranges if range_.row == 0]
    assert not marked.corrected
    assert "not corrected" in marked.title


def test_the_swell_is_thickest_where_most_messages_are(edge: Make) -> None:
    """The shape around a bridge's line spans its histogram and is widest at the fullest step."""
    histogram = Histogram(first=40, counts=[1, 100, 4], below=0)
    chart = charts.latency_chart([edge("a/x", "b/y")], {0: histogram})
    assert chart is not None
    (only,) = chart.ranges
    points = [
        tuple(map(float, pair.split())) for pair in re.findall(r"[-\d.]+ [-\d.]+", only.swell)
    ]
    halves = [only.y - y for _, y in points[1:4]]
    assert halves == pytest.approx([1.2, 12.0, 2.4], abs=0.1)
    assert [x for x, _ in points[:5]] == sorted(x for x, _ in points[:5])


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
    rates = rates_of(contents, ShapeIndex(contents.nodes, contents.edges))
    assert rates.by_edge == {0: [10, 0, 0, 10]}
    assert (rates.first_ns, rates.width_ns, rates.columns) == (1_000, 100, 4)


def test_long_curves_are_joined(node: Make, edge: Make) -> None:
    """More stretches than the page bears are added up, none is lost."""
    many = [at * 100 for at in range(REPORT_PAGE_STRETCHES * 3)]
    contents = contents_of(node, [edge("a/x", "b/y")], many)
    rates = rates_of(contents, ShapeIndex(contents.nodes, contents.edges))
    assert rates.columns == REPORT_PAGE_STRETCHES
    assert rates.width_ns == 300
    assert set(rates.by_edge[0]) == {30}


def test_the_busiest_have_curves(node: Make, edge: Make) -> None:
    """As many curves as the page shows, of bridges that it knows."""
    edges = [edge("a/x", "b/y", bridge=f"b{n}") for n in range(SPARKS + 5)]
    contents = contents_of(node, edges, [0, 100])
    rates = rates_of(contents, ShapeIndex(contents.nodes, contents.edges))
    places = ShapeIndex(contents.nodes, contents.edges)
    places.drawn_edges = frozenset({1})
    drawn = bridge_curves(contents, rates, places)
    assert [one.shape for one in drawn[:3]] == [None, "edge-1", None]
    assert len(drawn) == SPARKS
    assert drawn[0].title == "b0: a/x → b/y"
    assert (drawn[0].total, drawn[0].peak) == ("20", "10 in 100 ns")


def test_a_curve_spans_its_box() -> None:
    """The greatest value touches the top, none the floor."""
    line, area = curve_paths([0, 5, 10], 10, 300.0, 40.0)
    assert line == "M50.0 40.0L150.0 20.0L250.0 0.0"
    assert area.endswith("L250.0 40.0L50.0 40.0Z")
