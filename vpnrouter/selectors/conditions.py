"""Conditions on numbers and on flags, and what joins conditions, in three-valued logic.

`test` gives TRUE, FALSE or UNKNOWN of `truth`. A comparison with something unknown is UNKNOWN, one
between values of different types is FALSE (Jakarta Messaging 3.1, 3.8.1.1).
"""

from collections.abc import Mapping, Sequence
from typing import Final, final

from mypy_extensions import mypyc_attr

from vpnrouter.selectors.terms import Term
from vpnrouter.selectors.truth import FALSE, TRUE, UNKNOWN, read_flag

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

    def test(self, properties: Mapping[str, str]) -> int:
        """TRUE, FALSE or UNKNOWN."""
        raise AssertionError(properties)


@final
class Always(Condition):
    """What does not depend on the message."""

    __slots__ = ("truth",)

    def __init__(self, truth: int) -> None:
        self.truth = truth

    def test(self, properties: Mapping[str, str]) -> int:
        """The same for each message."""
        return self.truth


@final
class Not(Condition):
    """The opposite; the opposite of unknown is unknown."""

    __slots__ = ("condition",)

    def __init__(self, condition: Condition) -> None:
        self.condition = condition

    def test(self, properties: Mapping[str, str]) -> int:
        """TRUE for FALSE, FALSE for TRUE."""
        return TRUE - self.condition.test(properties)


@final
class AllOf(Condition):
    """AND: the least of its parts."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Condition]) -> None:
        self.parts = tuple(parts)

    def test(self, properties: Mapping[str, str]) -> int:
        """FALSE as soon as one part is."""
        least = TRUE
        for part in self.parts:
            found = part.test(properties)
            if found < least:
                if found == FALSE:
                    return FALSE
                least = found
        return least


@final
class AnyOf(Condition):
    """OR: the greatest of its parts."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Condition]) -> None:
        self.parts = tuple(parts)

    def test(self, properties: Mapping[str, str]) -> int:
        """TRUE as soon as one part is."""
        greatest = FALSE
        for part in self.parts:
            found = part.test(properties)
            if found > greatest:
                if found == TRUE:
                    return TRUE
                greatest = found
        return greatest


@final
class Ordered(Condition):
    """Two numbers compared by one of ORDERS."""

    __slots__ = ("above", "below", "equal", "left", "right")

    def __init__(self, left: Term, operator: str, right: Term) -> None:
        self.left = left
        self.right = right
        self.below, self.equal, self.above = ORDERS[operator]

    def test(self, properties: Mapping[str, str]) -> int:
        """FALSE where one side reads as no number."""
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
class Flag(Condition):
    """A property that stands as a condition: the same as `property = TRUE`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def test(self, properties: Mapping[str, str]) -> int:
        """TRUE where it reads "true", FALSE for every other text."""
        text = properties.get(self.name)
        if text is None:
            return UNKNOWN
        return TRUE if read_flag(text) == TRUE else FALSE


@final
class FlagIs(Condition):
    """A property compared with TRUE, FALSE or a condition."""

    __slots__ = ("condition", "different", "name", "same")

    def __init__(self, name: str, condition: Condition, same: int, different: int) -> None:
        self.name = name
        self.condition = condition
        self.same = same
        self.different = different

    def test(self, properties: Mapping[str, str]) -> int:
        """FALSE where the property reads neither "true" nor "false"."""
        text = properties.get(self.name)
        other = self.condition.test(properties)
        if text is None or other == UNKNOWN:
            return UNKNOWN
        flag = read_flag(text)
        if flag == UNKNOWN:
            return FALSE
        return self.same if flag == other else self.different


@final
class Agree(Condition):
    """Two conditions compared with each other."""

    __slots__ = ("different", "left", "right", "same")

    def __init__(self, left: Condition, right: Condition, same: int, different: int) -> None:
        self.left = left
        self.right = right
        self.same = same
        self.different = different

    def test(self, properties: Mapping[str, str]) -> int:
        """UNKNOWN where one of them is."""
        left = self.left.test(properties)
        right = self.right.test(properties)
        if UNKNOWN in {left, right}:
            return UNKNOWN
        return self.same if left == right else self.different
