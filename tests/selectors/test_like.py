"""LIKE: the specification's examples, an oracle, and patterns made to be slow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.errors import SelectorError
from vpnrouter.selectors.conditions import LikePattern


@pytest.mark.parametrize(
    ("pattern", "escape", "inside", "outside"),
    [
        ("12%3", "", ["123", "12993", "12%3"], ["1234", "23"]),
        ("l_se", "", ["lose", "l\nse", "l😀se"], ["loose", "lse"]),
        ("\\_%", "\\", ["_foo", "_"], ["bar", "\\_"]),
        ("50!%", "!", ["50%"], ["50!", "500"]),
        ("a!!b", "!", ["a!b"], ["a!!b"]),
        ("", "", [""], ["a"]),
        ("%", "", ["", "a", "a\nb"], []),
        ("_%_", "", ["ab", "abc"], ["a", ""]),
        ("%b_d%", "", ["bcd", "abdbcd", "bbbdx"], ["bd", "bcc"]),
        ("%a_%b", "", ["axb", "ba_bb"], ["ab", "bab"]),
        ("b%_a%", "", ["bxa", "baa"], ["ba", "bab"]),
        ("%__%b", "", ["xxb", "bbb"], ["xb", "b"]),
        ("aba%aba", "", ["abaaba"], ["aba", "ababa"]),
        ("100.*", "", ["100.*"], ["100", "1000"]),
    ],
)
def test_examples(pattern: str, escape: str, inside: list[str], outside: list[str]) -> None:
    """`%` is any text, `_` one character, an escape takes that away; the whole text counts."""
    like = LikePattern(pattern, escape)
    assert [like.matches(text) for text in inside] == [True] * len(inside)
    assert [like.matches(text) for text in outside] == [False] * len(outside)


def oracle(pattern: str, escape: str, text: str) -> bool:
    """The definition, place by place: which beginnings of the text fit so far."""
    fits = {0}
    escaped = False
    for character in pattern:
        if escape and character == escape and not escaped:
            escaped = True
        elif character == "%" and not escaped:
            fits = set(range(min(fits), len(text) + 1)) if fits else set()
        else:
            free = character == "_" and not escaped
            ends = [at for at in fits if at < len(text)]
            fits = {at + 1 for at in ends if free or text[at] == character}
            escaped = False
    return len(text) in fits


PARTS = st.lists(st.sampled_from(["%", "_", "a", "b", "ab", "!%", "!_", "!!"]), max_size=9)


@given(PARTS.map("".join), st.text("ab_%!", max_size=14))
def test_as_the_oracle(pattern: str, text: str) -> None:
    """Any pattern and text of few characters, so that near misses are many."""
    assert LikePattern(pattern, "!").matches(text) is oracle(pattern, "!", text)


@given(st.lists(st.sampled_from(["%", "_", "_", "a", "b"]), max_size=12), st.data())
def test_text_made_for_the_pattern_matches(pattern: list[str], data: st.DataObject) -> None:
    """What a pattern describes it matches, wherever its pieces have to be searched."""
    some = {"%": st.text("ab", max_size=4), "_": st.sampled_from("ab")}
    text = "".join(data.draw(some[part]) if part in some else part for part in pattern)
    assert LikePattern("".join(pattern)).matches(text)


@pytest.mark.parametrize("escape", ["%", "_"])
def test_wildcard_as_escape(escape: str) -> None:
    """An escape character is nothing but an escape, whichever it is."""
    assert LikePattern(f"a{escape}{escape}b", escape).matches(f"a{escape}b")
    assert not LikePattern(f"a{escape}{escape}b", escape).matches("axxb")


@pytest.mark.parametrize("pattern", ["a!b", "a!", "!!!"])
def test_escape_before_something_else(pattern: str) -> None:
    """An escape that escapes nothing is refused, at the pattern's position."""
    with pytest.raises(SelectorError, match=r"^position 7: expected %, _ or '!' behind") as caught:
        LikePattern(pattern, "!", 7)
    assert caught.value.position == 7


@pytest.mark.parametrize(
    "pattern",
    [
        "%a" * 3000 + "%b",
        "%" + "a" * 4000 + "_b%",
        "%_a" * 2000 + "%b",
        "%" + "a_" * 3000 + "b%",
        "%" + "a" * 3000 + "b" + "a" * 3000 + "%",
    ],
    ids=["many", "late", "gaps", "mixed", "middle"],
)
def test_no_text_makes_it_slow(pattern: str) -> None:
    """Patterns that make a backtracking matcher try for ever end at once, without a match."""
    assert not LikePattern(pattern).matches("a" * 65_000)
