"""What all tables of `show` share: the console, how values are written, and columns for rates while watching."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Protocol, TextIO, final

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.text import Text

from vpnrouter.management.display import NONE, Display, Form, shown
from vpnrouter.text import printable, printable_lines
from vpnrouter.units import MEGABYTE

Row = Mapping[str, Any]

WIDE: Final = 1_000
"""Columns where the output is no terminal: lines that another program reads are not folded."""

RX_RATE: Final = "watchedRxMsgRate"
TX_RATE: Final = "watchedTxMsgRate"
"""Attributes that `--watch` adds to rows: messages a second since the redraw before, None at the first."""


class Printer(Protocol):
    """Takes the objects that a table prints."""

    @property
    def room(self) -> int | None:
        """Columns of the terminal, None where there is none: other programs get everything."""

    def print(self, *objects: Any, style: str | None = None) -> None:  # noqa: ANN401 (rich takes anything)
        """Print objects, texts in this style."""


@final
class RenderBuffer:
    """Keeps what is printed, to be drawn at once, in `room` columns of a terminal."""

    def __init__(self, room: int | None = None) -> None:
        self.room = room
        self._parts: list[RenderableType] = []

    def print(self, *objects: Any, style: str | None = None) -> None:  # noqa: ANN401
        """Keep what is printed: a text is one line in this style, no object is an empty line."""
        if not objects:
            self._parts.append(Text())
        for each in objects:
            self._parts.append(line(each, style or "") if isinstance(each, str) else each)

    def drawn(self) -> Group:
        """All that was printed, as one object to draw."""
        return Group(*self._parts)


def line(text: str, style: str = "") -> Text:
    """One printable line in a style."""
    return Text(printable(text), style)


_BREAKS: Final = (((", ",), 2), ((" ",), 3), (tuple("/,;&?"), 3))
"""Behind what a line ends, the best first, unless it would be shorter than that part of the room: 2 is a half."""


def folded(text: str, room: int | None, indent: str = "") -> str:
    """Return a printable text in lines of `room` columns (None: in one), the further ones indented.

    Lines end between the parts of a list, else between words, else between the levels of a name. Only what is longer
    than a line without any of these is cut anywhere.
    """
    left = printable(text)
    lines: list[str] = []
    while room is not None and cell_len(left) > (width := max(8, room - bool(lines) * len(indent))):
        fits = next(at for at in range(len(left), 0, -1) if cell_len(left[:at]) <= width)
        # A blank that would begin the next line ends this one.
        cut = fits if left[fits] == " " else _end_of_part(left[:fits])
        lines.append(left[:cut].rstrip(" "))
        left = left[cut:].lstrip(" ")
    return f"\n{indent}".join([*lines, left])


def _end_of_part(text: str) -> int:
    """Return where the last whole part of a text ends, its whole length without any."""
    for marks, share in _BREAKS:
        end = max(at + len(mark) if (at := text.rfind(mark)) > 0 else 0 for mark in marks)
        if end > len(text) // share:
            return end
    return len(text)


@final
class _Guarded(Console):
    """The console of all commands. Each string that is printed, also in a cell, is one printable line. Control
    characters of other things that are drawn are escaped, except rich's own and line feeds.
    """

    @property
    def room(self) -> int | None:
        """Columns of the terminal, None where there is none."""
        return self.width if self.file.isatty() else None

    def render_str(self, text: str, **options: Any) -> Text:  # noqa: ANN401 (as rich has it)
        """Make a string printable before it is rendered."""
        return super().render_str(printable(text), **options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Make the text of all segments printable but for those that are rich's own controls."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable_lines(segment.text), segment.style)


def console_for(
    file: TextIO, *, markup: bool = False, width: int = WIDE, soft_wrap: bool = False
) -> _Guarded:
    """A console that prints texts to `file` as they are, since names may hold brackets and colons. `width` counts
    where `file` is no terminal.
    """
    return _Guarded(
        file=file,
        width=None if file.isatty() else width,
        markup=markup,
        emoji=False,
        highlight=False,
        soft_wrap=soft_wrap,
    )


def printer_for(out: TextIO | RenderBuffer) -> Printer:
    """A console for a file; a RenderBuffer is returned as it is."""
    return out if isinstance(out, RenderBuffer) else console_for(out)


def rate_cells(row: Row) -> tuple[str, ...]:
    """The cells of a watched row in the columns of its rates."""
    if RX_RATE not in row:
        return ()
    return tuple(NONE if row[name] is None else f"{row[name]:,.0f}" for name in (RX_RATE, TX_RATE))


def duration(seconds: int) -> str:
    """`4d 03:02:01`, without the days where there are none."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    clock = f"{hour:02}:{minute:02}:{second:02}"
    return f"{days}d {clock}" if days else clock


def moment(seconds: int) -> str:
    """Seconds since 1970 in UTC, as in ISO 8601; `-` for 0."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}" if seconds else NONE


def age(milliseconds: int) -> str:
    """`1.2 s`, or hours, minutes and seconds; `-` for a negative age."""
    if milliseconds < 0:
        return NONE
    if milliseconds < 60_000:
        return f"{milliseconds / 1_000:.1f} s"
    return duration(milliseconds // 1_000)


def megabytes(size: int) -> str:
    """Bytes as megabytes; `<0.1` for a size that would round to 0.0 and is not 0."""
    return f"{size / MEGABYTE:,.1f}" if not 0 < size < MEGABYTE // 20 else "<0.1"


def cell(display: Display, row: Row) -> str:
    """An attribute of a row as the tables of `show` write it."""
    value = display.value(row)
    match display.form:
        case Form.NUMBER | Form.LOSS | Form.BYTES:
            return f"{value or 0:,}"
        case Form.BOUND:
            return f"{value:,}" if value else display.none
        case Form.QUOTA:
            return megabytes(value)
        case Form.SECONDS:
            return NONE if value is None else duration(value)
        case Form.AGE:
            return age(value)
        case Form.AGO:
            return "never" if value < 0 else f"{age(value)} ago"
        case Form.MOMENT:
            return moment(value)
        case Form.ID:
            return str(value)
        case Form.ENABLED:
            return "enabled" if value else "disabled"
        case Form.SWITCH:
            return "on" if value else "off"
        case _:
            return shown(value)
