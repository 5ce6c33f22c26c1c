"""Bad selectors: one line each, with the position and what was expected there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.errors import SelectorError
from vpnrouter.limits import SELECTOR_BYTES
from vpnrouter.selectors.build import parse_selector

BAD = [
    ("", 1, "expected a value, not the end"),
    (" \n", 3, "expected a value, not the end"),
    ("a =", 4, "expected a value, not the end"),
    ("a = = 1", 5, "expected a value, not '='"),
    ("a = b = c", 7, "expected arithmetic, AND, OR or the end, not '='"),
    ("region 'x'", 8, "expected an operator or the end, not \"'x'\""),
    ("x = 'a", 5, 'expected a value, not "\'": a string without its closing quote'),
    ("x = 'a''", 5, 'expected a value, not "\'": a string without its closing quote'),
    ('"x = 1', 1, "expected a value, not '\"': a name without its closing quote"),
    ("a != 1", 3, "expected an operator or the end, not '!'; not equal is written <>"),
    ("a; DROP", 2, "expected an operator or the end, not ';'"),
    ("x = NULL", 5, "expected a value, not 'NULL'; IS NULL asks for a missing property"),
    ("x IS", 5, "expected NOT or NULL, not the end"),
    ("x IS 3", 6, "expected NOT or NULL, not '3'"),
    ("x NOT 3", 7, "expected BETWEEN, IN or LIKE, not '3'"),
    ("x IN", 5, "expected '(', not the end"),
    ("x IN ()", 7, "expected a string in single quotes, not ')'"),
    ("x IN ('a'", 10, "expected ',' or ')', not the end"),
    ("x IN (1)", 7, "expected a string in single quotes, not '1'"),
    ("x LIKE y", 8, "expected a string in single quotes, not 'y'"),
    ("x BETWEEN 1", 12, "expected arithmetic or AND, not the end"),
    ("x BETWEEN 1 OR 2", 13, "expected arithmetic or AND, not 'OR'"),
    ("x BETWEEN 'a' AND 2", 11, "expected a number or a property, not a string \"'a'\""),
    ("(a", 3, "expected an operator or ')', not the end"),
    ("a)", 2, "expected an operator or the end, not ')'"),
    ("a AND", 6, "expected a value, not the end"),
    ("5abc = 1", 2, "expected an operator or the end, not 'abc'"),
    ("3", 1, "expected a condition, not a number '3'"),
    ("a AND 'b'", 7, "expected a condition, not a string \"'b'\""),
    ("'a' = 3", 1, "expected a number or a property, not a string \"'a'\""),
    ("TRUE = 'a'", 8, "expected a condition or a property, not a string \"'a'\""),
    ("(a > 3) + 1 = 2", 2, "expected a number or a property, not a condition 'a > 3'"),
    ("010 = x", 1, "expected a number without leading zeros"),
    ("x = 1e999", 5, "expected a number that a double can hold"),
    ('"" = 1', 1, "expected a name between the quotes"),
]


@pytest.mark.parametrize(("text", "position", "message"), BAD, ids=[case[0] for case in BAD])
def test_error_says_where_and_what(text: str, position: int, message: str) -> None:
    """The position counts characters from 1; the text begins with it."""
    with pytest.raises(SelectorError) as caught:
        parse_selector(text)
    assert str(caught.value) == f"position {position}: {message}"
    assert caught.value.position == position


def test_name_with_a_dot_gets_a_hint() -> None:
    """a.b = 1 says how such a name is written."""
    with pytest.raises(SelectorError, match=r"^position 2: .* stands in double quotes: \"a\.b\"$"):
        parse_selector("a.b = 1")


@pytest.mark.parametrize(("letter", "most"), [("a", SELECTOR_BYTES), ("é", SELECTOR_BYTES // 2)])
def test_size_is_bounded_in_bytes(letter: str, most: int) -> None:
    """SELECTOR_BYTES bytes are read; the first character beyond is the position."""
    parse_selector(letter * most)
    with pytest.raises(SelectorError, match="expected a selector of at most 8192 bytes") as caught:
        parse_selector(letter * (most + 1))
    assert caught.value.position == most + 1


WORDS = [
    *("AND", "or", "NOT", "BETWEEN", "LIKE", "IN", "IS", "NULL", "TRUE", "ESCAPE", "a", '"b-c"'),
    *("'x'", "'%'", "1", "2.5", "(", ")", ",", "=", "<>", "<", "+", "-", "*", "/", "'", '"', "!"),
    *("\n", "\x00", "é", "\ud800"),
]


@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join) | st.text(max_size=20))
def test_any_text_is_a_selector_or_one_line(text: str) -> None:
    """Whatever is written, nothing but a SelectorError comes of it, nor of a match."""
    refused = None
    try:
        parse_selector(text).matches({"a": "1", "b-c": "x"})
    except SelectorError as error:
        refused = error
    if refused is not None:
        assert 1 <= refused.position <= len(text) + 1
        assert len(str(refused).splitlines()) == 1
