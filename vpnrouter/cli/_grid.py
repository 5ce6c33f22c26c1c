"""Prints columns below each other. On a terminal a row is one line: what has no room leaves in an order, or is cut."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.text import Text

from vpnrouter.cli._format import Printer
from vpnrouter.management.cells import cut
from vpnrouter.management.display import Form
from vpnrouter.text import printable

_MOST_PADDED: Final = 60
"""The most columns that a column is padded to where there is no terminal, however long a name is."""

_LEAST_TEXT: Final = 16
"""Columns of a terminal that a text keeps when it is cut."""

_GAP: Final = "  "

_CUT: Final = frozenset({Form.TEXT, Form.NAME, Form.COUNTS})
"""Numbers and states are never cut: what is left of them would say something else."""


class Column(NamedTuple):
    """A column. `leaves` is its place in the order in which columns leave a narrow terminal, 0 for one that stays;
    `narrow` the title where there is no room for `title`.
    """

    title: str
    form: Form = Form.TEXT
    leaves: int = 0
    narrow: str = ""


class Row(NamedTuple):
    """What stands in the columns, and the style of all of it."""

    cells: Sequence[str]
    style: str = ""


class Grid:
    """Prints rows, which may come in several blocks: only the first has titles, and columns never get narrower, so
    that blocks stand below each other.
    """

    def __init__(self, printer: Printer, columns: Sequence[Column]) -> None:
        self._printer = printer
        self._columns = columns
        self._titles = [column.title for column in columns]
        self._widths: dict[int, int] = {}
        """Of the columns that are shown, by their places."""

    @property
    def left_out(self) -> int:
        """Columns that have no room."""
        return len(self._columns) - len(self._widths)

    def print(self, rows: Sequence[Row]) -> None:
        """Print a block of rows."""
        block = [Row([printable(text) for text in row.cells], row.style) for row in rows]
        longest = [
            max((cell_len(row.cells[at]) for row in block), default=0) for at in self._places
        ]
        lines = []
        if not self._widths:
            self._begin(longest)
            lines.append(Text(self._line(self._titles), style="bold"))
        self._grow(longest)
        lines += [Text(self._line(row.cells), style=row.style) for row in block]
        self._printer.print(Text("\n", no_wrap=True, overflow="ignore").join(lines))

    @property
    def _places(self) -> range:
        return range(len(self._columns))

    def _begin(self, longest: Sequence[int]) -> None:
        """Choose the columns of the first block, and with it of all."""
        room = self._printer.room
        widths = [max(pair) for pair in zip(map(cell_len, self._titles), longest, strict=True)]
        if room is None:
            self._widths = {at: min(width, _MOST_PADDED) for at, width in enumerate(widths)}
            return
        if _needed(widths) > room:
            self._titles = [column.narrow or column.title for column in self._columns]
            widths = [max(pair) for pair in zip(map(cell_len, self._titles), longest, strict=True)]
        self._widths = self._fitted(widths, room)

    def _fitted(self, widths: Sequence[int], room: int) -> dict[int, int]:
        """The columns that stay, with their widths: some leave until the rest fit if they are cut, then these are cut,
        first the one that would have been the next to leave, and the first column last.
        """
        least = {at: self._least(at, widths[at], room) for at in self._places}
        places = {at: self._columns[at].leaves for at in self._places}
        order = sorted(places, key=lambda at: (not places[at], places[at], -at))
        while _needed(least.values()) > room and places[order[0]]:
            del least[order.pop(0)]
        if self._columns[0].form in _CUT:
            least[0] = min(least[0], _LEAST_TEXT)
        found = {at: widths[at] for at in self._places if at in least}
        for at in order:
            over = max(0, _needed(found.values()) - room)
            found[at] -= min(over, found[at] - least[at])
        return found

    def _least(self, at: int, width: int, room: int) -> int:
        if self._columns[at].form not in _CUT:
            return width
        most = room // 2 if at == 0 else max(_LEAST_TEXT, cell_len(self._titles[at]))
        return min(width, most)

    def _grow(self, longest: Sequence[int]) -> None:
        room = self._printer.room
        for at, width in self._widths.items():
            wanted = max(width, longest[at])
            if room is not None:
                wanted = min(wanted, width + max(0, room - _needed(self._widths.values())))
            else:
                wanted = min(wanted, max(width, _MOST_PADDED))
            self._widths[at] = wanted

    def _line(self, cells: Sequence[str]) -> str:
        """Cells beside each other. A table of rich takes a second for a thousand rows."""
        padded = []
        for at, width in self._widths.items():
            form, text = self._columns[at].form, cells[at]
            if self._printer.room is not None and form in _CUT:
                text = cut(text, width, middle=form is Form.NAME)
            blank = " " * (width - cell_len(text))
            padded.append(blank + text if form.right else text + blank)
        line = _GAP.join(padded).rstrip()
        # Where not even the columns that stay have room.
        return line if self._printer.room is None else cut(line, self._printer.room)


def _needed(widths: Collection[int]) -> int:
    """Columns of the terminal that columns of these widths take."""
    return sum(widths) + len(_GAP) * (len(widths) - 1)
