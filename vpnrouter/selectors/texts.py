"""Conditions on a property's text: equality, IN, LIKE, IS NULL.

Each holds the results it gives for yes and no, so that the form with NOT is the same class.
"""

from collections.abc import Mapping, Sequence
from typing import final

from vpnrouter.selectors.conditions import Condition
from vpnrouter.selectors.like import LikePattern
from vpnrouter.selectors.truth import UNKNOWN


@final
class TextIs(Condition):
    """A property compared with a string, character by character."""

    __slots__ = ("different", "name", "same", "text")

    def __init__(self, name: str, text: str, same: int, different: int) -> None:
        self.name = name
        self.text = text
        self.same = same
        self.different = different

    def test(self, properties: Mapping[str, str]) -> int:
        """UNKNOWN without the property."""
        text = properties.get(self.name)
        if text is None:
            return UNKNOWN
        return self.same if text == self.text else self.different


@final
class SameText(Condition):
    """Two properties compared as texts."""

    __slots__ = ("different", "left", "right", "same")

    def __init__(self, left: str, right: str, same: int, different: int) -> None:
        self.left = left
        self.right = right
        self.same = same
        self.different = different

    def test(self, properties: Mapping[str, str]) -> int:
        """UNKNOWN without one of them."""
        left = properties.get(self.left)
        right = properties.get(self.right)
        if left is None or right is None:
            return UNKNOWN
        return self.same if left == right else self.different


@final
class OneOf(Condition):
    """[NOT] IN."""

    __slots__ = ("inside", "name", "outside", "texts")

    def __init__(self, name: str, texts: Sequence[str], inside: int, outside: int) -> None:
        self.name = name
        self.texts = frozenset(texts)
        self.inside = inside
        self.outside = outside

    def test(self, properties: Mapping[str, str]) -> int:
        """UNKNOWN without the property."""
        text = properties.get(self.name)
        if text is None:
            return UNKNOWN
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

    def test(self, properties: Mapping[str, str]) -> int:
        """UNKNOWN without the property."""
        text = properties.get(self.name)
        if text is None:
            return UNKNOWN
        return self.same if self.pattern.matches(text) else self.different


@final
class Absent(Condition):
    """IS [NOT] NULL, which is never unknown."""

    __slots__ = ("absent", "name", "present")

    def __init__(self, name: str, absent: int, present: int) -> None:
        self.name = name
        self.absent = absent
        self.present = present

    def test(self, properties: Mapping[str, str]) -> int:
        """An empty text is a text: the property is there."""
        return self.present if self.name in properties else self.absent
