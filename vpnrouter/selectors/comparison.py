"""What may be compared with what, decided by the kinds of both sides."""

import re
from typing import Final

from vpnrouter.errors import SelectorError
from vpnrouter.selectors.conditions import Agree, Always, Condition, Flag, FlagIs, Ordered
from vpnrouter.selectors.expected import shown
from vpnrouter.selectors.operands import (
    ConditionOperand,
    NameOperand,
    NumberOperand,
    Operand,
    TextOperand,
)
from vpnrouter.selectors.terms import PropertyTerm, Term
from vpnrouter.selectors.texts import SameText, TextIs
from vpnrouter.selectors.truth import FALSE, TRUE, truth

_NAME_WITH_MINUS: Final = re.compile(r"[^\W\d]\w*(?:-[^\W\d]\w*)+")


def comparison(left: Operand, operator: str, right: Operand) -> Condition:
    """The condition `left operator right`.

    Raises SelectorError for sides that have no type in common: such a comparison is never true.
    """
    if operator not in {"=", "<>"}:
        return _ordered(left, operator, right)
    same, different = (TRUE, FALSE) if operator == "=" else (FALSE, TRUE)
    # The order of kinds: whatever meets a number is compared as one, and so on.
    if isinstance(left, NumberOperand) or isinstance(right, NumberOperand):
        return _ordered(left, operator, right)
    if isinstance(left, ConditionOperand):
        if isinstance(right, ConditionOperand):
            return Agree(left.condition, right.condition, same, different)
        if isinstance(right, NameOperand):
            return FlagIs(right.name, left.condition, same, different)
        raise _not("a condition or a property", right)
    if isinstance(right, ConditionOperand):
        if isinstance(left, NameOperand):
            return FlagIs(left.name, right.condition, same, different)
        raise _not("a condition or a property", left)
    if isinstance(left, NameOperand):
        if isinstance(right, NameOperand):
            return SameText(left.name, right.name, same, different)
        if isinstance(right, TextOperand):
            return TextIs(left.name, right.text, same, different)
    elif isinstance(left, TextOperand):
        if isinstance(right, NameOperand):
            return TextIs(right.name, left.text, same, different)
        if isinstance(right, TextOperand):
            return Always(truth((left.text == right.text) == (operator == "=")))
    raise _not("a property", left)


def condition_of(operand: Operand) -> Condition:
    """The operand where a condition is due. Raises SelectorError."""
    if isinstance(operand, ConditionOperand):
        return operand.condition
    if isinstance(operand, NameOperand):
        return Flag(operand.name)
    raise _not("a condition", operand)


def term_of(operand: Operand) -> Term:
    """The operand where a number is due. Raises SelectorError."""
    if isinstance(operand, NumberOperand):
        return operand.term
    if isinstance(operand, NameOperand):
        return PropertyTerm(operand.name)
    raise _not("a number or a property", operand)


def name_of(operand: Operand, keyword: str) -> str:
    """The property's name where nothing else may stand. Raises SelectorError."""
    if isinstance(operand, NameOperand):
        return operand.name
    raise _not(f"a property before {keyword.upper()}", operand, _hint(operand))


def _ordered(left: Operand, operator: str, right: Operand) -> Condition:
    for one, other in ((left, right), (right, left)):
        if not isinstance(one, NumberOperand | NameOperand):
            hint = _hint(other)
            if not hint and operator not in {"=", "<>"}:
                hint = f"; {operator} compares numbers"
            raise _not("a number or a property", one, hint)
    return Ordered(term_of(left), operator, term_of(right))


def _not(wanted: str, found: Operand, hint: str = "") -> SelectorError:
    return SelectorError(
        f"expected {wanted}, not {found.kind()} {shown(found.source)}{hint}", found.at
    )


def _hint(operand: Operand) -> str:
    """Helps where a name with a minus in it was read as a difference."""
    if isinstance(operand, NumberOperand) and _NAME_WITH_MINUS.fullmatch(operand.source):
        return f'; a property of such a name is written "{operand.source[:64]}"'
    return ""
