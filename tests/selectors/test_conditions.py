"""Conditions on numbers and flags: the tables of three-valued logic."""

import itertools

import pytest

from vpnrouter.selectors.conditions import (
    FALSE,
    TRUE,
    UNKNOWN,
    Agree,
    AllOf,
    Always,
    AnyOf,
    Constant,
    Flag,
    FlagIs,
    Not,
    Ordered,
    PropertyTerm,
)

F, U, T = FALSE, UNKNOWN, TRUE

AND = {(T, T): T, (T, F): F, (T, U): U, (F, F): F, (F, U): F, (U, U): U}
OR = {(T, T): T, (T, F): T, (T, U): T, (F, F): F, (F, U): U, (U, U): U}
"""Tables 3-4 and 3-5 of the specification; both operators commute."""


@pytest.mark.parametrize("pair", list(itertools.product((F, U, T), repeat=2)))
def test_tables_of_and_and_or(pair: tuple[int, int]) -> None:
    """Every pair of values, in both orders, as the specification's tables have it."""
    left, right = pair
    parts = [Always(left), Always(right)]
    key = pair if pair in AND else (right, left)
    assert AllOf(parts).test({}) == AND[key]
    assert AnyOf(parts).test({}) == OR[key]


def test_table_of_not() -> None:
    """NOT unknown is unknown."""
    assert [Not(Always(value)).test({}) for value in (T, F, U)] == [F, T, U]


@pytest.mark.parametrize("values", list(itertools.product((F, U, T), repeat=3)))
def test_many_parts_are_as_pairs(values: tuple[int, int, int]) -> None:
    """A chain of AND or OR gives what pairs from the left give."""
    a, b, c = (Always(value) for value in values)
    assert AllOf([a, b, c]).test({}) == AllOf([AllOf([a, b]), c]).test({})
    assert AnyOf([a, b, c]).test({}) == AnyOf([AnyOf([a, b]), c]).test({})


@pytest.mark.parametrize(
    ("operator", "results"),
    [
        ("=", [F, T, F]),
        ("<>", [T, F, T]),
        ("<", [T, F, F]),
        ("<=", [T, T, F]),
        (">", [F, F, T]),
        (">=", [F, T, T]),
    ],
)
def test_numbers_in_order(operator: str, results: list[int]) -> None:
    """Below, equal, above; text is false and nothing is unknown with every operator."""
    condition = Ordered(PropertyTerm("x"), operator, Constant(2))
    assert [condition.test({"x": text}) for text in ("1", "2.0", "3")] == results
    assert condition.test({"x": "two"}) == F
    assert condition.test({}) == U


def test_flags() -> None:
    """A property alone is a condition; a text that is no flag equals neither TRUE nor FALSE."""
    assert [Flag("x").test({"x": text}) for text in ("true", "False", "on")] == [T, F, F]
    assert Flag("x").test({}) == U
    is_false = FlagIs("x", Always(F), T, F)
    assert [is_false.test({"x": text}) for text in ("true", "False", "on")] == [F, T, F]
    assert is_false.test({}) == U
    assert FlagIs("x", Always(U), T, F).test({"x": "on"}) == U


def test_conditions_agree() -> None:
    """Two conditions are equal or not, unknown where one of them is."""
    assert Agree(Always(F), Always(F), T, F).test({}) == T
    assert Agree(Always(F), Always(T), T, F).test({}) == F
    assert Agree(Always(U), Always(U), T, F).test({}) == U
