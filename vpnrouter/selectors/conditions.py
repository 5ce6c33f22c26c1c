"""Evaluates the conditions of a selector in three-valued logic (Jakarta Messaging 3.1, 3.8.1.1).

`test` returns TRUE, FALSE or UNKNOWN. A comparison with an unknown value is UNKNOWN, one between values of different
types is FALSE. A property that is a number, a flag or a `Text` has that type; a plain string has none, and reads as
what it is compared with. Conditions on a property's text hold their results for yes and no, so that the form with NOT
is the same class. The depth of conditions is bounded by SELECTOR_DEPTH, and so is the recursion.

Numbers are exact in the range of a Java long, and double beyond it; what is no finite double is no number. So no chain
of operations can make a number that grows.

LIKE patterns are matched in time that grows with the text and never with its square. A pattern is cut at `%` into
pieces of fixed width. The first is compared with the beginning of the text, the last with its end, and each other one
is searched behind the one before: the leftmost place is as good as any, so no step is taken back.

What an evaluation looks at is bounded by SELECTOR_LOOKED, and METER counts what it cost.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, final

from mypy_extensions import i64, mypyc_attr

from vpnrouter.errors import SelectorError
from vpnrouter.limits import SELECTOR_LOOKED, SELECTOR_NUMBER_LENGTH
from vpnrouter.selectors.positions import POSITIONS

FALSE: Final = 0
UNKNOWN: Final = 1
TRUE: Final = 2
# NOT is TRUE minus the value: it exchanges the ends and leaves UNKNOWN where it is.


@final
class Meter:
    """Counts what evaluations of selectors cost, for who shares out the time of a turn."""

    __slots__ = ("_looked", "_spent")

    def __init__(self) -> None:
        # Characters that the evaluation going on has looked at; sixteenths of a part of a turn that were spent.
        self._looked: i64 = 0
        self._spent: i64 = 0

    def begin(self, cost: i64) -> None:
        """Begin an evaluation that costs so many sixteenths of a part of a turn, besides what it looks at."""
        self._looked = 0
        self._spent += cost

    def look(self, characters: i64) -> bool:
        """Count characters to look at; False where they are too many for one evaluation."""
        looked: i64 = self._looked + characters
        if looked > SELECTOR_LOOKED:
            return False
        self._looked = looked
        self._spent += characters >> LOOKED_SHIFT
        return True

    def work(self) -> i64:
        """Return what was spent since the last call, in parts of a turn, which are about a microsecond each."""
        spent: i64 = self._spent
        self._spent = spent & 15
        return spent >> 4


LOOKED_SHIFT: Final = 1
"""What a character costs that LIKE looks at, in sixteenths of a part of a turn: so many bits are shifted out."""

METER: Final = Meter()
"""The one of the router's thread."""

LONG_PATTERN: Final = 32
"""Characters of a pattern for which a text counts once more."""

LONG_TEXT: Final = 64
"""Characters beyond which a piece with `_` is searched for in all places at once, and two equally long texts cost
something to compare: a sixty-fourth of their characters counts."""


TRIED: Final = 8
"""What it costs to try one place, as often as to put one character of a text into a set."""


@mypyc_attr(native_class=False)
class Text(str):
    """A property that is a string by its type: it reads as no number and no flag."""

    __slots__ = ()


def flag_of(value: object) -> int:
    """Return TRUE or FALSE for a property that is a flag or reads as one, else UNKNOWN."""
    if isinstance(value, bool):
        return TRUE if value else FALSE
    return read_flag(value) if isinstance(value, str) and not isinstance(value, Text) else UNKNOWN


def number_of(value: object) -> Number | None:
    """Return the number that a property is or reads as, None for all others."""
    if isinstance(value, str):
        return None if isinstance(value, Text) else read_number(value)
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return bounded(value)
    return value if isinstance(value, float) and not math.isnan(value) else None


def truth(holds: bool) -> int:
    """Return TRUE when `holds`, else FALSE."""
    return TRUE if holds else FALSE


def read_flag(text: str) -> int:
    """Return TRUE or FALSE for a text that says so in any case of letters, else UNKNOWN."""
    size = len(text)
    if size == 4 and text.lower() == "true":
        return TRUE
    if size == 5 and text.lower() == "false":
        return FALSE
    return UNKNOWN


Number: TypeAlias = int | float
"""Compiled, a float alone would make a double of every int."""

_MOST: Final = 2**63 - 1
_LEAST: Final = -(2**63)

_SHORT: Final = 18
"""So many digits are always within the range, and need no further look."""

# A group takes part where the number is approximate: `lastindex` tells the two kinds apart.
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+(\.[0-9]*)?|(\.[0-9]+))([eE][+-]?[0-9]+)?")


def read_number(text: str) -> Number | None:
    """Return the number that a property's text reads as, None where it reads as none.

    Decimal digits with sign, point and exponent, and nothing around them. Longer than
    SELECTOR_NUMBER_LENGTH characters, it is no number.
    """
    size = len(text)
    if size <= _SHORT and text.isdecimal() and text.isascii():
        return int(text)
    if size > SELECTOR_NUMBER_LENGTH:
        return None
    match = _NUMBER.fullmatch(text)
    if match is None:
        return None
    return bounded(int(text)) if match.lastindex is None else bounded(float(text))


def read_literal(text: str) -> Number | None:
    """Return the number that a selector's text says, None for one that no double can hold.

    As in Java, one without point and exponent may end in `L`, any in `F` or `D`, which make it approximate.
    """
    last = text[-1:]
    if last in ("l", "L"):
        return read_number(text[:-1])
    if last in ("f", "F", "d", "D"):
        number = read_number(text[:-1])
        return None if number is None else float(number)
    return read_number(text)


def bounded(value: Number) -> Number | None:
    """Return the value as a number of selectors: an int within a long, a finite float, or None."""
    if isinstance(value, int):
        return value if _LEAST <= value <= _MOST else float(value)
    return value if math.isfinite(value) else None


def calculated(operator: str, left: Number, right: Number) -> Number | None:
    """Return the result of + - * or /; None for a division by zero and for what no double can hold.

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


@mypyc_attr(allow_interpreted_subclasses=True)
class Term:
    """Something whose value can be compared with a number."""

    __slots__ = ()

    def value(self, properties: Mapping[str, object]) -> Number | str | None:
        """Return a number; a text where a property is none; None where it is unknown."""
        raise AssertionError(properties)


@final
class Constant(Term):
    """A number of the selector's text."""

    __slots__ = ("number",)

    def __init__(self, number: Number) -> None:
        self.number = number

    def value(self, properties: Mapping[str, object]) -> Number | str | None:
        """Return the number."""
        return self.number


@final
class PropertyTerm(Term):
    """A property that is compared with a number or calculated with."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def value(self, properties: Mapping[str, object]) -> Number | str | None:
        """Return the number that the property is or reads as; "" for none, None without the property."""
        value = properties.get(self.name)
        if value is None:
            return None
        number = number_of(value)
        return "" if number is None else number


@final
class Signed(Term):
    """A sign before a term. It is arithmetic: what is no number becomes unknown."""

    __slots__ = ("negative", "term")

    def __init__(self, term: Term, negative: bool) -> None:
        self.term = term
        self.negative = negative

    def value(self, properties: Mapping[str, object]) -> Number | str | None:
        """Return the term's number, with its sign changed for a minus."""
        number = self.term.value(properties)
        if number is None or isinstance(number, str):
            return None
        return bounded(-number) if self.negative else number


@final
class Chain(Term):
    """Terms with operators of equal rank between them, calculated from left to right."""

    __slots__ = ("first", "steps")

    def __init__(self, first: Term, steps: Sequence[tuple[str, Term]]) -> None:
        self.first = first
        self.steps = tuple(steps)

    def value(self, properties: Mapping[str, object]) -> Number | str | None:
        """Return the result; None as soon as one part is unknown or no number."""
        total = self.first.value(properties)
        for operator, term in self.steps:
            if total is None or isinstance(total, str):
                return None
            number = term.value(properties)
            if number is None or isinstance(number, str):
                return None
            total = calculated(operator, total, number)
        return total


_ANY: Final = ""
"""Stands for `_` where a piece is a list of characters."""


PIECE_COST: Final = 180
"""Bytes that a piece of a pattern takes, without its characters."""

RUN_COST: Final = 160
"""Bytes that a run of characters takes in a piece."""

MASK_COST: Final = 140
"""Bytes that a character takes in a piece that is searched for by masks, without the bits of its positions."""


@final
class PatternPiece:
    """Part of a pattern without `%`."""

    __slots__ = ("_accept", "_masks", "_runs", "_wild", "memory", "width")

    def __init__(self, characters: Sequence[str]) -> None:
        """Take the piece's characters, each one character, or empty for any."""
        self.width = len(characters)
        self._runs = _runs(characters)
        self._wild = 0
        self._accept = 0
        self._masks: dict[str, int] = {}
        if len(self._runs) > 1:
            self._prepare(characters)
        masks = len(self._masks) * (MASK_COST + self.width // 8)
        self.memory = PIECE_COST + len(self._runs) * RUN_COST + masks

    def fits(self, text: str, at: int) -> bool:
        """Return whether the piece stands in `text` at `at`; the text is long enough."""
        for offset, run in self._runs:  # noqa: SIM110 (compiled: no generator expressions)
            if not text.startswith(run, at + offset):
                return False
        return True

    def end_in(self, text: str, start: int, stop: int) -> int:
        """Return the end of the leftmost occurrence of the piece in `text[start:stop]`, or -1."""
        runs = self._runs
        if not runs:
            return start + self.width if start + self.width <= stop else -1
        if len(runs) > 1:
            if stop - start > LONG_TEXT:
                return self._everywhere(text, start, stop)
            return self._scan(text, start, stop)
        offset, run = runs[0]
        behind = self.width - offset
        at = text.find(run, start + offset, stop - behind + len(run))
        return -1 if at < 0 else at + behind

    def _prepare(self, characters: Sequence[str]) -> None:
        """Prepare for each character the set of positions that it may have, one bit for each."""
        bit = 1
        for character in characters:
            if character == _ANY:
                self._wild |= bit
            else:
                self._masks[character] = self._masks.get(character, 0) | bit
            bit <<= 1
        for character in self._masks:
            self._masks[character] |= self._wild
        self._accept = bit >> 1

    def _scan(self, text: str, start: int, stop: int) -> int:
        """Do the same as `end_in`, for all positions at once (Shift-And): bit i is set where i + 1 characters fit."""
        masks = self._masks
        wild = self._wild
        accept = self._accept
        state = 0
        for at in range(start, stop):
            state = ((state << 1) | 1) & masks.get(text[at], wild)
            if state & accept:
                return at + 1
        return -1

    def _everywhere(self, text: str, start: int, stop: int) -> int:
        """Do the same as `end_in`, for all places at once: bit i is set where the piece may begin at `start` + i.

        A long text costs an operation for each character of the piece, and not one for each of its own.
        """
        if stop - start < self.width:
            return -1
        positions = POSITIONS
        positions.look_at(text)
        places = -1
        left = len(self._masks)
        size = stop - start
        for offset, run in self._runs:
            at = start + offset
            for character in run:
                if not positions.knows(character):
                    if places > 0 and places.bit_count() * len(self._runs) * TRIED < left * size:
                        return self._try(places, text, start, stop)
                    left -= 1
                places &= positions.of(character) >> at
                if not places:
                    return -1
                at += 1
        end = start + (places & -places).bit_length() - 1 + self.width
        return end if end <= stop else -1

    def _try(self, places: int, text: str, start: int, stop: int) -> int:
        """Do the same as `end_in`, where `places` are all at which the piece may begin."""
        at = start
        last = stop - self.width
        for byte in places.to_bytes(places.bit_length() // 8 + 1, "little"):
            if byte:
                for bit in range(8):
                    if byte >> bit & 1 and at + bit <= last and self.fits(text, at + bit):
                        return at + bit + self.width
            at += 8
        return -1


@final
class LikePattern:
    """A pattern of LIKE: `%` is any text, `_` any one character, the escape takes that away.

    `escape` is one character, or empty for none. `at` is the pattern's position for the
    SelectorError that an escape raises which stands before something else. `memory` is about how many bytes it takes.
    `looks` says how often the characters of a text count as looked at: 0 where only its ends are compared.
    """

    __slots__ = ("_between", "_first", "_last", "_least", "_one", "looks", "memory")

    def __init__(self, pattern: str, escape: str = "", at: int = 1) -> None:
        pieces = _pieces(pattern, escape, at)
        self._one = len(pieces) == 1
        self._first = pieces[0]
        self._last = pieces[-1]
        self._least = self._first.width + (0 if self._one else self._last.width)
        self._between = tuple([piece for piece in pieces[1:-1] if piece.width])
        self.memory = sum([piece.memory for piece in pieces])
        self.looks: i64 = 0
        if self._between:
            self.looks = 1 + len(pattern) // LONG_PATTERN

    def matches(self, text: str) -> bool:
        """Return whether the whole of `text` is what the pattern describes."""
        size = len(text)
        if self._one:
            return size == self._least and self._first.fits(text, 0)
        if size < self._least or not self._first.fits(text, 0):
            return False
        stop = size - self._last.width
        if not self._last.fits(text, stop):
            return False
        at = self._first.width
        for piece in self._between:
            at = piece.end_in(text, at, stop)
            if at < 0:
                return False
        return True


def _pieces(pattern: str, escape: str, at: int) -> list[PatternPiece]:
    """Return the pieces between the `%` of a pattern, one more than there are of those."""
    pieces: list[PatternPiece] = []
    piece: list[str] = []
    escaped = False
    for character in pattern:
        if escaped:
            if character not in {"%", "_", escape}:
                raise _lonely(escape, at)
            piece.append(character)
            escaped = False
        elif character == escape:
            escaped = True
        elif character == "%":
            pieces.append(PatternPiece(piece))
            piece = []
        else:
            piece.append(_ANY if character == "_" else character)
    if escaped:
        raise _lonely(escape, at)
    pieces.append(PatternPiece(piece))
    return pieces


def _lonely(escape: str, at: int) -> SelectorError:
    return SelectorError(f"expected %, _ or {escape!r} behind each escape {escape!r}", at)


def _runs(characters: Sequence[str]) -> tuple[tuple[int, str], ...]:
    """Return offset and text of the runs between the positions that any character fits."""
    runs: list[tuple[int, str]] = []
    run: list[str] = []
    for offset, character in enumerate([*characters, _ANY]):
        if character != _ANY:
            run.append(character)
        elif run:
            runs.append((offset - len(run), "".join(run)))
            run = []
    return tuple(runs)


ORDERS: Final[dict[str, tuple[int, int, int]]] = {
    "=": (FALSE, TRUE, FALSE),
    "<>": (TRUE, FALSE, TRUE),
    "<": (TRUE, FALSE, FALSE),
    "<=": (TRUE, TRUE, FALSE),
    ">": (FALSE, FALSE, TRUE),
    ">=": (FALSE, TRUE, TRUE),
}
"""For each operator the result where the left side is the smaller, the same, the greater."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Condition:
    """Something that is true, false or unknown of a message."""

    __slots__ = ()

    def test(self, properties: Mapping[str, object]) -> int:
        """Return TRUE, FALSE or UNKNOWN."""
        raise AssertionError(properties)


@final
class Always(Condition):
    """What does not depend on the message."""

    __slots__ = ("truth",)

    def __init__(self, truth: int) -> None:
        self.truth = truth

    def test(self, properties: Mapping[str, object]) -> int:
        """Return the fixed truth value."""
        return self.truth


@final
class Not(Condition):
    """The opposite; the opposite of unknown is unknown."""

    __slots__ = ("condition",)

    def __init__(self, condition: Condition) -> None:
        self.condition = condition

    def test(self, properties: Mapping[str, object]) -> int:
        """Return TRUE for FALSE, FALSE for TRUE."""
        return TRUE - self.condition.test(properties)


@final
class AllOf(Condition):
    """AND: the least of its parts."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Condition]) -> None:
        self.parts = tuple(parts)

    def test(self, properties: Mapping[str, object]) -> int:
        """Return FALSE as soon as one part is FALSE."""
        least = TRUE
        for part in self.parts:
            outcome = part.test(properties)
            if outcome < least:
                if outcome == FALSE:
                    return FALSE
                least = outcome
        return least


@final
class AnyOf(Condition):
    """OR: the greatest of its parts."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Condition]) -> None:
        self.parts = tuple(parts)

    def test(self, properties: Mapping[str, object]) -> int:
        """Return TRUE as soon as one part is TRUE."""
        greatest = FALSE
        for part in self.parts:
            outcome = part.test(properties)
            if outcome > greatest:
                if outcome == TRUE:
                    return TRUE
                greatest = outcome
        return greatest


@final
class NumericComparison(Condition):
    """Two numbers compared by one of ORDERS."""

    __slots__ = ("above", "below", "equal", "left", "right")

    def __init__(self, left: Term, operator: str, right: Term) -> None:
        self.left = left
        self.right = right
        self.below, self.equal, self.above = ORDERS[operator]

    def test(self, properties: Mapping[str, object]) -> int:
        """Return FALSE where one side reads as no number."""
        left = self.left.value(properties)
        right = self.right.value(properties)
        if left is None or right is None:
            return UNKNOWN
        if isinstance(left, str) or isinstance(right, str):
            return FALSE
        if left < right:
            return self.below
        return self.equal if left == right else self.above


@final
class BooleanProperty(Condition):
    """A property that stands as a condition: the same as `property = TRUE`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def test(self, properties: Mapping[str, object]) -> int:
        """Return TRUE where it is or reads "true", FALSE for every other value."""
        value = properties.get(self.name)
        if value is None:
            return UNKNOWN
        return TRUE if flag_of(value) == TRUE else FALSE


@final
class BooleanEquals(Condition):
    """A property compared with TRUE, FALSE or a condition."""

    __slots__ = ("condition", "different", "name", "same")

    def __init__(self, name: str, condition: Condition, same: int, different: int) -> None:
        self.name = name
        self.condition = condition
        self.same = same
        self.different = different

    def test(self, properties: Mapping[str, object]) -> int:
        """Return FALSE where the property is no flag, and reads neither "true" nor "false"."""
        value = properties.get(self.name)
        other = self.condition.test(properties)
        if value is None or other == UNKNOWN:
            return UNKNOWN
        flag = flag_of(value)
        if flag == UNKNOWN:
            return FALSE
        return self.same if flag == other else self.different


@final
class SameOutcome(Condition):
    """Two conditions compared with each other."""

    __slots__ = ("different", "left", "right", "same")

    def __init__(self, left: Condition, right: Condition, same: int, different: int) -> None:
        self.left = left
        self.right = right
        self.same = same
        self.different = different

    def test(self, properties: Mapping[str, object]) -> int:
        """Return UNKNOWN where one of them is UNKNOWN."""
        left = self.left.test(properties)
        right = self.right.test(properties)
        if UNKNOWN in {left, right}:
            return UNKNOWN
        return self.same if left == right else self.different


@final
class TextEquals(Condition):
    """A property compared with a string, character by character."""

    __slots__ = ("different", "name", "same", "text")

    def __init__(self, name: str, text: str, same: int, different: int) -> None:
        self.name = name
        self.text = text
        self.same = same
        self.different = different

    def test(self, properties: Mapping[str, object]) -> int:
        """Compare the property with the text. Return UNKNOWN where the message lacks the property."""
        text = properties.get(self.name)
        if text is None:
            return UNKNOWN
        if not isinstance(text, str):
            return FALSE
        return self.same if text == self.text else self.different


@final
class SameTexts(Condition):
    """Two properties compared: as numbers or flags where one of them has that type, else as texts."""

    __slots__ = ("different", "left", "right", "same")

    def __init__(self, left: str, right: str, same: int, different: int) -> None:
        self.left = left
        self.right = right
        self.same = same
        self.different = different

    def test(self, properties: Mapping[str, object]) -> int:
        """Return UNKNOWN without one of them, FALSE for unlike types and where there is too much to look at."""
        left = properties.get(self.left)
        right = properties.get(self.right)
        if left is None or right is None:
            return UNKNOWN
        if not isinstance(left, str) or not isinstance(right, str):
            return self._typed(left, right)
        size: i64 = len(left)
        if size > LONG_TEXT and size == len(right) and not METER.look(size // LONG_TEXT):
            return FALSE
        return self.same if left == right else self.different

    def _typed(self, left: object, right: object) -> int:
        """Compare two properties, one of which is a number or a flag."""
        if isinstance(left, bool) or isinstance(right, bool):
            flag = flag_of(left)
            other = flag_of(right)
            if UNKNOWN in {flag, other}:
                return FALSE
            return self.same if flag == other else self.different
        number = number_of(left)
        against = number_of(right)
        if number is None or against is None:
            return FALSE
        return self.same if number == against else self.different


@final
class OneOf(Condition):
    """[NOT] IN."""

    __slots__ = ("inside", "name", "outside", "texts")

    def __init__(self, name: str, texts: Sequence[str], inside: int, outside: int) -> None:
        self.name = name
        self.texts = frozenset(texts)
        self.inside = inside
        self.outside = outside

    def test(self, properties: Mapping[str, object]) -> int:
        """Look for the property in the texts. Return UNKNOWN where the message lacks the property."""
        text = properties.get(self.name)
        if text is None:
            return UNKNOWN
        if not isinstance(text, str):
            return FALSE
        return self.inside if text in self.texts else self.outside


@final
class Like(Condition):
    """[NOT] LIKE."""

    __slots__ = ("different", "name", "pattern", "same")

    def __init__(self, name: str, pattern: LikePattern, same: int, different: int) -> None:
        self.name = name
        self.pattern = pattern
        self.same = same
        self.different = different

    def test(self, properties: Mapping[str, object]) -> int:
        """Match the property with the pattern. Return UNKNOWN where the message lacks the property.

        FALSE where it is no text, or there is too much to look at.
        """
        text = properties.get(self.name)
        if text is None:
            return UNKNOWN
        if not isinstance(text, str):
            return FALSE
        pattern = self.pattern
        if pattern.looks and not METER.look(len(text) * pattern.looks):
            return FALSE
        return self.same if pattern.matches(text) else self.different


@final
class PropertyIsNull(Condition):
    """IS [NOT] NULL, which is never unknown."""

    __slots__ = ("absent", "name", "present")

    def __init__(self, name: str, absent: int, present: int) -> None:
        self.name = name
        self.absent = absent
        self.present = present

    def test(self, properties: Mapping[str, object]) -> int:
        """Return whether the property is missing; a property with an empty text is not."""
        return self.present if self.name in properties else self.absent


HEADERS: Final = frozenset(
    {
        "JMSCorrelationID",
        "JMSDeliveryMode",
        "JMSDestination",
        "JMSMessageID",
        "JMSPriority",
        "JMSReplyTo",
        "JMSTimestamp",
        "JMSType",
    }
)
"""Names that stand for a part of the message itself and never for a user property."""


LEAST_COST: Final = 2
"""What the shortest evaluation costs, in sixteenths of a part of a turn."""


@final
class Selector:
    """What `parse_selector` makes of a text; it does not change.

    `text` is the text as it was written, `names` the identifiers in it: those of the properties
    that `matches` looks at. `memory` is about how many bytes it takes. An evaluation costs `cost`, in sixteenths of a
    part of a turn, and looks at a property's characters `looks` times at most.
    """

    __slots__ = ("_condition", "cost", "looks", "memory", "names", "text")

    def __init__(
        self,
        text: str,
        names: frozenset[str],
        condition: Condition,
        memory: int,
        looks: int = 0,
    ) -> None:
        self.text = text
        self.names = names
        self.memory = memory
        self.cost: i64 = LEAST_COST + len(text) // 2
        self.looks: i64 = looks
        self._condition = condition

    def matches(self, properties: Mapping[str, object]) -> bool:
        """Return whether the condition holds of a message; unknown is no match.

        `properties` holds the message's user or application properties by name, for a repeated name the first
        value, and under the names of HEADERS those parts of the message that it has. Values are strings, which read as
        what they are compared with, or have a type: `Text`, int, float or bool.
        """
        METER.begin(self.cost)
        return self._condition.test(properties) == TRUE

    def __repr__(self) -> str:
        return f"Selector({self.text!r})"
