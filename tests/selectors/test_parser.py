"""Texts of selectors, and what is wrong with them."""

import contextlib
import gc
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vpnrouter import limits
from vpnrouter.errors import SelectorError
from vpnrouter.limits import SELECTOR_BYTES, SELECTOR_DEPTH, SELECTOR_NUMBER_LENGTH
from vpnrouter.selectors.build import parse_selector
from vpnrouter.selectors.conditions import (
    FALSE,
    TRUE,
    UNKNOWN,
    Always,
    Condition,
    Constant,
    Like,
    LikePattern,
    OneOf,
    PropertyIsNull,
    SameTexts,
    TextEquals,
    bounded,
    calculated,
    read_literal,
    read_number,
)
from vpnrouter.selectors.parser import (
    KEYWORDS,
    ConditionOperand,
    NameOperand,
    NumberOperand,
    TextOperand,
    excerpt,
    unexpected,
)

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


@pytest.mark.parametrize(
    ("literal", "value", "exact"),
    [
        ("5L", 5, True),
        ("5l", 5, True),
        ("0L", 0, True),
        ("9223372036854775807L", 2**63 - 1, True),
        ("1.5f", 1.5, False),
        ("1F", 1.0, False),
        ("2d", 2.0, False),
        (".5D", 0.5, False),
        ("1e3d", 1000.0, False),
    ],
)
def test_suffixes_of_java(literal: str, value: float, exact: bool) -> None:
    """An exact number may say that it is a long, an approximate one that it is a float or a double."""
    assert read_literal(literal) == value
    assert parse_selector(f"x = {literal}").matches({"x": str(value)})
    # What divides as a whole number is exact.
    assert parse_selector(f"({literal} + 1) / 4 * 4 = {literal} + 1").matches({}) == (
        not exact or (value + 1) % 4 == 0
    )


@pytest.mark.parametrize(
    "literal",
    ["0x1F", "1e", "007", "007L", "1e999", "1.5L", "1e3L", "5LL", "5Lx", "1f2", "1e999d"],
)
def test_literals_that_are_refused(literal: str) -> None:
    """Hexadecimal and octal numbers, and suffixes in other places, are refused rather than read in another way."""
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


def test_names_are_those_of_properties() -> None:
    """Each identifier once, headers among them; strings and keywords are none."""
    text = "a = 'no' AND (b + c > 1 OR NOT d) AND \"e-f\" IN ('no') AND JMSType LIKE 'no' AND a = 1"
    assert parse_selector(text).names == {"a", "b", "c", "d", "e-f", "JMSType"}


def deep(kind: str, levels: int) -> str:
    """A selector with as many levels of one kind."""
    match kind:
        case "brackets":
            return "(" * levels + "a" + ")" * levels
        case "not":
            return "NOT " * levels + "a"
        case "signs":
            return "- " * levels + "a = 1"
        case _:
            return "NOT (" * (levels // 2) + "a" + ")" * (levels // 2)


@pytest.mark.parametrize("kind", ["brackets", "not", "signs", "both"])
def test_depth_is_bounded(kind: str) -> None:
    """SELECTOR_DEPTH levels are evaluated; more, up to thousands, are refused with one line."""
    parse_selector(deep(kind, SELECTOR_DEPTH)).matches({"a": "1"})
    for levels in (SELECTOR_DEPTH + 2, 1_500):
        with pytest.raises(SelectorError, match="expected at most 32 brackets, NOT and signs"):
            parse_selector(deep(kind, levels))


def test_chains_are_not_deep() -> None:
    """A thousand terms or conditions beside one another nest nothing."""
    assert parse_selector("a = " + "+".join("1" * 1_000)).matches({"a": "1000"})
    assert parse_selector(" OR ".join(["a"] * 1_000)).matches({"a": "true"})


@pytest.mark.parametrize("text", ["JMSDestinations > 4", "a AND JMSExpiration = 1", '"JMSFoo" = 1'])
def test_header_that_messages_do_not_have(text: str) -> None:
    """A name of the JMS that stands for nothing here is refused, not silently missing."""
    with pytest.raises(SelectorError, match="expected one of the headers JMSCorrelationID, "):
        parse_selector(text)


def test_other_names_of_jms_are_properties() -> None:
    """JMSX and JMS_ begin names of properties (3.5.9, 3.5.10); lower case is anybody's."""
    assert parse_selector("JMSXGroupID = 'g'").matches({"JMSXGroupID": "g"})
    assert parse_selector("JMS_Acme = 'g' AND jmsType = 'h'").matches(
        {"JMS_Acme": "g", "jmsType": "h"}
    )


def test_escape_is_one_character() -> None:
    """Neither none nor two; the position is the escape's."""
    for escape in ("", "ab"):
        with pytest.raises(SelectorError, match=r"^position 19: expected one character"):
            parse_selector(f"x LIKE 'a' ESCAPE '{escape}'")
    assert parse_selector("x LIKE 'a''%' ESCAPE ''''").matches({"x": "a%"})


LONG = 2**63


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("57", 57),
        ("-957", -957),
        ("+62", 62),
        ("0042", 42),
        ("9223372036854775807", LONG - 1),
        ("-9223372036854775808", -LONG),
        ("7.", 7.0),
        (".5", 0.5),
        ("-95.7", -95.7),
        ("7E3", 7000.0),
        ("-57.9e-2", -0.579),
        ("1e-999", 0.0),
        ("9223372036854775808", float(LONG)),
    ],
)
def test_text_that_reads_as_a_number(text: str, number: float) -> None:
    """Digits alone are exact while a long holds them; point, exponent or size make a double."""
    found = read_number(text)
    assert found == number
    assert type(found) is type(number)


@pytest.mark.parametrize(
    "text",
    [
        *("", "-", ".", "e3", "1e", "--1", "1 ", " 1", "1_000", "1,5", "0x1F", "5L", "1.5f"),
        *("inf", "nan", "1e999", "-1e999", "١٢", "²", "12\n"),
    ],
)
def test_text_that_reads_as_none(text: str) -> None:
    """No blanks, no other digits, no Java suffixes, nothing that is not finite."""
    assert read_number(text) is None


def test_length_of_a_number_is_bounded() -> None:
    """One character more than SELECTOR_NUMBER_LENGTH is text."""
    assert read_number("0" * (SELECTOR_NUMBER_LENGTH - 1) + "7") == 7
    assert read_number("0" * SELECTOR_NUMBER_LENGTH + "7") is None


def test_bounded_leaves_no_other_number() -> None:
    """Beyond a long an exact number becomes a double; infinity and NaN become nothing."""
    assert type(bounded(LONG - 1)) is int
    assert type(bounded(LONG)) is float
    assert type(bounded(-LONG)) is int
    assert bounded(math.inf) is None
    assert bounded(math.nan) is None


@pytest.mark.parametrize(
    ("left", "operator", "right", "result"),
    [
        (7, "+", 2, 9),
        (7, "-", 2.0, 5.0),
        (7, "*", 2, 14),
        (7, "/", 2, 3),
        (-7, "/", 2, -3),
        (7, "/", -2, -3),
        (-7, "/", -2, 3),
        (7, "/", 2.0, 3.5),
        (7, "/", 0, None),
        (7.0, "/", 0.0, None),
        (1e308, "*", 10, None),
        (1e308, "+", 1e308, None),
        (1e-300, "/", 1e300, 0.0),
        (LONG - 1, "+", 1, float(LONG)),
        (-LONG, "/", -1, float(LONG)),
        (LONG - 1, "*", LONG - 1, float((LONG - 1) ** 2)),
    ],
)
def test_arithmetic(left: float, operator: str, right: float, result: float | None) -> None:
    """Exact numbers divide towards zero as in Java; what no double holds is no result."""
    found = calculated(operator, left, right)
    assert found == result
    assert type(found) is type(result)


CONDITIONS = [
    (TextEquals("x", "a", TRUE, FALSE), "a", "A"),
    (OneOf("x", ["a", "b"], TRUE, FALSE), "b", "ab"),
    (Like("x", LikePattern("a%"), TRUE, FALSE), "abc", "ba"),
    (SameTexts("x", "y", TRUE, FALSE), "why", "Why"),
]


@pytest.mark.parametrize(("condition", "inside", "outside"), CONDITIONS)
def test_yes_no_unknown(condition: Condition, inside: str, outside: str) -> None:
    """The text decides, with case; a message without the property is unknown."""
    assert condition.test({"x": inside, "y": "why"}) == TRUE
    assert condition.test({"x": outside, "y": "why"}) == FALSE
    assert condition.test({"y": "why"}) == UNKNOWN


def test_absence_is_never_unknown() -> None:
    """An empty text is there."""
    is_null = PropertyIsNull("x", TRUE, FALSE)
    assert is_null.test({}) == TRUE
    assert is_null.test({"x": ""}) == FALSE


def test_groups_speak_for_their_terminals() -> None:
    """A dozen terminals become two or three words that people use."""
    value = ["NAME", "QUOTED_NAME", "STRING", "NUMBER", "TRUE", "FALSE", "LPAR", "NOT", "ADD"]
    assert unexpected("", value) == "expected a value, not the end"
    assert unexpected("x", ["NULL", "NOT"]) == "expected NOT or NULL, not 'x'"
    behind = ["COMPARISON", "ADD", "MULTIPLY", "AND", "OR", "IS", "IN", "LIKE", "$END"]
    assert unexpected("x", behind) == "expected an operator or the end, not 'x'"
    assert unexpected("1", ["STRING"]) == "expected a string in single quotes, not '1'"


def test_common_mistakes_get_a_hint() -> None:
    """The way it is written stands behind the error."""
    assert unexpected("null", ["NUMBER"]).endswith("; IS NULL asks for a missing property")
    assert unexpected("!", ["COMPARISON"]).endswith("; not equal is written <>")


def test_shown_is_short_and_on_one_line() -> None:
    """Line ends are escaped, long texts are cut."""
    assert excerpt("a\n\u2028b") == r"'a\n\u2028b'"
    assert excerpt("x" * 99) == f"'{'x' * 24}…'"


def test_kinds_have_names_for_errors() -> None:
    """Each kind says what it is, and knows its place."""
    operands = [
        NameOperand(3, "x", "x"),
        TextOperand(3, "'x'", "x"),
        NumberOperand(3, "1", Constant(1)),
        ConditionOperand(3, "TRUE", Always(TRUE)),
    ]
    kinds = [operand.kind() for operand in operands]
    assert kinds == ["a property", "a string", "a number", "a condition"]
    assert {operand.at for operand in operands} == {3}
