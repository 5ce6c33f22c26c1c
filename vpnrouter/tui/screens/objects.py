"""The objects of all kinds that have no screen of their own, a table for each kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from rich.cells import cell_len
from textual.app import ComposeResult

from vpnrouter.management.answers.rows import Row
from vpnrouter.management.display import Display, displays_of, shown
from vpnrouter.settings.kinds import Kind, plain_kinds
from vpnrouter.text import counted
from vpnrouter.tui.api import Router
from vpnrouter.tui.format import Line, Piece, clean, fit, text
from vpnrouter.tui.screens.view import View
from vpnrouter.tui.widgets.lines import Lines

GAP: Final = 2
"""Columns between two columns of a table."""

WIDEST: Final = 24
"""Columns that a column takes at most."""


class Objects(View):
    """What one router has of these kinds."""

    PLACE: ClassVar[str] = "objects"

    def body(self) -> ComposeResult:
        """Give the lines of all tables."""
        yield Lines(id="body", focusable=True)

    async def fetch(self, router: Router) -> None:
        """Request the objects of each kind."""
        for kind in plain_kinds():
            await router.fetch_objects(kind.collection)

    def draw(self) -> None:
        """Show a table of each kind."""
        lines: list[Line] = []
        for kind in plain_kinds():
            rows = self.router.store.objects.get(kind.collection, [])
            lines += [*kind_lines(kind, rows, self.size.width), ()]
        self.lines("body").show(lines[:-1])


def kind_lines(kind: Kind, rows: Sequence[Row], width: int) -> list[Line]:
    """The objects of a kind under the names of their attributes; those for which `width` has no room are left out."""
    lines = [text((counted(len(rows), kind.one), "title"))]
    if not rows:
        return lines
    columns = []
    room = width
    for display in displays_of(kind.identity[0].name, rows[0]):
        cells = [
            cell_len(clean(each)) for each in (display.title, *(_cell(display, r) for r in rows))
        ]
        wide = min(WIDEST, max(cells))
        if wide > room:
            break
        columns.append((display, wide))
        room -= wide + GAP
    gap: Piece = (" " * GAP, "")
    lines.append(
        _line(
            [(fit(each.title, wide, right=each.form.right), "dim") for each, wide in columns], gap
        )
    )
    for row in rows:
        cells_of = [fit(_cell(each, row), wide, right=each.form.right) for each, wide in columns]
        lines.append(_line([(cell, "") for cell in cells_of], gap))
    return lines


def _cell(display: Display, row: Row) -> str:
    return shown(display.value(row))


def _line(cells: Sequence[Piece], gap: Piece) -> Line:
    """Put a gap between cells."""
    return tuple(piece for cell in cells for piece in (cell, gap))[:-1]
