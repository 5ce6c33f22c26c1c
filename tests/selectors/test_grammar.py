"""The grammar and the parser made of it."""

import contextlib
import gc
import time

import pytest

from vpnrouter import limits
from vpnrouter.errors import SelectorError
from vpnrouter.limits import SELECTOR_NUMBER_LENGTH
from vpnrouter.selectors.build import parse_selector
from vpnrouter.selectors.parser import KEYWORDS

PIECES = [
    *(
        "a = 1 OR ",
        "1+",
        "- ",
        "(",
        ")",
        "NOT ",
        "'x',",
        "a LIKE '%_x' AND ",
        '""" ',
        "'",
        "<> ",
        "IN (",
    ),
    *("a BETWEEN 1 AND ", "x IS NOT NULL OR ", "size"),
]


@pytest.mark.parametrize("piece", PIECES)
def test_time_grows_with_the_length_alone(piece: str) -> None:
    """The longest text of any repeated piece, good or bad, is read in a tenth of a second."""
    text = f"a IN ({piece * (limits.SELECTOR_BYTES // len(piece))}"[: limits.SELECTOR_BYTES - 9]
    gc.freeze()  # else a collection of everything that other tests left is counted here
    began = time.thread_time()
    for tail in ("'y')", "1", "1)"):
        with contextlib.suppress(SelectorError):
            parse_selector(f"{text[6:]}{tail}")
        with contextlib.suppress(SelectorError):
            parse_selector(f"{text}{tail}")
    spent = time.thread_time() - began
    gc.unfreeze()
    assert spent < 6 * 0.1


def test_nothing_recurses() -> None:
    """Thousands of brackets, signs and NOT are refused for what they are, at the 33rd from within."""
    for opening, closing in (("(", ")"), ("- ", ""), ("NOT ", "")):
        for count in (limits.SELECTOR_DEPTH, 2_000):
            text = f"{opening * count}a{closing * count}"
            if count == limits.SELECTOR_DEPTH:
                with contextlib.suppress(SelectorError):
                    parse_selector(text)
                continue
            with pytest.raises(SelectorError, match="at most 32 brackets, NOT and signs"):
                parse_selector(text)


@pytest.mark.parametrize("keyword", sorted(KEYWORDS))
def test_keyword_is_no_name(keyword: str) -> None:
    """In any case of letters, unless it stands in double quotes or is part of a name."""
    for text in (keyword, keyword.lower(), keyword.title()):
        with pytest.raises(SelectorError):
            parse_selector(f"{text} IS NULL")
        assert parse_selector(f'"{text}" = 1').names == {text}
        assert parse_selector(f"{text}x = 1 AND x{text} = 1").names == {f"{text}x", f"x{text}"}


@pytest.mark.parametrize("name", ["$x", "_", "x$1", "größe", "日付", "iſ", "A1"])
def test_names(name: str) -> None:
    """Letters of any script, digits behind them, _ and $ (3.8.1.1)."""
    assert parse_selector(f"{name} = 'a'").names == {name}


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ('"region-name"', "region-name"),
        ('"a.b"', "a.b"),
        ('"two words"', "two words"),
        ('"say ""x"""', 'say "x"'),
        ('"x"', "x"),
    ],
)
def test_names_in_double_quotes(written: str, name: str) -> None:
    """Any name can be written so; a quote in it is doubled."""
    selector = parse_selector(f"{written} = 'a'")
    assert selector.names == {name}
    assert selector.matches({name: "a"})


@pytest.mark.parametrize("literal", ["5L", "0x1F", "1.5f", "1e", "007", "1e999"])
def test_literals_that_java_alone_has(literal: str) -> None:
    """Suffixes, hexadecimal and octal numbers are refused rather than read in another way."""
    with pytest.raises(SelectorError):
        parse_selector(f"x = {literal}")


def test_length_of_a_literal_is_bounded() -> None:
    """One character beyond SELECTOR_NUMBER_LENGTH."""
    digits = "1" * SELECTOR_NUMBER_LENGTH
    parse_selector(f"x = {digits}")
    with pytest.raises(SelectorError, match=r"^position 5: expected a number of at most 64"):
        parse_selector(f"x = {digits}1")


def test_white_space_is_javas() -> None:
    """Space, tab, form feed and line ends part words and are not needed elsewhere."""
    selector = parse_selector("\tx\r\n=\f1\nAND(y='a')OR z IN('b')")
    assert selector.matches({"x": "1", "y": "a"})
    with pytest.raises(SelectorError, match=r"^position 2: "):
        parse_selector("x\u00a0= 1")
