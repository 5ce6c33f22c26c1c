"""LIKE patterns, matched in time that grows with the text and never with its powers.

A pattern is cut at `%` into pieces of fixed width. The first is held against the beginning of the
text, the last against its end, each other one is searched behind the one before: the leftmost place
is as good as any. No step is ever taken back.
"""

from collections.abc import Sequence
from typing import Final, final

from vpnrouter.errors import SelectorError

_ANY: Final = ""
"""Stands for `_` where a piece is a list of characters."""


@final
class Piece:
    """Part of a pattern without `%`."""

    __slots__ = ("_accept", "_masks", "_runs", "_wild", "width")

    def __init__(self, characters: Sequence[str]) -> None:
        """Each of `characters` is one character, or empty where any one will do."""
        self.width = len(characters)
        self._runs = _runs(characters)
        self._wild = 0
        self._accept = 0
        self._masks: dict[str, int] = {}
        if len(self._runs) > 1:
            self._prepare(characters)

    def fits(self, text: str, at: int) -> bool:
        """True where the piece stands in `text` at `at`; the text is long enough."""
        for offset, run in self._runs:  # noqa: SIM110 (compiled: no generator expressions)
            if not text.startswith(run, at + offset):
                return False
        return True

    def end_in(self, text: str, start: int, stop: int) -> int:
        """The end of the leftmost place in `text[start:stop]` where the piece stands, or -1."""
        runs = self._runs
        if not runs:
            return start + self.width if start + self.width <= stop else -1
        if len(runs) > 1:
            return self._scan(text, start, stop)
        offset, run = runs[0]
        behind = self.width - offset
        at = text.find(run, start + offset, stop - behind + len(run))
        return -1 if at < 0 else at + behind

    def _prepare(self, characters: Sequence[str]) -> None:
        """For each character the set of places it may stand at, one bit a place."""
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
        """As `end_in`, all places at once (Shift-And): bit i is set where i + 1 characters fit."""
        masks = self._masks
        wild = self._wild
        accept = self._accept
        state = 0
        for at in range(start, stop):
            state = ((state << 1) | 1) & masks.get(text[at], wild)
            if state & accept:
                return at + 1
        return -1


@final
class LikePattern:
    """A pattern of LIKE: `%` is any text, `_` any one character, the escape takes that away.

    `escape` is one character, or empty for none. `at` is the pattern's position for the
    SelectorError that an escape raises which stands before something else.
    """

    __slots__ = ("_between", "_first", "_last", "_least", "_one")

    def __init__(self, pattern: str, escape: str = "", at: int = 1) -> None:
        pieces = _pieces(pattern, escape, at)
        self._one = len(pieces) == 1
        self._first = pieces[0]
        self._last = pieces[-1]
        self._least = self._first.width + (0 if self._one else self._last.width)
        self._between = tuple([piece for piece in pieces[1:-1] if piece.width])

    def matches(self, text: str) -> bool:
        """True when the whole of `text` is what the pattern describes."""
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


def _pieces(pattern: str, escape: str, at: int) -> list[Piece]:
    """The pieces between the `%` of a pattern, one more than there are of those."""
    pieces: list[Piece] = []
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
            pieces.append(Piece(piece))
            piece = []
        else:
            piece.append(_ANY if character == "_" else character)
    if escaped:
        raise _lonely(escape, at)
    pieces.append(Piece(piece))
    return pieces


def _lonely(escape: str, at: int) -> SelectorError:
    return SelectorError(f"expected %, _ or {escape!r} behind each escape {escape!r}", at)


def _runs(characters: Sequence[str]) -> tuple[tuple[int, str], ...]:
    """Offset and text of what lies between the places where any character will do."""
    runs: list[tuple[int, str]] = []
    run: list[str] = []
    for offset, character in enumerate([*characters, _ANY]):
        if character != _ANY:
            run.append(character)
        elif run:
            runs.append((offset - len(run), "".join(run)))
            run = []
    return tuple(runs)
