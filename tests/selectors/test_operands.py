"""Parts of a selector while it is built."""

from vpnrouter.selectors.conditions import TRUE, Always, Constant
from vpnrouter.selectors.parser import (
    ConditionOperand,
    NameOperand,
    NumberOperand,
    TextOperand,
)


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
