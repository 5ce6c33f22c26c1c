"""Numbers of selectors: exact ones in the range of a Java long, approximate ones as double.

An exact number beyond that range counts as approximate; what is no finite double is no number. So
no chain of operations can make a number that grows.
"""

import math
import re
from typing import Final, TypeAlias

from vpnrouter.limits import SELECTOR_NUMBER_LENGTH

Number: TypeAlias = int | float
"""Compiled, a float alone would make a double of every int."""

_MOST: Final = 2**63 - 1
_LEAST: Final = -(2**63)

_SHORT: Final = 18
"""So many digits are always within the range, and need no further look."""

# A group takes part where the number is approximate: `lastindex` tells the two kinds apart.
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(\.[0-9]*)?|(\.[0-9]+))([eE][+-]?[0-9]+)?")


def read_number(text: str) -> Number | None:
    """The number that a property's text reads as, None where it reads as none.

    Decimal digits with sign, point and exponent, and nothing around them. Longer than
    SELECTOR_NUMBER_LENGTH characters, it is no number.
    """
    size = len(text)
    if size <= _SHORT and text.isdecimal() and text.isascii():
        return int(text)
    if size > SELECTOR_NUMBER_LENGTH:
        return None
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    return bounded(int(text)) if found.lastindex is None else bounded(float(text))


def bounded(value: Number) -> Number | None:
    """The value as a number of selectors: an int within a long, a finite float, or None."""
    if isinstance(value, int):
        return value if _LEAST <= value <= _MOST else float(value)
    return value if math.isfinite(value) else None


def calculated(operator: str, left: Number, right: Number) -> Number | None:
    """The result of + - * or /; None for a division by zero and for what no double can hold.

    Two exact numbers divide as in Java, towards zero: -7 / 2 is -3.
    """
    if operator == "+":
        return bounded(left + right)
    if operator == "-":
        return bounded(left - right)
    if operator == "*":
        return bounded(left * right)
    if right == 0:
        return None
    if isinstance(left, int) and isinstance(right, int):
        quotient = abs(left) // abs(right)
        return bounded(quotient if (left < 0) == (right < 0) else -quotient)
    return bounded(left / right)
