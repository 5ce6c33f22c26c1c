"""Lines of text in pieces, each with the name of a style: what screens draw, before a terminal is known."""

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size

from vpnrouter.tui.format import clean

Piece = tuple[str, str]
"""A text and the name of its style, a key of STYLES."""

Line = tuple[Piece, ...]

STYLES: Final = {
    "": "",
    "accent": "bold #7fb4ca",
    "bad": "bold #ff5d62",
    "banner": "bold #ffffff on #9e2a2b",
    "cursor": "on #2d4f67",
    "dim": "#727169",
    "good": "#98bb6c",
    "head": "bold #c8c093",
    "key": "bold #e6c384",
    "note": "#938aa9",
    "title": "bold #dcd7ba",
    "warn": "bold #ffa066",
}
"""Styles by name. States are said in words as well: colours only help."""

STATE_STYLES: Final = {
    "up": "good",
    "down": "bad",
    "stalled": "bad",
    "unbound": "bad",
    "incomplete": "warn",
    "disabled": "note",
    "msg-vpn-disabled": "note",
    "active-consumer": "good",
    "error": "bad",
    "warning": "warn",
    "notice": "accent",
    "debug": "dim",
}
"""Styles of the words that routers have for states and levels."""


def state(word: str) -> Piece:
    """A state with its colour."""
    return (word, STATE_STYLES.get(word, ""))


def text(*pieces: str | Piece) -> Line:
    """A line of pieces; a bare text has no style."""
    return tuple((piece, "") if isinstance(piece, str) else piece for piece in pieces)


def fit(written: str, width: int, *, right: bool = False) -> str:
    """The text in exactly `width` columns of a terminal; one that is longer ends in `…`."""
    cleaned = clean(written)
    length = cell_len(cleaned)
    if length > width:
        return set_cell_size(cleaned, width - 1) + "…" if width > 0 else ""
    return " " * (width - length) + cleaned if right else cleaned + " " * (width - length)


def width_of(line: Line) -> int:
    """Columns that a line takes."""
    return sum(cell_len(clean(written)) for written, _ in line)


def cut(line: Line, width: int) -> Line:
    """What of a line fits in `width` columns, in exactly that many."""
    found: list[Piece] = []
    room = width
    for written, style in line:
        rest = clean(written)
        length = cell_len(rest)
        if length > room:
            rest = set_cell_size(rest, room)
            length = room
        if rest:
            found.append((rest, style))
        room -= length
        if not room:
            break
    if room:
        found.append((" " * room, ""))
    return tuple(found)


def _fitting(written: str, columns: int) -> int:
    """How many of the first characters fit in `columns`."""
    taken = 0
    for place, character in enumerate(written):
        taken += cell_len(character)
        if taken > columns:
            return place
    return len(written)


def folded(written: str, width: int) -> list[str]:
    """A text in lines of at most `width` columns."""
    rest, lines = clean(written), []
    while cell_len(rest) > width > 0:
        place = max(1, _fitting(rest, width))
        lines.append(rest[:place])
        rest = rest[place:]
    return [*lines, rest]


def pairs(rows: Sequence[tuple[str, str | Piece]], width: int = 0) -> list[Line]:
    """Labels and values under each other; `width` of the labels is that of the longest without one."""
    most = width or max((cell_len(label) for label, _ in rows), default=0)
    return [
        ((fit(label, most) + "  ", "dim"), value if isinstance(value, tuple) else (value, ""))
        for label, value in rows
    ]
