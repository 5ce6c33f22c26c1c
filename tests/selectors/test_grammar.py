"""The grammar and the parser made of it."""

import json
import subprocess
import sys

import pytest

from vpnrouter.errors import SelectorError
from vpnrouter.limits import SELECTOR_NUMBER_LENGTH
from vpnrouter.selectors.grammar import KEYWORDS, parser
from vpnrouter.selectors.parse import parse_selector


def test_parser_waits_for_the_first_selector() -> None:
    """Importing the package leaves lark alone; parsing loads it."""
    program = (
        "import json, sys; from vpnrouter.selectors import parse_selector;"
        "before = 'lark' in sys.modules; parse_selector('a');"
        "print(json.dumps([before, 'lark' in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [False, True]


def test_parser_is_made_once() -> None:
    """Its tables take a tenth of a second."""
    assert parser() is parser()


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
