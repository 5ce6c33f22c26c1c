"""vpnrouter.report.page.figures: numbers as people read them."""

import pytest

from vpnrouter.report.page import figures


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0"), (9_999, "9,999"), (12_345, "12.3k"), (336_776, "337k"), (5_000_000, "5.0M"),
     (2_500_000_000, "2.5G")],
)  # fmt: skip
def test_short_counts(value: int | None, text: str) -> None:
    """Three digits and a unit from ten thousand on, exact below."""
    assert figures.short_count(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0 B"), (1_023, "1023 B"), (1_024, "1.00 KiB"), (12_345, "12.1 KiB"),
     (500 * 1024**2, "500 MiB"), (2**70, "1048576 PiB")],
)  # fmt: skip
def test_sizes(value: int | None, text: str) -> None:
    """Binary units, three digits, the largest unit for whatever is beyond."""
    assert figures.size(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0 ns"), (999, "999 ns"), (305_000, "305 µs"), (999_600, "1 ms"), (1_150_000, "1.15 ms"),
     (-3_000, "-3 µs"), (59_900_000_000, "59.9 s"), (90_000_000_000, "1 min 30 s"),
     (-90_000_000_000, "-1 min 30 s"), (86_400_000_000_000 * 3, "3 d 0 h")],
)  # fmt: skip
def test_durations(value: int | None, text: str) -> None:
    """Three digits in the unit that fits; the two greatest units from a minute on."""
    assert figures.duration(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (1_371_000_000_123_456_789, "2013-06-12 01:20:00"), (10**30, f"{10**30} ns")],
)
def test_moments(value: int | None, text: str) -> None:
    """UTC to the second; a clock beyond all calendars keeps its number."""
    assert figures.moment(value) == text


def test_shares_and_counts() -> None:
    """Percent without needless digits, thousands apart."""
    assert [figures.share(rate) for rate in (1.0, 0.01, 0.00125)] == ["100 %", "1 %", "0.125 %"]
    assert [figures.count(value) for value in (None, 0, 1_234_567)] == ["–", "0", "1,234,567"]


def test_names_cannot_disturb_their_line() -> None:
    """Control, formatting and line-breaking characters are spelt out; letters of any script stay."""
    hostile = "a\x00\n\u202eb\u2028\ufeff\ud800é漢"
    assert figures.visible(hostile) == r"a\x00\n\u202eb\u2028\ufeff\ud800é漢"
    assert figures.visible(None) == "–"


def test_decimals() -> None:
    """Whole from a thousand on, four digits below."""
    values = (None, 0.0, 1_234_567.8, 12.3456, -2_500.0)
    assert [figures.decimal(value) for value in values] == [
        "–",
        "0",
        "1,234,568",
        "12.35",
        "-2,500",
    ]
