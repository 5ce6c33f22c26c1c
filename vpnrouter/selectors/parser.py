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

A syntax error says what is there and what was expected. The time is linear in the length of the text. `build` checks
which types may be on which side of an operator.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final, final

from mypy_extensions import mypyc_attr

from vpnrouter.errors import SelectorError
from vpnrouter.limits import SELECTOR_NUMBER_LENGTH
from vpnrouter.selectors.conditions import Condition, Term, read_literal

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
"""A terminal, the phrase for a group of terminals that has it, and that group."""

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
"""Text that is not expected → a hint."""

_EXCERPT_LENGTH: Final = 24
"""Characters of the selector that an error repeats."""


def unexpected(text: str, accepted: Collection[str]) -> str:
    """Return one line that says that `text` is there, and one of the terminals in `accepted` was expected.

    An empty `text` is the selector's end.
    """
    remaining = set(accepted)
    phrases = []
    for key, phrase, members in _GROUPS:
        if key in remaining:
            phrases.append(phrase)
            remaining -= members
    phrases.extend([_PHRASES.get(name, name) for name in sorted(remaining, key=_end_last)])
    listed = phrases[-1] if phrases else "nothing"
    if len(phrases) > 1:
        listed = f"{', '.join(phrases[:-1])} or {listed}"
    actual = excerpt(text) if text else "the end"
    return f"expected {listed}, not {actual}{_HINTS.get(text.upper(), '')}"


def excerpt(text: str) -> str:
    """Return a piece of the selector for an error message: short, printable, on one line."""
    return repr(text if len(text) <= _EXCERPT_LENGTH else text[:_EXCERPT_LENGTH] + "…")


def _end_last(name: str) -> tuple[bool, str]:
    return name == "$END", name


@mypyc_attr(allow_interpreted_subclasses=True)
class Operand:
    """A part of one of the four kinds below.

    `at` is its position, characters counted from 1; `source` is its text in the selector.
    """

    __slots__ = ("at", "source")

    def __init__(self, at: int, source: str) -> None:
        self.at = at
        self.source = source

    def kind(self) -> str:
        """Return the kind of operand, for error messages."""
        raise AssertionError(self.at)


@final
class NameOperand(Operand):
    """A property; the operator decides which type it must have."""

    __slots__ = ("name",)

    def __init__(self, at: int, source: str, name: str) -> None:
        super().__init__(at, source)
        self.name = name

    def kind(self) -> str:
        """Return the kind of operand, for error messages."""
        return "a property"


@final
class TextOperand(Operand):
    """A string of the selector's text."""

    __slots__ = ("text",)

    def __init__(self, at: int, source: str, text: str) -> None:
        super().__init__(at, source)
        self.text = text

    def kind(self) -> str:
        """Return the kind of operand, for error messages."""
        return "a string"


@final
class NumberOperand(Operand):
    """A number or arithmetic."""

    __slots__ = ("term",)

    def __init__(self, at: int, source: str, term: Term) -> None:
        super().__init__(at, source)
        self.term = term

    def kind(self) -> str:
        """Return the kind of operand, for error messages."""
        return "a number"


@final
class ConditionOperand(Operand):
    """Something that is true, false or unknown."""

    __slots__ = ("condition",)

    def __init__(self, at: int, source: str, condition: Condition) -> None:
        super().__init__(at, source)
        self.condition = condition

    def kind(self) -> str:
        """Return the kind of operand, for error messages."""
        return "a condition"


KEYWORDS: Final = frozenset(
    {"AND", "BETWEEN", "ESCAPE", "FALSE", "IN", "IS", "LIKE", "NOT", "NULL", "OR", "TRUE"}
)
"""Words that cannot be names, in upper or lower case."""

END: Final = "$END"
"""The terminal at the end of the text."""

_TERMINALS: Final = re.compile(
    r"(?P<NAME>(?:[^\W\d]|\$)[\w$]*)"
    r'|(?P<QUOTED_NAME>"[^"]*(?:""[^"]*)*"(?!"))'
    r"|(?P<STRING>'[^']*(?:''[^']*)*'(?!'))"
    r"|(?P<NUMBER>[0-9]+[lL](?![\w$])"
    r"|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[fFdD](?![\w$]))?)"
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
"""Terminal that is an operand by itself → the rule that makes an operand of it."""

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

_NUMBER: Final = frozenset({_LEFT, _RIGHT, _LOW})
"""States after an operand that arithmetic may follow."""

_LIST: Final = frozenset({_IN, _IN_LIST, _IN_ITEM})

_AFTER_WORD: Final[dict[str, int]] = {
    "IN": _IN,
    "LIKE": _LIKE,
    "STRING": _PATTERN,
    "ESCAPE": _ESCAPE,
    "IS": _IS,
    "NOT": _LEFT_NOT,
}
"""A terminal in a predicate → the state after it, wherever it is the same."""


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
class _Level:
    """What is read within one bracket, or outside of all, as indices in the parser's stack.

    The disjunction begins at `start`, the conjunction there or further on, and so on. `rule` is the rule of the
    predicate, once it is known, and `after` the state that follows the next operand.
    """

    __slots__ = ("after", "conjunction", "predicate", "product", "rule", "start", "sum")

    def __init__(self, start: int) -> None:
        self.start = start
        self.conjunction = start
        self.predicate = start
        self.sum = start
        self.product = start
        self.rule = ""
        self.after = _LEFT


def parse(text: str) -> ParsedPart:
    """Parse a whole selector into one part, for `build`.

    Raises SelectorError, with the position and what was expected there, for what the grammar does not allow.
    """
    return _Parser(text).parse()


@final
class _Parser:
    """Reads a selector from left to right.

    `stack` has all that is read and not yet part of something larger; signs and NOT come before their operands.
    `outside` has the levels of the brackets that are open, the outermost first.
    """

    __slots__ = ("at", "level", "outside", "stack", "state", "terminal", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.terminal = ""
        self.state = _PREDICATE
        self.stack: list[ParsedPart | None] = []
        self.level = _Level(0)
        self.outside: list[_Level] = []

    def parse(self) -> ParsedPart:
        """Return the whole selector. Raises SelectorError."""
        while True:
            part = self._read()
            if self.state <= _OPERAND:
                self._read_operand(part)
            elif self.state in _LIST:
                self._read_list(part)
            elif self.state in _NUMBER and self._continue_sum(part):
                continue
            elif self.terminal in ("AND", "OR"):
                self._end_predicate()
                self._join(part)
            elif self.terminal in _ENDS:
                self._end_predicate()
                _chain(self.stack, self.level.conjunction, "conjunction")
                _chain(self.stack, self.level.start, "disjunction")
                if self.terminal == END:
                    whole = self.stack[0]
                    start = 0 if whole is None else whole.start
                    return ParsedPart("selector", "", start, len(self.text), [whole])
                self._close_bracket()
            else:
                self._read_test(part)

    def _read(self) -> ParsedPart:
        """Return the next terminal, and keep its name. Raises SelectorError if it is not accepted here."""
        text = self.text
        at = self.at
        while at < len(text) and text[at] in _SPACES:
            at += 1
        word = text[at : at + 1]
        terminal = _ONE_CHARACTER.get(word, "") if word else END
        if not terminal:
            match = _TERMINALS.match(text, at)
            if match is None:
                raise self._unexpected(word, at)
            terminal = match.lastgroup or ""
            word = match.group()
            if terminal == "NAME":
                # Beyond ASCII, the upper case of some other letters is S.
                if word.isascii() and word.upper() in KEYWORDS:
                    terminal = word.upper()
            elif terminal == "NUMBER":
                _check_number(word, at + 1)
        if terminal not in ACCEPTED[self.state] or (
            terminal in _ENDS
            and self.state != _IN_ITEM
            and (terminal == "RPAR") != bool(self.outside)
        ):
            raise self._unexpected(word, at)
        self.terminal = terminal
        self.at = at + max(1, len(word))
        return ParsedPart("", word, at, self.at)

    def _unexpected(self, word: str, at: int) -> SelectorError:
        accepted = ACCEPTED[self.state]
        if self.state != _IN_ITEM and accepted & _ENDS:
            accepted -= {END if self.outside else "RPAR"}
        return SelectorError(unexpected(word, accepted), at + 1)

    def _read_operand(self, part: ParsedPart) -> None:
        """Take an operand, or what comes before one: NOT, a sign or an opening bracket."""
        terminal = self.terminal
        if terminal in LEAVES:
            part.rule = LEAVES[terminal]
            _take(self.stack, part)
            self.state = self.level.after
            return
        self.stack.append(part)
        if terminal == "NOT":
            self.level.predicate = len(self.stack)
            self._begin_sum()
        elif terminal == "ADD":
            self.state = _OPERAND
        else:
            self.outside.append(self.level)
            self.level = _Level(len(self.stack))
            self.state = _PREDICATE

    def _begin_sum(self) -> None:
        self.level.sum = self.level.product = len(self.stack)

    def _close_bracket(self) -> None:
        inner = self.stack.pop()
        bracket = self.stack.pop()
        start = 0 if bracket is None else bracket.start
        self.level = self.outside.pop()
        _take(self.stack, ParsedPart("group", "", start, self.at, [inner]))
        self.state = self.level.after

    def _read_list(self, part: ParsedPart) -> None:
        """Take a terminal after IN."""
        if self.terminal == "STRING":
            self.stack.append(part)
            self.state = _IN_ITEM
        elif self.terminal == "RPAR":
            self._close_predicate("membership")
        else:
            self.state = _IN_LIST

    def _continue_sum(self, part: ParsedPart) -> bool:
        """Take an operator, or AND between the bounds of BETWEEN. Return False where the sum ends instead."""
        if self.terminal == "MULTIPLY":
            self.stack.append(part)
        else:
            _chain(self.stack, self.level.product, "product")
            if self.terminal == "ADD":
                self.stack.append(part)
                self.level.product = len(self.stack)
            else:
                _chain(self.stack, self.level.sum, "sum")
                if self.state != _LOW:
                    return False
                self.stack.append(part)
                self._begin_sum()
                self.level.after = _RIGHT
        self.state = _OPERAND
        return True

    def _end_predicate(self) -> None:
        """Make one part of the predicate that ends here, with the NOTs before it."""
        level = self.level
        if self.state == _PATTERN:
            self.stack.extend((None, None))
            level.rule = "like"
        if level.rule:
            _close(self.stack, level.predicate, level.rule, 0)
            level.rule = ""
        _negated(self.stack, level.conjunction)

    def _join(self, part: ParsedPart) -> None:
        """Take AND or OR between predicates."""
        level = self.level
        if self.terminal == "OR":
            _chain(self.stack, level.conjunction, "conjunction")
        self.stack.append(part)
        level.predicate = len(self.stack)
        if self.terminal == "OR":
            level.conjunction = level.predicate
        self._begin_sum()
        self.state = _PREDICATE
        level.after = _LEFT

    def _read_test(self, part: ParsedPart) -> None:
        """Take a terminal of what a predicate tests, after its first sum."""
        terminal = self.terminal
        state = self.state
        # The optional NOT that is missing.
        if (terminal in _TEST and state == _LEFT) or (terminal == "NULL" and state == _IS):
            self.stack.append(None)
        self.stack.append(part)
        if terminal in ("COMPARISON", "BETWEEN"):
            self._begin_sum()
            self.level.rule = terminal.lower()
            self.level.after = _LOW if terminal == "BETWEEN" else _RIGHT
            self.state = _OPERAND
        elif terminal == "NULL":
            self._close_predicate("absence")
        elif state == _ESCAPE:
            self._close_predicate("like")
        else:
            self.state = _IS_NOT if state == _IS else _AFTER_WORD[terminal]

    def _close_predicate(self, rule: str) -> None:
        """Make one part of a predicate that ends with the last terminal."""
        _close(self.stack, self.level.predicate, rule, self.at)
        self.state = _WHOLE


def _take(stack: list[ParsedPart | None], operand: ParsedPart) -> None:
    """Put an operand on the stack, with the signs before it."""
    while stack:
        sign = stack[-1]
        if sign is None or sign.rule or sign.text not in ("+", "-") or not _is_sign(stack):
            break
        stack.pop()
        operand = ParsedPart("signed", "", sign.start, operand.end, [sign, operand])
    stack.append(operand)


def _is_sign(stack: list[ParsedPart | None]) -> bool:
    """Return whether the + or - on top of the stack is a sign: no operand is before it."""
    if len(stack) < 2:
        return True
    before = stack[-2]
    return before is None or not before.rule


def _negated(stack: list[ParsedPart | None], conjunction: int) -> None:
    """Join the predicate on top of the stack with the NOTs before it."""
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
    digits = word.rstrip("lL")
    if digits.isdecimal() and digits.startswith("0") and len(digits) > 1:
        # Jakarta Messaging takes Java's literals, where 010 is eight.
        raise SelectorError("expected a number without leading zeros", at)
    if read_literal(word) is None:
        raise SelectorError("expected a number that a double can hold", at)
