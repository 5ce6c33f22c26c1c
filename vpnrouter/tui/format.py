"""Figures and texts as the screens show them: narrow, of one width, in pieces that each have a style."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from rich.cells import cell_len, set_cell_size

from vpnrouter.limits import TUI_TEXT
from vpnrouter.management import cells
from vpnrouter.management.display import NONE
from vpnrouter.text import printable

_STEPS: Final = ("", "k", "M", "G", "T", "P", "E")


def clean(text: str) -> str:
    """A text with its control characters escaped, so that it cannot command the terminal."""
    return printable(text, TUI_TEXT)


def figure(value: float) -> str:
    """At most five characters: `0`, `999`, `1.2k`, `34k`, `5.6M`."""
    if value < 0:
        return f"-{figure(-value)}"
    step = 0
    while value >= 999.5 and step + 1 < len(_STEPS):
        value /= 1_000
        step += 1
    if step and value < 9.95:
        return f"{value:.1f}{_STEPS[step]}"
    return f"{value:.0f}{_STEPS[step]}"


def rate(value: float) -> str:
    """Messages a second, `-` for none, `<0.1` for a rate that would round to 0."""
    if value <= 0:
        return NONE
    if value < 0.05:
        return "<0.1"
    return f"{value:.1f}" if value < 0.95 else figure(value)


def size(count: float) -> str:
    """Bytes: `0B`, `999B`, `1.2kB`."""
    return f"{figure(count)}B"


def duration(seconds: float) -> str:
    """At most seven characters: `7s`, `3m12s`, `4h05m`, `12d03h`."""
    whole = max(0, int(seconds))
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}d{hour:02}h"
    if hours:
        return f"{hours}h{minute:02}m"
    return f"{minute}m{second:02}s" if minute else f"{second}s"


def age(milliseconds: int) -> str:
    """How long ago, `-` for never (negative)."""
    return NONE if milliseconds < 0 else duration(milliseconds / 1_000)


def clock(seconds: float) -> str:
    """`03:12:05` of a time since 1970, UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S")


def moment(seconds: float) -> str:
    """`2026-11-22 03:12:05` of a time since 1970, UTC; `-` for 0."""
    if not seconds:
        return NONE
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return "beyond 9999"


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
    "waiting": "bad",
    "refused": "bad",
    "stopped": "bad",
    "held": "warn",
    "connecting": "warn",
    "logging-in": "warn",
    "opening": "warn",
    "paused": "note",
    "idle": "note",
    "disabled": "note",
    "msg-vpn-disabled": "note",
    "active-consumer": "good",
    "connected": "good",
    "slow": "warn",
    "away": "note",
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


def fit(string: str, width: int, *, right: bool = False, middle: bool = False) -> str:
    """The text in exactly `width` columns of a terminal; one that is longer ends in `…`, or has it in its middle."""
    found = cells.cut(clean(string), width, middle=middle)
    blank = " " * (width - cell_len(found))
    return blank + found if right else found + blank


def width_of(line: Line) -> int:
    """Columns that a line takes."""
    return sum(cell_len(clean(string)) for string, _ in line)


def cut(line: Line, width: int) -> Line:
    """What of a line fits in `width` columns, in exactly that many; `…` stands for more of it."""
    found: list[Piece] = []
    texts = [clean(string) for string, _ in line]
    is_cut = cell_len("".join(texts).rstrip()) > width > 0
    room = width - is_cut
    for string, (_, style) in zip(texts, line, strict=True):
        length = min(cell_len(string), room)
        if string and length:
            found.append((set_cell_size(string, length), style))
        room -= length
        if not room:
            break
    if room:
        found.append((" " * room, ""))
    if is_cut:
        found.append((cells.ELLIPSIS, found[-1][1] if found else ""))
    return tuple(found)


def _fitting(string: str, columns: int) -> int:
    """How many of the first characters fit in `columns`."""
    taken = 0
    for place, character in enumerate(string):
        taken += cell_len(character)
        if taken > columns:
            return place
    return len(string)


def folded(string: str, width: int) -> list[str]:
    """A text in lines of at most `width` columns."""
    rest, lines = clean(string), []
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
