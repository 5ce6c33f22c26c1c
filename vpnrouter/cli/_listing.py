"""Prints a table of many rows block by block, and details and counts of single rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TextIO

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from vpnrouter.cli._format import (
    RX_RATE,
    TX_RATE,
    RenderBuffer,
    Row,
    add_rate_columns,
    cell,
    printer_for,
    rate_cells,
)
from vpnrouter.management.display import RATE_TITLES, Display, shown, words
from vpnrouter.text import printable

_MOST_KEPT: Final = 60
"""The most columns that a column is padded to, however long a name is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spec:
    """How a kind of object is listed. `title` begins its details; `stats` are labels and the
    attributes of what was received and sent ("" for neither); `reasons` is the attribute with counts by reason.
    """

    columns: tuple[Display, ...]
    title: Callable[[Row], str] = lambda _: ""
    wide: tuple[Display, ...] = ()
    stats: tuple[tuple[str, str, str], ...] = ()
    reasons: str = ""
    style: Callable[[Row], str | None] = lambda _: None


class Listing:
    """Prints rows of one kind. Rows may come in several blocks: only the first has titles, and columns never
    get narrower, so that blocks stand below each other.
    """

    def __init__(self, out: TextIO | RenderBuffer, spec: Spec) -> None:
        self._console = printer_for(out)
        self._spec = spec
        self._widths: list[int] = []

    def overview(self, rows: Sequence[Row], *, wide: bool = False) -> None:
        """One line each."""
        columns = self._spec.columns + (self._spec.wide if wide else ())
        rated = RX_RATE in rows[0] if rows else False
        titles = [column.title for column in columns] + [*RATE_TITLES] * rated
        right = [column.form.right for column in columns] + [True, True] * rated
        cells = [
            [*(printable(cell(column, row)) for column in columns), *rate_cells(row)]
            for row in rows
        ]
        first = not self._widths
        if first:
            self._widths = [0] * len(titles)
        for place, title in enumerate(titles):
            longest = max(map(cell_len, (title, *(line[place] for line in cells))))
            self._widths[place] = max(self._widths[place], min(longest, _MOST_KEPT))
        lines = [Text(self._line(titles, right), style="bold")] if first else []
        for row, line in zip(rows, cells, strict=True):
            lines.append(Text(self._line(line, right), style=self._spec.style(row) or ""))
        self._console.print(Text("\n", no_wrap=True, overflow="ignore").join(lines))

    def title(self, row: Row) -> None:
        """Print the line that details and counts of a row begin with."""
        self._console.print(self._spec.title(row), style=self._spec.style(row))

    def attributes(self, row: Row, indent: str = "  ") -> None:
        """All attributes of a row, one line each; lists of further objects are left out."""
        table = Table(box=None, show_header=False, pad_edge=False)
        for name, value in row.items():
            if name not in {RX_RATE, TX_RATE} and not isinstance(value, list):
                table.add_row(f"{indent}{words(name)}", shown(value))
        self._console.print(table)

    def add_reasons(self, table: Table, row: Row) -> None:
        """Discards by reason, below the counts of one."""
        for reason, count in sorted(row.get(self._spec.reasons, {}).items()):
            table.add_row(f"  discarded: {reason}", f"{count:,}")

    def _line(self, cells: Sequence[str], right: Sequence[bool]) -> str:
        """Cells below each other. A table of rich takes a second for a thousand rows."""
        padded = []
        for text, width, to_the_right in zip(cells, self._widths, right, strict=True):
            blank = " " * (width - cell_len(text))
            padded.append(blank + text if to_the_right else text + blank)
        return "  ".join(padded).rstrip()

    def detail(self, rows: Sequence[Row]) -> None:
        """All attributes of each."""
        for row in rows:
            self.title(row)
            self.attributes(row)
            self._console.print()

    def stats(self, rows: Sequence[Row]) -> None:
        """Counts, rates, and discards by reason."""
        for row in rows:
            self.title(row)
            table = Table("", "received", "sent", box=None, pad_edge=False)
            for column in table.columns[1:]:
                column.justify = "right"
            for label, received, sent in self._spec.stats:
                # A router of an earlier version does not tell all of them.
                if received in row or sent in row:
                    table.add_row(f"  {label}", _number(row, received), _number(row, sent))
            self.add_reasons(table, row)
            self._console.print(table)
            self._console.print()


class FoldedListing(Listing):
    """Prints rows of a kind that has few: all of them at once, in columns that are folded on a terminal."""

    def overview(self, rows: Sequence[Row], *, wide: bool = False) -> None:
        """One line each."""
        table = Table(box=None, pad_edge=False)
        for column in self._spec.columns:
            if column.form.right:
                table.add_column(column.title, justify="right")
            else:
                table.add_column(column.title, overflow="fold")
        more = self._spec.wide if wide else ()
        for column in more:
            table.add_column(column.title, overflow="fold")
        add_rate_columns(table, rows)
        for row in rows:
            cells = [cell(column, row) for column in (*self._spec.columns, *more)]
            table.add_row(*cells, *rate_cells(row), style=self._spec.style(row))
        self._console.print(table)


def _number(row: Row, name: str) -> str:
    return f"{row[name]:,}" if name in row else ""
