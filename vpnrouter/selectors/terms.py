"""What has a value within a condition: numbers, properties taken as numbers, arithmetic.

The classes here and in `conditions` are a selector made ready for evaluation. Their depth is bounded
by SELECTOR_DEPTH, and so is the recursion.
"""

from collections.abc import Mapping, Sequence
from typing import final

from mypy_extensions import mypyc_attr

from vpnrouter.selectors.numbers import Number, bounded, calculated, read_number


@mypyc_attr(allow_interpreted_subclasses=True)
class Term:
    """Something whose value can be compared with a number."""

    __slots__ = ()

    def value(self, properties: Mapping[str, str]) -> Number | str | None:
        """A number; a text where a property reads as no number; None where it is unknown."""
        raise AssertionError(properties)


@final
class Constant(Term):
    """A number of the selector's text."""

    __slots__ = ("number",)

    def __init__(self, number: Number) -> None:
        self.number = number

    def value(self, properties: Mapping[str, str]) -> Number | str | None:
        """The number."""
        return self.number


@final
class PropertyTerm(Term):
    """A property that is compared with a number or calculated with."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def value(self, properties: Mapping[str, str]) -> Number | str | None:
        """The number that the property reads as; else its text, None without the property."""
        text = properties.get(self.name)
        if text is None:
            return None
        number = read_number(text)
        return text if number is None else number


@final
class Signed(Term):
    """A sign before a term. It is arithmetic: what is no number becomes unknown."""

    __slots__ = ("negative", "term")

    def __init__(self, term: Term, negative: bool) -> None:
        self.term = term
        self.negative = negative

    def value(self, properties: Mapping[str, str]) -> Number | str | None:
        """The term's number, with its sign changed for a minus."""
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

    def value(self, properties: Mapping[str, str]) -> Number | str | None:
        """The result; None as soon as one part is unknown or no number."""
        total = self.first.value(properties)
        for operator, term in self.steps:
            if total is None or isinstance(total, str):
                return None
            number = term.value(properties)
            if number is None or isinstance(number, str):
                return None
            total = calculated(operator, total, number)
        return total
