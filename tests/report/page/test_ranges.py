"""vpnrouter.report.page.charts: latency on a logarithmic axis."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter.report.page import charts
from vpnrouter.report.page.charts import Histogram

Make = Callable[..., dict[str, Any]]


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
