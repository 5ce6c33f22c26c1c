"""Drawn selectors against an oracle that evaluates the drawn tree and never sees the text."""

import math
import operator as op
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from vpnrouter.selectors import parse_selector

Tree = tuple[Any, ...]
"""A tree: its kind, then what it has."""

OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": op.eq,
    "<>": op.ne,
    "<": op.lt,
    "<=": op.le,
    ">": op.gt,
    ">=": op.ge,
}
EQUALITY: Final = ["=", "<>"]

NAMES: Final = ["a", "b", "c", "d-e", "AND"]
TEXTS: Final = [
    *("1", "2", "-3", "007", "1.5", "2.0", "1e2", "9223372036854775807", "1e308", ".5"),
    *("", "x", "xy", "it's", "true", "FALSE", "1e999", "1_0", " 1"),
]
NUMBERS: Final = ["0", "1", "2", "3", "7", "1.5", "2.0", "1e2", "9223372036854775807", "1e308"]

MESSAGES = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(TEXTS))

name = st.sampled_from(NAMES)
text = st.sampled_from(TEXTS)
negated = st.booleans()

terms = st.recursive(
    st.tuples(st.just("number"), st.sampled_from(NUMBERS)) | st.tuples(st.just("name"), name),
    lambda inner: st.one_of(
        st.tuples(st.just("sum"), inner, st.sampled_from("+-"), inner),
        st.tuples(st.just("product"), inner, st.sampled_from("*/"), inner),
        st.tuples(st.just("sign"), st.sampled_from("+-"), inner),
    ),
    max_leaves=5,
)
arithmetic = terms.filter(lambda tree: tree[0] != "name")


def no_flag(tree: Tree) -> bool:
    """A property in brackets is a property, not the condition that it would be alone."""
    return bool(tree[0] != "flag")


predicates = st.one_of(
    [
        st.tuples(st.just("compare"), terms, st.sampled_from(sorted(OPERATORS)), arithmetic),
        st.tuples(st.just("compare"), arithmetic, st.sampled_from(sorted(OPERATORS)), terms),
        st.tuples(st.just("text"), name, st.sampled_from(EQUALITY), text),
        st.tuples(st.just("names"), name, st.sampled_from(EQUALITY), name),
        st.tuples(st.just("between"), terms, terms, terms, negated),
        st.tuples(st.just("in"), name, st.lists(text, min_size=1, max_size=3), negated),
        st.tuples(st.just("null"), name, negated),
        st.tuples(st.just("flag"), name),
        st.tuples(st.just("constant"), st.booleans()),
    ],
)
conditions = st.recursive(
    predicates,
    lambda inner: st.one_of(
        st.tuples(st.just("and"), st.lists(inner, min_size=2, max_size=3)),
        st.tuples(st.just("or"), st.lists(inner, min_size=2, max_size=3)),
        st.tuples(st.just("not"), inner),
        st.tuples(st.just("flag is"), name, st.sampled_from(EQUALITY), inner.filter(no_flag)),
        st.tuples(
            st.just("agree"),
            inner.filter(no_flag),
            st.sampled_from(EQUALITY),
            inner.filter(no_flag),
        ),
    ),
    max_leaves=8,
)

RANKS: Final = {"or": 1, "and": 2, "not": 3, "sum": 5, "product": 6, "sign": 7}
RANKS_OF_LEAVES: Final = {"number": 8, "name": 8, "flag": 8, "constant": 8}
PREDICATE: Final = 4


def quoted(value: str) -> str:
    """A string as selectors write it."""
    return "'" + value.replace("'", "''") + "'"


def named(value: str) -> str:
    """A name, in double quotes where it needs them."""
    return value if len(value) == 1 else f'"{value}"'


def written(tree: Tree, rank: int = 1) -> str:
    """The text of a tree, with brackets only where the rank of what is around it wants them."""
    own = (RANKS | RANKS_OF_LEAVES).get(tree[0], PREDICATE)
    body = unbracketed(tree)
    return body if own >= rank else f"({body})"


def unbracketed(tree: Tree) -> str:
    """The text of a tree that stands alone."""
    no = "not " if tree[-1] is True else ""
    match tree:
        case ("number", value):
            return str(value)
        case ("name" | "flag", value):
            return named(value)
        case ("constant", value):
            return "True" if value else "FALSE"
        case ("sum", left, sign, right):
            return f"{written(left, 5)} {sign} {written(right, 6)}"
        case ("product", left, sign, right):
            return f"{written(left, 6)}{sign}{written(right, 7)}"
        case ("sign", sign, inner):
            return f"{sign} {written(inner, 7)}"
        case ("compare", left, sign, right):
            return f"{written(left, 5)} {sign} {written(right, 5)}"
        case ("text", left, sign, right):
            return f"{named(left)}{sign}{quoted(right)}"
        case ("names", left, sign, right):
            return f"{named(left)} {sign} {named(right)}"
        case ("flag is", left, sign, right):
            return f"{named(left)} {sign} {written(right, 9)}"
        case ("agree", left, sign, right):
            return f"{written(left, 9)} {sign} {written(right, 9)}"
        case ("between", value, low, high, _):
            parts = f"{written(low, 5)} AND {written(high, 5)}"
            return f"{written(value, 5)} {no}Between {parts}"
        case ("in", left, values, _):
            return f"{named(left)} {no}IN ({', '.join(map(quoted, values))})"
        case ("null", left, _):
            return f"{named(left)} IS {no}NULL"
        case ("not", inner):
            return f"NOT {written(inner, 3)}"
        case (joint, parts):
            return f" {joint} ".join(written(part, RANKS[joint] + 1) for part in parts)
    raise AssertionError(tree)


def number_of(value: str) -> float | None:
    """The number a text reads as, by Python's own reading of fewer characters."""
    if not set(value) <= set("0123456789+-.eE"):
        return None
    for reading in (int, float):
        try:
            return kept(reading(value))
        except ValueError:
            continue
    return None


def kept(value: float) -> float | None:
    """Exact within a long, else a finite double, else nothing."""
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return value
    return float(value) if math.isfinite(value) else None


def value_of(tree: Tree, message: dict[str, str]) -> Any:
    """A number, the text of a property that is none, or None for unknown."""
    match tree:
        case ("number", value):
            return number_of(value)
        case ("name", value):
            found = message.get(value)
            number = None if found is None else number_of(found)
            return found if number is None else number
        case ("sign", sign, inner):
            value = value_of(inner, message)
            if value is None or isinstance(value, str):
                return None
            return kept(-value) if sign == "-" else value
        case (_, left, sign, right):
            pair = value_of(left, message), value_of(right, message)
            if any(value is None or isinstance(value, str) for value in pair):
                return None
            first, second = pair
            if sign in "+-*":
                return kept({"+": op.add, "-": op.sub, "*": op.mul}[sign](first, second))
            if second == 0:
                return None
            if isinstance(first, int) and isinstance(second, int):
                return kept(math.trunc(Fraction(first, second)))
            return kept(first / second)
    raise AssertionError(tree)


def compared(left: Any, sign: str, right: Any) -> bool | None:
    """Unknown with nothing on a side, false with a text on one."""
    if left is None or right is None:
        return None
    if isinstance(left, str) or isinstance(right, str):
        return False
    return OPERATORS[sign](left, right)


def opposite(value: bool | None) -> bool | None:
    """NOT."""
    return None if value is None else not value


def either(values: list[bool | None]) -> bool | None:
    """OR."""
    return True if True in values else (None if None in values else False)


def flag_of(found: str | None, wanted: bool | None, sign: str) -> bool | None:
    """A property compared with a truth value."""
    if found is None or wanted is None:
        return None
    if found.lower() not in {"true", "false"}:
        return False
    return OPERATORS[sign](found.lower() == "true", wanted)


def truth_of(tree: Tree, message: dict[str, str]) -> bool | None:
    """True, False, or None for unknown."""
    match tree:
        case ("constant", value):
            return bool(value)
        case ("flag", left):
            return flag_of(message.get(left), True, "=")
        case ("flag is", left, sign, right):
            return flag_of(message.get(left), truth_of(right, message), sign)
        case ("agree", left, sign, right):
            pair = truth_of(left, message), truth_of(right, message)
            return None if None in pair else OPERATORS[sign](*pair)
        case ("compare", left, sign, right):
            return compared(value_of(left, message), sign, value_of(right, message))
        case ("text", left, sign, right):
            return OPERATORS[sign](message[left], right) if left in message else None
        case ("names", left, sign, right):
            both = left in message and right in message
            return OPERATORS[sign](message[left], message[right]) if both else None
        case ("between", value, low, high, no):
            value, low, high = (value_of(part, message) for part in (value, low, high))
            if no:
                return either([compared(value, "<", low), compared(value, ">", high)])
            outside = [compared(value, ">=", low), compared(value, "<=", high)]
            return opposite(either([opposite(part) for part in outside]))
        case ("in", left, values, no):
            return (message[left] in values) is not no if left in message else None
        case ("null", left, no):
            return (left in message) is no
        case ("not", inner):
            return opposite(truth_of(inner, message))
        case ("or", parts):
            return either([truth_of(part, message) for part in parts])
        case ("and", parts):
            return opposite(either([opposite(truth_of(part, message)) for part in parts]))
    raise AssertionError(tree)


def names_in(tree: Any, kind: str = "") -> set[str]:
    """Every name that the tree has, found without knowing its kinds but by their place."""
    match tree:
        case ("name" | "flag", left):
            return {left}
        case ("number" | "constant", _):
            return set()
        case ("names", left, _, right):
            return {left, right}
        case ("text" | "in" | "null", left, *_):
            return {left}
        case ("flag is", left, _, right):
            return {left} | names_in(right)
    parts = [part for part in tree if isinstance(part, tuple | list)]
    return set().union(*(names_in(part) for part in parts)) if parts else set()


@given(conditions, MESSAGES)
def test_as_the_oracle(tree: Tree, message: dict[str, str]) -> None:
    """The selector written from a tree matches where the tree is true, its opposite where false."""
    line = written(tree)
    expected = truth_of(tree, message)
    assert parse_selector(line).matches(message) is (expected is True), line
    assert parse_selector(f"NOT ({line})").matches(message) is (expected is False), line


@given(conditions)
def test_names_are_all_that_is_looked_at(tree: Tree) -> None:
    """`names` has each property of the tree and no other."""
    assert parse_selector(written(tree)).names == names_in(tree)
