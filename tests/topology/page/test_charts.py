"""vpnrouter.topology.page.charts: bars, ranges and lines."""

from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter.topology.page import charts

Make = Callable[..., dict[str, Any]]
SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("value", "most", "length"),
    [(0, 0, 0), (0, 10, 0), (5, 10, 50), (10, 10, 100), (1, 10**9, 0.6)],
)
def test_bars(value: int, most: int, length: float) -> None:
    """A bar is its share of the longest, and never invisible when there is something."""
    assert charts.bar(value, most) == length


def test_latency_is_placed_on_a_logarithmic_axis(edge: Make) -> None:
    """Percentiles stand in order between the ticks of their powers of ten; the busiest is first."""
    quiet = edge("a/x", "b/y", messages=1, latency_samples=1, latency=(10_000, 10_000, 100_000))
    busy = edge("b/y", "a/x", messages=9, latency_samples=9, latency=(1_000, 10_000, 100_000))
    chart = charts.latency_chart([quiet, busy])
    assert chart is not None
    assert [range_.row for range_ in chart.ranges] == [1, 0]
    first = chart.ranges[0]
    assert (first.p50, first.p95) == (0, pytest.approx(charts.WIDTH / 3))
    assert first.p50 < first.p95 < first.p99 <= charts.WIDTH
    assert [tick.label for tick in chart.ticks] == ["1 µs", "10 µs", "100 µs", "1 ms"]


def test_latency_against_the_clock_is_counted_not_drawn(edge: Make) -> None:
    """Bridges whose median is not above zero are skewed; without samples there is no chart."""
    skewed = edge("a/x", "b/y", latency_samples=3, latency=(-5, 10, 20))
    chart = charts.latency_chart([skewed, edge("a/x", "c/z", latency_samples=0)])
    assert chart is not None
    assert (chart.skewed, chart.ranges) == (1, [])
    assert charts.latency_chart([edge("a/x", "b/y", latency_samples=0)]) is None


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
