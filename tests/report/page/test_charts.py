"""vpnrouter.report.page.charts: bars, ranges and lines."""

import pytest

from vpnrouter.report.page import charts

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
