"""vpnrouter.report.flows.ends: usual cuts of time."""

import pytest

from vpnrouter.report.flows.ends import width_for

SECOND = 1_000_000_000
DAY = 86_400 * SECOND


@pytest.mark.parametrize(
    ("span_ns", "width_ns"),
    [
        (0, SECOND // 1_000),
        (60 * SECOND, SECOND),
        (60 * SECOND + 1, 2 * SECOND),
        (DAY, 30 * 60 * SECOND),
        (365 * DAY, 7 * DAY),
        (100_000 * DAY, 30 * DAY),
    ],
)
def test_the_width_is_usual_and_fits(span_ns: int, width_ns: int) -> None:
    """The shortest usual stretch of which at most 60 cover the span, 30 days at the most."""
    assert width_for(span_ns) == width_ns


def test_a_smaller_number_of_stretches_can_be_asked_for() -> None:
    """Eight ticks over 20 minutes are five minutes apart."""
    assert width_for(20 * 60 * SECOND, 8) == 5 * 60 * SECOND
