"""Columns of attributes: the title and the form of a value come from vpnrouter/management/display.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len

from vpnrouter.management.answers.rows import Row
from vpnrouter.management.display import NONE, RATE_TITLES, Display, Form, shown
from vpnrouter.tui import format as fmt
from vpnrouter.tui.api import Router
from vpnrouter.tui.format import Piece
from vpnrouter.tui.widgets.table import Column, Entry

Cell = Callable[[Router, Row], Piece]

RATE_WIDTH: Final = 5


class RowColumn(NamedTuple):
    """A column and what stands in it for a row of a router."""

    column: Column
    cell: Cell


class Columns:
    """The columns of a screen."""

    def __init__(self, columns: Sequence[RowColumn]) -> None:
        self._columns = columns

    @property
    def titles(self) -> Sequence[Column]:
        """The columns as the table takes them."""
        return [each.column for each in self._columns]

    def entry(self, key: str, router: Router, row: Row) -> Entry:
        """The table's row for a row of a router."""
        return Entry(key, tuple(each.cell(router, row) for each in self._columns))


def attribute(
    display: Display, width: int, *, share: int = 0, style: str | Callable[[Row], str] = ""
) -> RowColumn:
    """A column of an attribute. A style that is empty leaves the one that the form gives."""

    def cell(_: Router, row: Row) -> Piece:
        text, usual = _piece(display, row)
        return (text, (style(row) if callable(style) else style) or usual)

    # Moments are written without their time zone.
    full = f"{display.title} (UTC)" if display.form is Form.MOMENT else display.title
    title = full if cell_len(full) <= width else display.narrow or full
    return RowColumn(
        Column(title, width, display.form.right, share, display.form is Form.NAME), cell
    )


def own(
    title: str, width: int, cell: Cell, *, right: bool = False, share: int = 0, middle: bool = False
) -> RowColumn:
    """A column of something that is no attribute of a row."""
    return RowColumn(Column(title, width, right, share, middle), cell)


def rates(meter: Callable[[Row], tuple[str, ...]], ways: tuple[str, str]) -> Sequence[RowColumn]:
    """Columns of the rates between two looks. `meter` gives the key of a row's meters without the last part, which
    is in `ways`: for what is received and what is sent.
    """

    def column(title: str, way: str) -> RowColumn:
        return own(
            title,
            RATE_WIDTH,
            lambda router, row: (fmt.rate(router.store.meters.rate((*meter(row), way))), ""),
            right=True,
        )

    return [column(*each) for each in zip(RATE_TITLES, ways, strict=True)]


def _piece(display: Display, row: Row) -> Piece:
    value = display.value(row)
    match display.form:
        case Form.STATE:
            return fmt.state(str(value))
        case Form.NUMBER:
            return (fmt.figure(value), "")
        case Form.LOSS:
            return (fmt.figure(value), "warn") if value else (NONE, "dim")
        case Form.RATE:
            return (fmt.rate(value), "")
        case Form.BYTES:
            return (fmt.size(value), "")
        case Form.SECONDS:
            return (NONE if value is None else fmt.duration(value), "")
        case Form.AGE:
            return (fmt.age(value), "")
        case Form.MOMENT:
            return (fmt.moment(value), "")
        case Form.ID:
            return (str(value), "")
        case _:
            return (shown(value), "")
