from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from vpnrouter.tui.format import clean, cut, fit, folded, pairs, text, width_of

TEXTS = st.text(max_size=40)


@given(TEXTS, st.integers(0, 30), st.booleans())
def test_fit_fills_its_columns(written: str, width: int, right: bool) -> None:
    """Whatever the text, it takes exactly its columns, wide characters too."""
    assert cell_len(fit(written, width, right=right)) == width


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
