"""Figures and texts as the screens show them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from vpnrouter.tui import format as fmt
from vpnrouter.tui.format import clean, cut, fit, folded, pairs, text, width_of


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
    """Sizes have their unit."""
    assert fmt.size(1_500) == "1.5kB"


TEXTS = st.text(max_size=40)


@given(TEXTS, st.integers(0, 30), st.booleans(), st.booleans())
def test_fit_fills_its_columns(written: str, width: int, right: bool, middle: bool) -> None:
    """Whatever the text, it takes exactly its columns, wide characters too."""
    assert cell_len(fit(written, width, right=right, middle=middle)) == width


@pytest.mark.parametrize(
    ("written", "width", "shown"),
    [
        ("#bridge/site-12/plant-3/from-core", 20, "#bridge/s…/from-core"),
        ("#bridge/site-12/plant-3/to-core", 20, "#bridge/s…-3/to-core"),
        ("10412437f3a90b12", 8, "104…0b12"),
        ("short", 8, "short   "),
        ("long", 1, "…"),
    ],
)
def test_names_keep_both_ends(written: str, width: int, shown: str) -> None:
    """What tells them apart is often at their end."""
    assert fit(written, width, middle=True) == shown


@pytest.mark.parametrize(
    ("parts", "shown"),
    [
        (("All connection attempts", " failed"), "All connection…"),
        (("All", " " * 40), "All" + " " * 12),
    ],
)
def test_a_line_that_is_cut_says_so(parts: tuple[str, ...], shown: str) -> None:
    """But not where only blanks are left out."""
    assert "".join(piece for piece, _ in cut(text(*parts), 15)) == shown


@given(st.lists(TEXTS, max_size=5), st.integers(1, 40))
def test_cut_fills_its_columns(parts: list[str], width: int) -> None:
    """A line is as wide as the screen."""
    line = text(*parts)
    shown = cut(line, width)
    assert sum(cell_len(piece) for piece, _ in shown) == width
    assert not any(character in piece for piece, _ in shown for character in "\x1b\x9b\n")


def test_a_longer_text_says_so() -> None:
    """What is cut ends in three dots; numbers stand on the right."""
    assert fit("abcdefgh", 5) == "abcd…"
    assert fit("12", 5, right=True) == "   12"


@given(TEXTS, st.integers(2, 20))
def test_folded_loses_nothing(written: str, width: int) -> None:
    """All of a text stands in lines that fit."""
    lines = folded(written, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join(lines) == clean(written)


def test_pairs_stand_under_each_other() -> None:
    """Labels are as wide as the widest."""
    lines = pairs([("a", "x"), ("bcd", ("y", "bad"))])
    assert [line[0][0] for line in lines] == ["a    ", "bcd  "]
    assert lines[1][1] == ("y", "bad")
    assert width_of(lines[0]) == 6
