"""vpnrouter.report.rules.context: figures in sentences."""

import pytest

from vpnrouter.report.rules.context import counted, lasting, percent


def test_counts_have_a_noun_in_number() -> None:
    """One is one; many have separators, and their own plural where they need one."""
    assert counted(1, "message") == "1 message"
    assert counted(12_000, "message") == "12,000 messages"
    assert counted(0, "copy", "copies") == "0 copies"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.25, "250 ms"), (1, "1.0 s"), (119, "119.0 s"), (180, "3.0 minutes"), (9_000, "2.5 hours")],
)
def test_durations_have_a_unit_that_fits(seconds: float, text: str) -> None:
    """From milliseconds to hours."""
    assert lasting(seconds) == text


def test_a_share_is_said_in_percent() -> None:
    """Of one."""
    assert percent(0.125) == "12.5 %"
