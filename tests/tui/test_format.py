import pytest

from vpnrouter.tui import format as fmt


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (7, "7"),
        (999, "999"),
        (999.6, "1.0k"),
        (1_234, "1.2k"),
        (9_949, "9.9k"),
        (9_960, "10k"),
        (99_960, "100k"),
        (999_499, "999k"),
        (999_500, "1.0M"),
        (5_600_000, "5.6M"),
        (-1_500, "-1.5k"),
        (10**21, "1000E"),
    ],
)
def test_figure(value: float, shown: str) -> None:
    """A count in at most five characters."""
    assert fmt.figure(value) == shown
    assert len(shown) <= 5


def test_least_of_traffic_is_not_shown_as_none() -> None:
    """One message in a minute is some."""
    assert [fmt.rate(value) for value in (0, 0.02, 0.5, 1, 1_500)] == [
        "-",
        "<0.1",
        "0.5",
        "1",
        "1.5k",
    ]


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0s"), (59, "59s"), (192, "3m12s"), (3_725, "1h02m"), (1_047_600, "12d03h"), (-3, "0s")],
)
def test_duration(seconds: int, shown: str) -> None:
    """A duration in at most seven characters."""
    assert fmt.duration(seconds) == shown


def test_never_is_not_long_ago() -> None:
    """An age below 0 means never."""
    assert (fmt.age(-1), fmt.age(192_000)) == ("-", "3m12s")


def test_times_are_utc() -> None:
    """Times are those of the routers' logs; one that no calendar has is told and not raised."""
    assert fmt.clock(1_795_316_405) == "03:00:05"
    assert fmt.moment(1_795_316_405) == "2026-11-22 03:00:05"
    assert fmt.moment(0) == "-"
    assert fmt.moment(10**18) == "beyond 9999"


@pytest.mark.parametrize(
    "bad", ["\x1b[2J", "\x9b31m", "a\nb", "\u202eabc", "\x00", "\x7f", "\u200b", "\ud800"]
)
def test_no_text_commands_the_terminal(bad: str) -> None:
    """What moves the cursor, changes colours, or turns the direction of writing is written as an escape."""
    cleaned = fmt.clean(bad)
    assert cleaned.isprintable()
    assert "\\" in cleaned


def test_texts_are_cut() -> None:
    """No name is longer than any screen."""
    assert len(fmt.clean("x" * 100_000)) == 1_000


def test_values_for_people() -> None:
    """Values of all kinds that an answer holds."""
    values = [True, 1_234_567, {"b": 2, "a": 1_000}, {}, [], ["x", 1], "", None]
    shown = ["yes", "1,234,567", "a 1,000, b 2", "-", "-", "x, 1", "-", "-"]
    assert [fmt.shown(value) for value in values] == shown
    assert fmt.words("inboundFailureReason") == "inbound failure reason"
    assert fmt.size(1_500) == "1.5kB"
