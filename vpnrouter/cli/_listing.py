"""Lists rows of one kind of objects, and prints details and counts of single ones."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TextIO

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from vpnrouter.cli._format import (
    RX_RATE,
    TX_RATE,
    RenderBuffer,
    Row,
    cell,
    folded,
    printer_for,
    rate_cells,
)
from vpnrouter.cli._grid import Column, Grid
from vpnrouter.cli._grid import Row as Line
from vpnrouter.management.display import (
    RATE_TITLES,
    Display,
    Form,
    displays_of,
    shown,
    words,
)

_GAP: Final = 2
"""Columns between a name and its value, and at the end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spec:
    """How a kind of object is listed. `title` begins its details; `stats` are labels and the
    attributes of what was received and sent ("" for neither); `reasons` is the attribute with counts by reason.
    `leaving` are the columns that leave a terminal without room for all, the first one first; `wide` ones leave
    before them, the last one first.
    """

    columns: tuple[Display, ...]
    leaving: tuple[Display, ...] = ()
    title: Callable[[Row], str] = lambda _: ""
    wide: tuple[Display, ...] = ()
    stats: tuple[tuple[str, str, str], ...] = ()
    reasons: str = ""
    style: Callable[[Row], str | None] = lambda _: None


def spec_of(one: str, key: str, row: Row) -> Spec:
    """Return how objects are listed of which nothing is known but their rows, like `row`: the name first, then the
    message VPN, then as many of the others as there is room for. `one` is the noun, `key` the attribute of the name.
    """
    columns = displays_of(key, row)
    return Spec(
        title=lambda each: f"{one} {each[key]} in message VPN {each['msgVpnName']}",
        columns=columns,
        leaving=columns[:0:-1],
    )


class Balanced(NamedTuple):
    """What became of the messages of something. The last of the numbers is the difference, which should be 0."""

    names: Sequence[str]
    numbers: Sequence[int]
    reasons: Mapping[str, int] | None = None
    """Of discards; None where there is no column for them."""

    @property
    def line(self) -> Line:
        """The row of a balance."""
        reasons = () if self.reasons is None else (shown(self.reasons),)
        numbers = [f"{number:,}" for number in self.numbers]
        return Line([*self.names, *numbers, *reasons], "bold red" if self.numbers[-1] else "")


class Listing:
    """Prints rows of one kind. Rows may come in several blocks."""

    def __init__(self, out: TextIO | RenderBuffer, spec: Spec) -> None:
        self._console = printer_for(out)
        self._spec = spec
        self._grid: Grid | None = None

    def overview(self, rows: Sequence[Row], *, wide: bool = False) -> None:
        """One line each."""
        spec = self._spec
        columns = spec.columns + (spec.wide if wide else ())
        if self._grid is None:
            order = (*reversed(spec.wide), *spec.leaving)
            leaves = {each: place for place, each in enumerate(order, 1)}
            rated = RX_RATE in rows[0] if rows else False
            self._grid = Grid(
                self._console,
                [
                    *(
                        Column(each.title, each.form, leaves.get(each, 0), each.narrow)
                        for each in columns
                    ),
                    *(Column(title, Form.RATE) for title in RATE_TITLES[: 2 * rated]),
                ],
            )
        self._grid.print(
            [
                Line(
                    [*(cell(each, row) for each in columns), *rate_cells(row)],
                    spec.style(row) or "",
                )
                for row in rows
            ]
        )

    @property
    def left_out(self) -> int:
        """Columns of the overview that the terminal has no room for."""
        return 0 if self._grid is None else self._grid.left_out

    def title(self, row: Row) -> None:
        """Print the line that details and counts of a row begin with."""
        self._console.print(self._spec.title(row), style=self._spec.style(row))

    def attributes(self, row: Row, indent: str = "  ") -> None:
        """All attributes of a row, one line each; lists of further objects are left out."""
        table = Table(box=None, show_header=False, pad_edge=False)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        shown_rows = [
            (f"{indent}{words(name)}", shown(value))
            for name, value in row.items()
            if name not in {RX_RATE, TX_RATE} and not isinstance(value, list)
        ]
        room = self._console.room
        if room is not None:
            room -= max((cell_len(name) for name, _ in shown_rows), default=0) + _GAP
        for name, value in shown_rows:
            table.add_row(name, Text(folded(value, room)))
        self._console.print(table)

    def add_reasons(self, table: Table, row: Row) -> None:
        """Discards by reason, below the counts of one."""
        for reason, count in sorted(row.get(self._spec.reasons, {}).items()):
            table.add_row(f"  discarded: {reason}", f"{count:,}")

    def print_balance(self, columns: Sequence[Column], rows: Sequence[Balanced]) -> None:
        """What became of all messages, one line each."""
        Grid(self._console, columns).print([row.line for row in rows])

    def print_verdict(self, balanced: Sequence[bool], kind: str) -> None:
        """Tell how many objects of a kind do not balance."""
        wrong = balanced.count(False)
        text = (
            f"{wrong} of {len(balanced)} {kind} do not" if wrong else f"all {len(balanced)} {kind}"
        )
        self._console.print(f"{text} balance")

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
                column.justify, column.no_wrap = "right", True
            for label, received, sent in self._spec.stats:
                # A router of an earlier version does not tell all of them.
                if received in row or sent in row:
                    table.add_row(f"  {label}", _number(row, received), _number(row, sent))
            self.add_reasons(table, row)
            self._console.print(table)
            self._console.print()


def _number(row: Row, name: str) -> str:
    return f"{row[name]:,}" if name in row else ""
