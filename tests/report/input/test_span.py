import pytest

from vpnrouter.errors import OperationError
from vpnrouter.report.inventory import Span, parse_range, parse_span, parse_time

SECOND = 1_000_000_000
NOW = 1_772_366_400 * SECOND
"""2026-03-01T12:00Z."""


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-03-01T12:00", 0),
        ("2026-03-01", -12 * 3600),
        ("2026-03-01T13:00:30.5+01:00", 30.5),
        (" 2026-03-01 11:59 ", -60),
        ("90m", -5400),
        ("1.5 h", -5400),
        ("2w", -14 * 86_400),
    ],
)
def test_times(text: str, seconds: float) -> None:
    """Dates, times with and without a zone, and durations before now."""
    assert parse_time(text, NOW) == NOW + round(seconds * SECOND)


@pytest.mark.parametrize("text", ["", "yesterday", "12", "2026-13-01", "-5m", "5 parsecs"])
def test_what_is_no_time_is_refused(text: str) -> None:
    """The error names the text and says what would do."""
    with pytest.raises(OperationError, match="not a time"):
        parse_time(text, NOW)


def test_spans() -> None:
    """Ends may be open, but a span may not be empty."""
    assert parse_span(None, None, NOW) == Span()
    assert parse_span("1h", "30m", NOW) == Span(
        since_ns=NOW - 3600 * SECOND, until_ns=NOW - 1800 * SECOND
    )
    with pytest.raises(OperationError, match="nothing lies between"):
        parse_span("30m", "1h", NOW)


def test_ranges() -> None:
    """SINCE..UNTIL, either end open."""
    assert parse_range("2026-03-01..", NOW) == Span(since_ns=NOW - 12 * 3600 * SECOND)
    assert parse_range("..1h", NOW) == Span(until_ns=NOW - 3600 * SECOND)
    for wrong in ("..", "1h", ""):
        with pytest.raises(OperationError, match="not a range"):
            parse_range(wrong, NOW)


def test_days() -> None:
    """The dates whose files can hold rows of the span: the end itself does not belong to it."""
    whole = parse_range("2026-02-28..2026-03-01", NOW)
    assert whole.days() == ("2026-02-28", "2026-02-28")
    assert Span().days() == (None, None)
