"""Finds out where the characters of a text are, as sets of positions that shift and meet at the speed of C.

A pattern of LIKE with `_` in it is searched for with these sets: it stands where the set of its first character, that
of its second one moved back by one, and so on, have a position in common. The sets of the last text are kept, as many
selectors look at the same one.
"""

from __future__ import annotations

from typing import Final, final

SPARSE: Final = 10
"""A character that is rarer than once in so many is looked for, place by place. It is all the same for others how often
they occur."""

KEPT_BYTES: Final = 1_048_576
"""Bytes of sets that are kept of one text."""


@final
class Positions:
    """The sets of positions of one text's characters: bit i is set for position i."""

    __slots__ = ("_bytes", "_planes", "_sets", "_text")

    def __init__(self) -> None:
        self._text = ""
        self._sets: dict[str, int] = {}
        self._bytes = 0
        self._planes: list[bytes] = []

    def look_at(self, text: str) -> None:
        """Have the sets of `text`; those of the text before are forgotten."""
        if text is self._text:
            return
        self._text = text
        self._sets = {}
        self._bytes = 0
        self._planes = []

    def knows(self, character: str) -> bool:
        """Return whether the positions of a character have been found out."""
        return character in self._sets

    def of(self, character: str) -> int:
        """Return the positions of one character."""
        known = self._sets.get(character)
        if known is not None:
            return known
        text = self._text
        count = text.count(character)
        if count == 0:
            found = 0
        elif count * SPARSE < len(text):
            found = self._searched(character)
        else:
            found = self._translated(ord(character))
        self._bytes += len(text) // 8
        if self._bytes > KEPT_BYTES:
            self._sets = {}
            self._bytes = 0
        self._sets[character] = found
        return found

    def _searched(self, character: str) -> int:
        text = self._text
        bits = bytearray(len(text) // 8 + 1)
        at = text.find(character)
        while at >= 0:
            bits[at >> 3] |= 1 << (at & 7)
            at = text.find(character, at + 1)
        return int.from_bytes(bits, "little")

    def _translated(self, code: int) -> int:
        """Return the positions of a character, from its code and the bytes of all codes in the text."""
        planes = self._planes
        if not planes:
            # The last character first: the digits of a number begin with the highest one.
            backwards = self._text[::-1]
            if backwards.isascii():
                planes = [backwards.encode("ascii")]
            else:
                data = backwards.encode("utf-32-le", "surrogatepass")
                planes = [data[0::4], data[1::4], data[2::4]]
            self._planes = planes
        found = -1
        for plane in planes:
            digits = bytearray(b"0" * 256)
            digits[code & 255] = 49
            found &= int(plane.translate(digits), 2)
            code >>= 8
        return found


POSITIONS: Final = Positions()
"""The one of the router's thread. It keeps one text, and what KEPT_BYTES allows besides."""
