"""Parses selectors in one pass over the text, with a stack and without recursion.

    selector     disjunction
    disjunction  conjunction { OR conjunction }
    conjunction  negation { AND negation }
    negation     { NOT } predicate
    predicate    sum
                 sum ( = | <> | < | <= | > | >= ) sum
                 sum [NOT] BETWEEN sum AND sum
                 sum [NOT] IN "(" STRING { "," STRING } ")"
                 sum [NOT] LIKE STRING [ESCAPE STRING]
                 sum IS [NOT] NULL
    sum          product { (+ | -) product }
    product      sign { (* | /) sign }
    sign         { + | - } operand
    operand      NAME | QUOTED_NAME | STRING | NUMBER | TRUE | FALSE | "(" disjunction ")"

A syntax error says what was found and what was expected. The time is linear in the length of the text. `build` checks
which types may be on which side of an operator.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, final

from mypy_extensions import mypyc_attr

from vpnrouter.errors import SelectorError
from vpnrouter.limits import SELECTOR_NUMBER_LENGTH
from vpnrouter.selectors.conditions import Condition, Term, read_number

_GROUPS: Final[tuple[tuple[str, str, frozenset[str]], ...]] = (
    (
        "NUMBER",
        "a value",
        frozenset(
            {"ADD", "FALSE", "LPAR", "NAME", "NOT", "NUMBER", "QUOTED_NAME", "STRING", "TRUE"}
        ),
    ),
    (
        "COMPARISON",
        "an operator",
        frozenset(
            {"ADD", "AND", "BETWEEN", "COMPARISON", "IN", "IS", "LIKE", "MULTIPLY", "NOT", "OR"}
        ),
    ),
    ("MULTIPLY", "arithmetic", frozenset({"ADD", "MULTIPLY"})),
)
"""A terminal, the phrase that speaks for it and its like, and which those are."""

_PHRASES: Final[dict[str, str]] = {
    "STRING": "a string in single quotes",
    "LPAR": "'('",
    "COMMA": "','",
    "RPAR": "')'",
    "$END": "the end",
}

_HINTS: Final[dict[str, str]] = {
    "NULL": "; IS NULL asks for a missing property",
    "!": "; not equal is written <>",
    ".": '; a name that holds more than letters, digits, _ and $ stands in double quotes: "a.b"',
    "'": ": a string without its closing quote",
    '"': ": a name without its closing quote",
}
"""What helps with a text that is not expected."""

_SHOWN: Final = 24
"""Characters of the selector that an error repeats."""


def unexpected(found: str, accepted: Collection[str]) -> str:
    """One line: the names of terminals in `accepted` are expected, the text `found` is there.

    An empty `found` is the selector's end.
    """
    left = set(accepted)
    phrases = []
    for key, phrase, members in _GROUPS:
        if key in left:
            phrases.append(phrase)
            left -= members
    phrases.extend([_PHRASES.get(name, name) for name in sorted(left, key=_end_last)])
    listed = phrases[-1] if phrases else "nothing"
    if len(phrases) > 1:
        listed = f"{', '.join(phrases[:-1])} or {listed}"
    what = shown(found) if found else "the end"
    return f"expected {listed}, not {what}{_HINTS.get(found.upper(), '')}"


def shown(text: str) -> str:
    """A piece of the selector as an error shows it: short, printable, on one line."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")


def _end_last(name: str) -> tuple[bool, str]:
    return name == "$END", name


@mypyc_attr(allow_interpreted_subclasses=True)
class Operand:
    """A part of one of the four kinds below.

    `at` is its position, characters counted from 1; `source` is the part as it was written.
    """

    __slots__ = ("at", "source")

    def __init__(self, at: int, source: str) -> None:
        self.at = at
        self.source = source

    def kind(self) -> str:
        """How errors call it."""
        raise AssertionError(self.at)


@final
class NameOperand(Operand):
    """A property; what stands around it decides how its text is read."""

    __slots__ = ("name",)

    def __init__(self, at: int, source: str, name: str) -> None:
        super().__init__(at, source)
        self.name = name

    def kind(self) -> str:
        """How errors call it."""
        return "a property"


@final
class TextOperand(Operand):
    """A string of the selector's text."""

    __slots__ = ("text",)

    def __init__(self, at: int, source: str, text: str) -> None:
        super().__init__(at, source)
        self.text = text

    def kind(self) -> str:
        """How errors call it."""
        return "a string"


@final
class NumberOperand(Operand):
    """A number or arithmetic."""

    __slots__ = ("term",)

    def __init__(self, at: int, source: str, term: Term) -> None:
        super().__init__(at, source)
        self.term = term

    def kind(self) -> str:
        """How errors call it."""
        return "a number"


@final
class ConditionOperand(Operand):
    """Something that is true, false or unknown."""

    __slots__ = ("condition",)

    def __init__(self, at: int, source: str, condition: Condition) -> None:
        super().__init__(at, source)
        self.condition = condition

    def kind(self) -> str:
        """How errors call it."""
        return "a condition"


KEYWORDS: Final = frozenset(
    {"AND", "BETWEEN", "ESCAPE", "FALSE", "IN", "IS", "LIKE", "NOT", "NULL", "OR", "TRUE"}
)
"""Words that are no names, in any case of letters."""

END: Final = "$END"
"""The terminal at the end of the text."""

_TERMINALS: Final = re.compile(
    r"(?P<NAME>(?:[^\W\d]|\$)[\w$]*)"
    r'|(?P<QUOTED_NAME>"[^"]*(?:""[^"]*)*"(?!"))'
    r"|(?P<STRING>'[^']*(?:''[^']*)*'(?!'))"
    r"|(?P<NUMBER>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<COMPARISON><>|<=|>=|[<>])"
)

_ONE_CHARACTER: Final[dict[str, str]] = {
    "=": "COMPARISON",
    "+": "ADD",
    "-": "ADD",
    "*": "MULTIPLY",
    "/": "MULTIPLY",
    "(": "LPAR",
    ")": "RPAR",
    ",": "COMMA",
}
_SPACES: Final = frozenset(" \t\f\r\n")

LEAVES: Final[dict[str, str]] = {
    "NAME": "name",
    "QUOTED_NAME": "name",
    "STRING": "string",
    "NUMBER": "number",
    "TRUE": "true",
    "FALSE": "false",
}
"""Terminals that are operands by themselves, and the rule that makes one of each."""

# States of the parser: what has been read, as far as it decides which terminals may follow.
_PREDICATE: Final = 0
_OPERAND: Final = 1
_LEFT: Final = 2
_LEFT_NOT: Final = 3
_RIGHT: Final = 4
_LOW: Final = 5
_IN: Final = 6
_IN_LIST: Final = 7
_IN_ITEM: Final = 8
_LIKE: Final = 9
_PATTERN: Final = 10
_ESCAPE: Final = 11
_IS: Final = 12
_IS_NOT: Final = 13
_WHOLE: Final = 14

_ENDS: Final = frozenset({"RPAR", END})
"""The terminals that end a disjunction: the first in brackets, the other outside."""

_VALUE: Final = frozenset({"ADD", "LPAR", *LEAVES})
_JOIN: Final = frozenset({"AND", "OR", *_ENDS})
_ARITHMETIC: Final = frozenset({"ADD", "MULTIPLY"})
_TEST: Final = frozenset({"BETWEEN", "IN", "LIKE"})

ACCEPTED: Final[dict[int, frozenset[str]]] = {
    _PREDICATE: _VALUE | {"NOT"},
    _OPERAND: _VALUE,
    _LEFT: _ARITHMETIC | _TEST | _JOIN | {"COMPARISON", "IS", "NOT"},
    _LEFT_NOT: _TEST,
    _RIGHT: _ARITHMETIC | _JOIN,
    _LOW: _ARITHMETIC | {"AND"},
    _IN: frozenset({"LPAR"}),
    _IN_LIST: frozenset({"STRING"}),
    _IN_ITEM: frozenset({"COMMA", "RPAR"}),
    _LIKE: frozenset({"STRING"}),
    _PATTERN: _JOIN | {"ESCAPE"},
    _ESCAPE: frozenset({"STRING"}),
    _IS: frozenset({"NOT", "NULL"}),
    _IS_NOT: frozenset({"NULL"}),
    _WHOLE: _JOIN,
}
"""State → the terminals that may follow."""


@final
class ParsedPart:
    """A terminal, or a rule of the grammar with its parts.

    `rule` is "" for a terminal that is no operand; then `text` is its text. `start` and `end` are its place in the
    selector. In `parts`, None is a missing optional part. `build` sets `operand` and `depth`.
    """

    __slots__ = ("depth", "end", "operand", "parts", "rule", "start", "text")

    def __init__(
        self,
        rule: str,
        text: str,
        start: int,
        end: int,
        parts: list[ParsedPart | None] | None = None,
    ) -> None:
        self.rule = rule
        self.text = text
        self.start = start
        self.end = end
        self.parts = parts
        self.operand: Operand | None = None
        self.depth = 0


@final
class _OpenBracket:
    """The parser's positions in its stack and its state when a bracket opened."""

    __slots__ = ("after", "conjunction", "predicate", "product", "rule", "start", "sum")

    def __init__(
        self, start: int, conjunction: int, predicate: int, sum_: int, product: int, after: int
    ) -> None:
        self.start = start
        self.conjunction = conjunction
        self.predicate = predicate
        self.sum = sum_
        self.product = product
        self.after = after
        self.rule = ""


def parse(text: str) -> ParsedPart:
    """Parse a whole selector into one part, for `build`.

    Raises SelectorError, with the position and what was expected there, for what the grammar does not allow.
    """
    # Everything that is read and not yet part of something larger. The disjunction begins at `start`, the
    # conjunction further on, and so on. Signs and NOT stand before their operands.
    stack: list[ParsedPart | None] = []
    outside: list[_OpenBracket] = []
    start = conjunction = predicate = sum_ = product = 0
    rule = ""
    state = _PREDICATE
    after = _LEFT
    at = 0
    size = len(text)
    while True:
        while at < size and text[at] in _SPACES:
            at += 1
        word = text[at : at + 1]
        end = at + 1
        terminal = _ONE_CHARACTER.get(word, "") if word else END
        if not terminal:
            found = _TERMINALS.match(text, at)
            if found is None:
                raise SelectorError(unexpected(word, _accepted(state, outside)), at + 1)
            terminal = found.lastgroup or ""
            word = found.group()
            end = found.end()
            if terminal == "NAME":
                # Beyond ASCII, the upper case of some other letters is S.
                if word.isascii() and word.upper() in KEYWORDS:
                    terminal = word.upper()
            elif terminal == "NUMBER":
                _check_number(word, at + 1)
        if terminal not in ACCEPTED[state] or (
            terminal in _ENDS and state != _IN_ITEM and (terminal == "RPAR") != bool(outside)
        ):
            raise SelectorError(unexpected(word, _accepted(state, outside)), at + 1)
        part = ParsedPart("", word, at, end)
        at = end
        if state <= _OPERAND:
            if terminal == "NOT":
                stack.append(part)
                predicate = sum_ = product = len(stack)
            elif terminal == "ADD":
                stack.append(part)
                state = _OPERAND
            elif terminal == "LPAR":
                stack.append(part)
                here = _OpenBracket(start, conjunction, predicate, sum_, product, after)
                here.rule = rule
                outside.append(here)
                start = conjunction = predicate = sum_ = product = len(stack)
                rule = ""
                state = _PREDICATE
                after = _LEFT
            else:
                part.rule = LEAVES[terminal]
                _take(stack, part)
                state = after
            continue
        if state == _IN_ITEM:
            if terminal == "COMMA":
                state = _IN_LIST
            else:
                _close(stack, predicate, "membership", end)
                state = _WHOLE
            continue
        if terminal == "MULTIPLY":
            stack.append(part)
            state = _OPERAND
            continue
        if state in (_LEFT, _RIGHT, _LOW):
            _chain(stack, product, "product")
            if terminal == "ADD":
                stack.append(part)
                product = len(stack)
                state = _OPERAND
                continue
            _chain(stack, sum_, "sum")
        if state == _LOW:
            stack.append(part)
            sum_ = product = len(stack)
            state = _OPERAND
            after = _RIGHT
        elif terminal in ("AND", "OR") or terminal in _ENDS:
            if state == _PATTERN:
                stack.append(None)
                stack.append(None)
                rule = "like"
            if rule:
                _close(stack, predicate, rule, 0)
                rule = ""
            _negated(stack, conjunction)
            if terminal == "AND":
                stack.append(part)
            else:
                _chain(stack, conjunction, "conjunction")
                if terminal == "OR":
                    stack.append(part)
                    conjunction = len(stack)
                else:
                    _chain(stack, start, "disjunction")
                    if terminal == END:
                        whole = stack[0]
                        return ParsedPart(
                            "selector", "", whole.start if whole else 0, size, [whole]
                        )
                    inner = stack.pop()
                    bracket = stack.pop()
                    begin = bracket.start if bracket else 0
                    here = outside.pop()
                    start = here.start
                    conjunction = here.conjunction
                    predicate = here.predicate
                    sum_ = here.sum
                    product = here.product
                    after = here.after
                    rule = here.rule
                    _take(stack, ParsedPart("group", "", begin, end, [inner]))
                    state = after
                    continue
            predicate = sum_ = product = len(stack)
            state = _PREDICATE
            after = _LEFT
        elif terminal == "COMPARISON":
            stack.append(part)
            sum_ = product = len(stack)
            rule = "comparison"
            state = _OPERAND
            after = _RIGHT
        elif terminal == "IS":
            stack.append(part)
            state = _IS
        elif terminal == "NOT":
            stack.append(part)
            state = _IS_NOT if state == _IS else _LEFT_NOT
        elif terminal == "NULL":
            if state == _IS:
                stack.append(None)
            stack.append(part)
            _close(stack, predicate, "absence", end)
            state = _WHOLE
        elif terminal in _TEST:
            if state == _LEFT:
                stack.append(None)
            stack.append(part)
            if terminal == "BETWEEN":
                sum_ = product = len(stack)
                rule = "between"
                state = _OPERAND
                after = _LOW
            else:
                state = _IN if terminal == "IN" else _LIKE
        elif terminal == "STRING":
            stack.append(part)
            if state == _IN_LIST:
                state = _IN_ITEM
            elif state == _LIKE:
                state = _PATTERN
            else:
                _close(stack, predicate, "like", end)
                state = _WHOLE
        elif terminal == "ESCAPE":
            stack.append(part)
            state = _ESCAPE
        else:
            # The bracket behind IN.
            state = _IN_LIST


def _accepted(state: int, outside: list[_OpenBracket]) -> frozenset[str]:
    """The terminals that may come in this state, within so many brackets."""
    accepted = ACCEPTED[state]
    if state == _IN_ITEM or not accepted & _ENDS:
        return accepted
    return accepted - {END if outside else "RPAR"}


def _take(stack: list[ParsedPart | None], operand: ParsedPart) -> None:
    """Put an operand on the stack, with the signs that stand there before it."""
    while stack:
        sign = stack[-1]
        if sign is None or sign.rule or sign.text not in ("+", "-") or not _is_sign(stack):
            break
        stack.pop()
        operand = ParsedPart("signed", "", sign.start, operand.end, [sign, operand])
    stack.append(operand)


def _is_sign(stack: list[ParsedPart | None]) -> bool:
    """True when the + or - on top of the stack is a sign: no operand stands before it."""
    if len(stack) < 2:
        return True
    before = stack[-2]
    return before is None or not before.rule


def _negated(stack: list[ParsedPart | None], conjunction: int) -> None:
    """Join the predicate on top of the stack with the NOTs that stand before it."""
    predicate = stack.pop()
    while predicate is not None and len(stack) > conjunction:
        word = stack[-1]
        if word is None or word.rule or word.text.upper() != "NOT":
            break
        stack.pop()
        predicate = ParsedPart("negation", "", word.start, predicate.end, [word, predicate])
    stack.append(predicate)


def _chain(stack: list[ParsedPart | None], first: int, rule: str) -> None:
    """Join the stack from `first` on into one part, unless it is one already."""
    if len(stack) > first + 1:
        _close(stack, first, rule, 0)


def _close(stack: list[ParsedPart | None], first: int, rule: str, end: int) -> None:
    """Join the stack from `first` on into one part, which ends with its last one, or at `end`."""
    parts = stack[first:]
    del stack[first:]
    head = parts[0]
    if not end:
        for part in reversed(parts):
            if part is not None:
                end = part.end
                break
    stack.append(ParsedPart(rule, "", 0 if head is None else head.start, end, parts))


def _check_number(word: str, at: int) -> None:
    """Raise SelectorError for a number that is too long, has leading zeros, or does not fit into a double."""
    if len(word) > SELECTOR_NUMBER_LENGTH:
        raise SelectorError(
            f"expected a number of at most {SELECTOR_NUMBER_LENGTH} characters, not of {len(word)}",
            at,
        )
    if word.isdecimal() and word.startswith("0") and len(word) > 1:
        # Jakarta Messaging takes Java's literals, where 010 is eight.
        raise SelectorError("expected a number without leading zeros", at)
    if read_number(word) is None:
        raise SelectorError("expected a number that a double can hold", at)
