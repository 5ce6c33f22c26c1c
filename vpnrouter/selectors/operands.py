"""Parts of a selector while it is built: what each one is, and where it stands."""

from typing import final

from mypy_extensions import mypyc_attr

from vpnrouter.selectors.conditions import Condition
from vpnrouter.selectors.terms import Term


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
        """What it is, as an error says it."""
        raise AssertionError(self.at)


@final
class NameOperand(Operand):
    """A property; what stands around it decides how its text is read."""

    __slots__ = ("name",)

    def __init__(self, at: int, source: str, name: str) -> None:
        super().__init__(at, source)
        self.name = name

    def kind(self) -> str:
        """For errors."""
        return "a property"


@final
class TextOperand(Operand):
    """A string of the selector's text."""

    __slots__ = ("text",)

    def __init__(self, at: int, source: str, text: str) -> None:
        super().__init__(at, source)
        self.text = text

    def kind(self) -> str:
        """For errors."""
        return "a string"


@final
class NumberOperand(Operand):
    """A number or arithmetic."""

    __slots__ = ("term",)

    def __init__(self, at: int, source: str, term: Term) -> None:
        super().__init__(at, source)
        self.term = term

    def kind(self) -> str:
        """For errors."""
        return "a number"


@final
class ConditionOperand(Operand):
    """Something that is true, false or unknown."""

    __slots__ = ("condition",)

    def __init__(self, at: int, source: str, condition: Condition) -> None:
        super().__init__(at, source)
        self.condition = condition

    def kind(self) -> str:
        """For errors."""
        return "a condition"
