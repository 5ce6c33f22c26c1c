"""Builds the conditions of a selector from its parsed parts, and checks the type of each part."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

from vpnrouter.errors import SelectorError
from vpnrouter.limits import (
    SELECTOR_BYTES,
    SELECTOR_CACHED_LENGTH,
    SELECTOR_DEPTH,
    SELECTORS_CACHED,
)
from vpnrouter.selectors.conditions import (
    FALSE,
    HEADERS,
    TRUE,
    AllOf,
    Always,
    AnyOf,
    BooleanEquals,
    BooleanProperty,
    Chain,
    Condition,
    Constant,
    Like,
    LikePattern,
    Not,
    NumericComparison,
    OneOf,
    PropertyIsNull,
    PropertyTerm,
    SameOutcome,
    SameTexts,
    Selector,
    Signed,
    Term,
    TextEquals,
    read_literal,
    truth,
)
from vpnrouter.selectors.parser import (
    ConditionOperand,
    NameOperand,
    NumberOperand,
    Operand,
    ParsedPart,
    TextOperand,
    excerpt,
    parse,
)

_NAME_WITH_MINUS: Final = re.compile(r"[^\W\d]\w*(?:-[^\W\d]\w*)+")


def comparison(left: Operand, operator: str, right: Operand) -> Condition:
    """Return the condition `left operator right`.

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
            return SameOutcome(left.condition, right.condition, same, different)
        if isinstance(right, NameOperand):
            return BooleanEquals(right.name, left.condition, same, different)
        raise _not("a condition or a property", right)
    if isinstance(right, ConditionOperand):
        if isinstance(left, NameOperand):
            return BooleanEquals(left.name, right.condition, same, different)
        raise _not("a condition or a property", left)
    if isinstance(left, NameOperand):
        if isinstance(right, NameOperand):
            return SameTexts(left.name, right.name, same, different)
        if isinstance(right, TextOperand):
            return TextEquals(left.name, right.text, same, different)
    elif isinstance(left, TextOperand):
        if isinstance(right, NameOperand):
            return TextEquals(right.name, left.text, same, different)
        if isinstance(right, TextOperand):
            return Always(truth((left.text == right.text) == (operator == "=")))
    raise _not("a property", left)


def condition_of(operand: Operand) -> Condition:
    """Return the operand as a condition. Raises SelectorError."""
    if isinstance(operand, ConditionOperand):
        return operand.condition
    if isinstance(operand, NameOperand):
        return BooleanProperty(operand.name)
    raise _not("a condition", operand)


def term_of(operand: Operand) -> Term:
    """Return the operand as a number. Raises SelectorError."""
    if isinstance(operand, NumberOperand):
        return operand.term
    if isinstance(operand, NameOperand):
        return PropertyTerm(operand.name)
    raise _not("a number or a property", operand)


def name_of(operand: Operand, keyword: str) -> str:
    """Return the property's name where only a name is allowed. Raises SelectorError."""
    if isinstance(operand, NameOperand):
        return operand.name
    raise _not(f"a property before {keyword.upper()}", operand, _hint(operand))


def _ordered(left: Operand, operator: str, right: Operand) -> Condition:
    for operand, other in ((left, right), (right, left)):
        if not isinstance(operand, NumberOperand | NameOperand):
            hint = _hint(other)
            if not hint and operator not in {"=", "<>"}:
                hint = f"; {operator} compares numbers"
            raise _not("a number or a property", operand, hint)
    return NumericComparison(term_of(left), operator, term_of(right))


def _not(expected: str, operand: Operand, hint: str = "") -> SelectorError:
    return SelectorError(
        f"expected {expected}, not {operand.kind()} {excerpt(operand.source)}{hint}", operand.at
    )


def _hint(operand: Operand) -> str:
    """Return a hint for a name with a minus in it, which was read as a difference."""
    if isinstance(operand, NumberOperand) and _NAME_WITH_MINUS.fullmatch(operand.source):
        return f'; a property of such a name is written "{operand.source[:64]}"'
    return ""


# The arguments of a rule: its terminals and built parts, None for an optional part that is missing.
Parts: TypeAlias = list[ParsedPart | None]
Build: TypeAlias = Callable[[int, str, Parts], Operand]

_DEEPER: Final = frozenset({"group", "negation", "signed"})
"""Rules that can hold themselves at any depth."""


PART_COST: Final = 120
"""Bytes that a part takes at most, without its text."""


def build(whole: ParsedPart, text: str) -> Selector:
    """Return the selector that was parsed; `text` is all of it. Raises SelectorError."""
    names: set[str] = set()
    memory = 2 * len(text)
    looks = 0
    # Parts are built before the part that holds them, from a list, without recursion: the deepest ones first,
    # equally deep ones from left to right.
    order = [whole]
    for outer in order:
        inner = outer.parts
        if inner is not None:
            for index in range(len(inner) - 1, -1, -1):
                part = inner[index]
                if part is not None and part.rule:
                    order.append(part)
    for at in range(len(order) - 1, -1, -1):
        part = order[at]
        rule = part.rule
        source = text[part.start : part.end]
        parts = part.parts
        memory += PART_COST
        if parts is None:
            operand = _LEAVES[rule](part.start + 1, source)
            if isinstance(operand, NameOperand):
                names.add(operand.name)
            part.operand = operand
            continue
        depth = 0
        for inner_part in parts:
            if inner_part is not None and inner_part.depth > depth:
                depth = inner_part.depth
        if rule in _DEEPER:
            depth += 1
        if depth > SELECTOR_DEPTH:
            most = f"at most {SELECTOR_DEPTH} brackets, NOT and signs around one another"
            raise SelectorError(f"expected {most}", part.start + 1)
        part.depth = depth
        if rule in _TRANSPARENT:
            part.operand = _operand(parts[0])
        else:
            part.operand = _RULES[rule](part.start + 1, source, parts)
            memory += _more(part.operand)
            looks += _looks(part.operand)
    return Selector(text, frozenset(names), condition_of(_operand(whole)), memory, looks)


def _looks(operand: Operand) -> int:
    """Return how often an operand may look at the characters of a property."""
    if not isinstance(operand, ConditionOperand):
        return 0
    condition = operand.condition
    return condition.pattern.looks if isinstance(condition, Like) else 0


def _more(operand: Operand) -> int:
    """Return the bytes that the texts of an operand take, where it has many of them."""
    if not isinstance(operand, ConditionOperand):
        return 0
    condition = operand.condition
    if isinstance(condition, Like):
        return condition.pattern.memory
    return PART_COST * len(condition.texts) if isinstance(condition, OneOf) else 0


def _operand(part: ParsedPart | None) -> Operand:
    """Return the operand of a built part."""
    if part is None or part.operand is None:
        raise AssertionError("no operand")
    return part.operand


def _word(part: ParsedPart | None) -> str:
    """Return the text of a terminal."""
    if part is None:
        raise AssertionError("no terminal")
    return part.text


def _joined(at: int, source: str, parts: Parts, joins: type[AllOf | AnyOf]) -> Operand:
    conditions = [condition_of(_operand(part)) for part in parts[::2]]
    return ConditionOperand(at, source, joins(conditions))


def _disjunction(at: int, source: str, parts: Parts) -> Operand:
    return _joined(at, source, parts, AnyOf)


def _conjunction(at: int, source: str, parts: Parts) -> Operand:
    return _joined(at, source, parts, AllOf)


def _negation(at: int, source: str, parts: Parts) -> Operand:
    return ConditionOperand(at, source, Not(condition_of(_operand(parts[1]))))


def _comparison(at: int, source: str, parts: Parts) -> Operand:
    left, operator, right = parts
    condition = comparison(_operand(left), _word(operator), _operand(right))
    return ConditionOperand(at, source, condition)


def _between(at: int, source: str, parts: Parts) -> Operand:
    value, negated, _, low, _, high = parts
    term = term_of(_operand(value))
    least = term_of(_operand(low))
    most = term_of(_operand(high))
    condition: Condition
    # Not the opposite: of a text that is no number both forms are false (3.8.1.2, the examples).
    if negated is not None:
        condition = AnyOf((NumericComparison(term, "<", least), NumericComparison(term, ">", most)))
    else:
        condition = AllOf(
            (NumericComparison(term, ">=", least), NumericComparison(term, "<=", most))
        )
    return ConditionOperand(at, source, condition)


def _membership(at: int, source: str, parts: Parts) -> Operand:
    name, negated, keyword, *words = parts
    texts = [_unquoted(_word(word)) for word in words]
    yes, no = (TRUE, FALSE) if negated is None else (FALSE, TRUE)
    condition = OneOf(name_of(_operand(name), _word(keyword)), texts, yes, no)
    return ConditionOperand(at, source, condition)


def _like(at: int, source: str, parts: Parts) -> Operand:
    name, negated, keyword, pattern, _, escape = parts
    character = ""
    if escape is not None:
        character = _unquoted(_word(escape))
        if len(character) != 1:
            raise SelectorError(
                f"expected one character to escape with, not {len(character)}",
                _position(escape),
            )
    matcher = LikePattern(_unquoted(_word(pattern)), character, _position(pattern))
    yes, no = (TRUE, FALSE) if negated is None else (FALSE, TRUE)
    condition = Like(name_of(_operand(name), _word(keyword)), matcher, yes, no)
    return ConditionOperand(at, source, condition)


def _absence(at: int, source: str, parts: Parts) -> Operand:
    name, keyword, negated, _ = parts
    yes, no = (TRUE, FALSE) if negated is None else (FALSE, TRUE)
    return ConditionOperand(
        at, source, PropertyIsNull(name_of(_operand(name), _word(keyword)), yes, no)
    )


def _chain(at: int, source: str, parts: Parts) -> Operand:
    terms = [term_of(_operand(part)) for part in parts[::2]]
    operators = [_word(part) for part in parts[1::2]]
    steps = list(zip(operators, terms[1:], strict=True))
    return NumberOperand(at, source, Chain(terms[0], steps))


def _signed(at: int, source: str, parts: Parts) -> Operand:
    return NumberOperand(at, source, Signed(term_of(_operand(parts[1])), _word(parts[0]) == "-"))


def _name(at: int, source: str) -> Operand:
    name = source[1:-1].replace('""', '"') if source.startswith('"') else source
    if not name:
        raise SelectorError("expected a name between the quotes", at)
    if name.startswith("JMS") and name not in HEADERS and name[3:4] not in {"X", "_"}:
        headers = ", ".join(sorted(HEADERS))
        raise SelectorError(f"expected one of the headers {headers}, not {name[:64]!r}", at)
    return NameOperand(at, source, name)


def _string(at: int, source: str) -> Operand:
    return TextOperand(at, source, _unquoted(source))


def _number(at: int, source: str) -> Operand:
    return NumberOperand(at, source, Constant(read_literal(source) or 0))


def _true(at: int, source: str) -> Operand:
    return ConditionOperand(at, source, Always(TRUE))


def _false(at: int, source: str) -> Operand:
    return ConditionOperand(at, source, Always(FALSE))


def _unquoted(word: str) -> str:
    return word[1:-1].replace("''", "'")


def _position(part: ParsedPart | None) -> int:
    return 1 if part is None else part.start + 1


_TRANSPARENT: Final = frozenset({"group", "selector"})

_LEAVES: Final[dict[str, Callable[[int, str], Operand]]] = {
    "name": _name,
    "string": _string,
    "number": _number,
    "true": _true,
    "false": _false,
}

_RULES: Final[dict[str, Build]] = {
    "disjunction": _disjunction,
    "conjunction": _conjunction,
    "negation": _negation,
    "comparison": _comparison,
    "between": _between,
    "membership": _membership,
    "like": _like,
    "absence": _absence,
    "sum": _chain,
    "product": _chain,
    "signed": _signed,
}
"""Rule of the grammar → the function that makes an operand of its parts."""


_CACHE: Final[dict[str, Selector]] = {}
"""Text → selector: selectors do not change, and many clients use the same few."""


def parse_selector(text: str) -> Selector:
    """Return the selector that `text` describes.

    Raises SelectorError, one line with the position, where the text breaks the grammar of docs/selectors.md, compares
    what cannot be equal, names a header that messages do not have here, or exceeds SELECTOR_BYTES, SELECTOR_DEPTH or
    SELECTOR_NUMBER_LENGTH.
    """
    cached = _CACHE.get(text)
    if cached is not None:
        return cached
    _check_size(text)
    selector = build(parse(text), text)
    if len(text) <= SELECTOR_CACHED_LENGTH:
        if len(_CACHE) >= SELECTORS_CACHED:
            _CACHE.clear()
        _CACHE[text] = selector
    return selector


def _check_size(text: str) -> None:
    """Raise SelectorError at the character that goes beyond SELECTOR_BYTES."""
    encoded = text[: SELECTOR_BYTES + 1].encode("utf-8", "surrogatepass")
    if len(encoded) > SELECTOR_BYTES:
        accepted = encoded[:SELECTOR_BYTES].decode("utf-8", "ignore")
        message = f"expected a selector of at most {SELECTOR_BYTES} bytes, this one is longer"
        raise SelectorError(message, len(accepted) + 1)
