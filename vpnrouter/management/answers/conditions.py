"""Conditions that a request sets for the rows of its answer.

`where` has conditions, all of which the rows meet:

    where=inboundState!=ready-in-sync,bridgeName==from-*,uptime<60

Operators are == != < > <= >=. After == and != a text may hold `*` for any characters; texts are not ordered. A value
may not hold a comma.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, NamedTuple

from vpnrouter import limits
from vpnrouter.management.answers.rows import Row
from vpnrouter.management.errors import invalid

_CONDITION: Final = re.compile(r"(?P<name>[A-Za-z]+)(?P<operator>==|!=|<=|>=|<|>)(?P<value>.*)")

_TRUTH: Final = {"true": True, "false": False}


class Condition(NamedTuple):
    """One comparison of an attribute with a value as it was written."""

    name: str
    operator: str
    value: str


def parse_where(text: str, attributes: Collection[str]) -> tuple[Condition, ...]:
    """Return the conditions of a `where`; raises RequestError for what is none or names no known attribute."""
    if not text:
        return ()
    parts = text.split(",")
    if len(parts) > limits.MANAGEMENT_CONDITIONS:
        raise invalid(f"where: more than {limits.MANAGEMENT_CONDITIONS} conditions")
    conditions = []
    for part in parts:
        matched = _CONDITION.fullmatch(part)
        if matched is None:
            raise invalid(f"where: {part!r} is no condition such as enabled==true")
        condition = Condition(*matched.group("name", "operator", "value"))
        if condition.name not in attributes:
            raise invalid(f"where: there is no attribute {condition.name}")
        conditions.append(condition)
    return tuple(conditions)


def meets(row: Row, conditions: tuple[Condition, ...]) -> bool:
    """Return whether the row meets all conditions; raises RequestError for a value of the wrong kind."""
    return all(_holds(row[condition.name], condition) for condition in conditions)


def _holds(actual: object, condition: Condition) -> bool:
    name, operator, value = condition
    if isinstance(actual, bool):
        if value not in _TRUTH or operator not in {"==", "!="}:
            raise invalid(f"where: {name} is compared by == or != with true or false")
        return (actual is _TRUTH[value]) == (operator == "==")
    if isinstance(actual, int):
        return _holds_of_number(actual, condition)
    if not isinstance(actual, str) or operator not in {"==", "!="}:
        raise invalid(f"where: {name} cannot be compared by {operator}")
    return matches(value, actual) == (operator == "==")


def _holds_of_number(actual: int, condition: Condition) -> bool:
    try:
        number = int(condition.value)
    except ValueError:
        raise invalid(f"where: {condition.name} is compared with a number") from None
    match condition.operator:
        case "==":
            return actual == number
        case "!=":
            return actual != number
        case "<":
            return actual < number
        case "<=":
            return actual <= number
        case ">":
            return actual > number
    return actual >= number


def matches(pattern: str, text: str) -> bool:
    """Return whether `pattern`, in which `*` stands for any characters, is the whole of `text`."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    *middle, last = rest
    if not (text.startswith(first) and text.endswith(last)):
        return False
    at, end = len(first), len(text) - len(last)
    # The leftmost place of each piece leaves most room for the next: no going back, linear time.
    for piece in middle:
        start = text.find(piece, at, end)
        if start < 0:
            return False
        at = start + len(piece)
    return at <= end
