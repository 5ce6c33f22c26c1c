"""Which kinds can be compared, and what each comparison then is."""

import itertools

import pytest

from vpnrouter.errors import SelectorError
from vpnrouter.selectors.build import comparison, condition_of, name_of, term_of
from vpnrouter.selectors.conditions import (
    TRUE,
    Agree,
    Always,
    Constant,
    Flag,
    FlagIs,
    Ordered,
    SameText,
    TextIs,
)
from vpnrouter.selectors.parser import (
    ConditionOperand,
    NameOperand,
    NumberOperand,
    Operand,
    TextOperand,
)

NAME = NameOperand(1, "x", "x")
TEXT = TextOperand(1, "'x'", "x")
NUMBER = NumberOperand(1, "1", Constant(1))
CONDITION = ConditionOperand(1, "TRUE", Always(TRUE))
ALL = [NAME, TEXT, NUMBER, CONDITION]

EQUAL: dict[frozenset[Operand], type] = {
    frozenset({NAME}): SameText,
    frozenset({TEXT}): Always,
    frozenset({NUMBER}): Ordered,
    frozenset({CONDITION}): Agree,
    frozenset({NAME, TEXT}): TextIs,
    frozenset({NAME, NUMBER}): Ordered,
    frozenset({NAME, CONDITION}): FlagIs,
}
"""What = makes of two kinds, in either order; other pairs have no type in common."""


@pytest.mark.parametrize(("left", "right"), list(itertools.product(ALL, repeat=2)))
def test_equality_of_kinds(left: Operand, right: Operand) -> None:
    """Each pair becomes its condition or is refused, whatever stands on the left."""
    kind = EQUAL.get(frozenset({left, right}))
    for operator in ("=", "<>"):
        if kind is None:
            with pytest.raises(SelectorError, match=r"^position 1: expected a "):
                comparison(left, operator, right)
        else:
            assert type(comparison(left, operator, right)) is kind


@pytest.mark.parametrize(("left", "right"), list(itertools.product(ALL, repeat=2)))
def test_order_is_of_numbers(left: Operand, right: Operand) -> None:
    """Texts and conditions have no order (3.8.1.1)."""
    for operator in ("<", "<=", ">", ">="):
        if {left, right} <= {NAME, NUMBER}:
            assert type(comparison(left, operator, right)) is Ordered
        else:
            with pytest.raises(SelectorError, match=f"; {operator} compares numbers$"):
                comparison(left, operator, right)


def test_what_stands_alone() -> None:
    """A property can be a condition, a number and a name; a text none of them."""
    assert type(condition_of(NAME)) is Flag
    assert term_of(NAME).value({"x": "4"}) == 4
    assert name_of(NAME, "like") == "x"
    with pytest.raises(SelectorError, match="expected a condition, not a string"):
        condition_of(TEXT)
    with pytest.raises(SelectorError, match="expected a number or a property, not a string"):
        term_of(TEXT)
    with pytest.raises(SelectorError, match="expected a property before LIKE, not a string"):
        name_of(TEXT, "like")


def test_difference_that_was_meant_as_a_name() -> None:
    """region-name = 'x' says how such a property is written."""
    difference = NumberOperand(1, "region-name", Constant(1))
    with pytest.raises(SelectorError, match=r'is written "region-name"$'):
        comparison(difference, "=", TEXT)
    with pytest.raises(SelectorError, match=r'is written "region-name"$'):
        name_of(difference, "IN")
