"""Texts that are numbers, and arithmetic that stays bounded."""

import math

import pytest

from vpnrouter.limits import SELECTOR_NUMBER_LENGTH
from vpnrouter.selectors.conditions import bounded, calculated, read_number

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
