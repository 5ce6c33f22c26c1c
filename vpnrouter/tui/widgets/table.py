"""Draws a table with a cursor; only rows that changed are painted anew."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType
from textual.message import Message

from vpnrouter.tui.format import Line, Piece, fit
from vpnrouter.tui.widgets.lines import Lines


class Column(NamedTuple):
    """A column of `width` terminal columns, and of a `share` of the columns that are left. With `middle`, texts are cut
    in their middle.
    """

    title: str
    width: int
    right: bool = False
    share: int = 0
    middle: bool = False


class Entry(NamedTuple):
    """A row: its key and its cells."""

    key: str
    cells: tuple[Piece, ...]


class Table(Lines):
    """Rows under titles. The cursor stays with its row while rows come and go around it, once it
    was moved by a key. Until then it stays on top, whichever router answers first.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup", "move_page(-1)", show=False),
        Binding("pagedown", "move_page(1)", show=False),
        Binding("home,g", "first", show=False),
        Binding("end,G", "last", show=False),
        Binding("enter", "choose", show=False),
    ]

    class Chosen(Message):
        """A row was chosen by Enter."""

        def __init__(self, table: "Table", key: str) -> None:
            super().__init__()
            self.table = table
            self.key = key

    class Moved(Message):
        """The cursor is on another row."""

    class Past(Message):
        """The cursor was moved past the last row (`by` 1) or the first one (-1)."""

        def __init__(self, table: "Table", by: int) -> None:
            super().__init__()
            self.table = table
            self.by = by

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        empty: str = "none",
        follows: bool = False,
        id: str | None = None,  # noqa: A002 - Textual's name
    ) -> None:
        super().__init__(id=id, focusable=True)
        self.columns = tuple(columns)
        self.cursor = 0
        self.empty = empty
        self._follows = follows
        self._moved = False
        self._entries: list[Entry] = []

    @property
    def entries(self) -> Sequence[Entry]:
        """The rows that were given last."""
        return self._entries

    @property
    def rows(self) -> int:
        """How many rows fit under the titles."""
        return max(0, self.size.height - 1)

    @property
    def key(self) -> str:
        """The key of the row under the cursor, "" for none."""
        return self._entries[self.cursor].key if self.cursor < len(self._entries) else ""

    def fill(self, entries: Sequence[Entry], empty: str = "") -> None:
        """Show these rows; `empty` is what to say where there are none."""
        key, was_last = self.key, self.cursor >= len(self._entries) - 1
        before = [self.line_at(y) for y in range(self.size.height)]
        self._entries = list(entries)
        self.empty = empty or self.empty
        if self._follows and was_last:
            self.cursor = len(self._entries) - 1
        elif key != self.key and self._moved:
            same = (place for place, each in enumerate(self._entries) if each.key == key)
            self.cursor = next(same, self.cursor)
        self._keep_in_sight()
        for y, line in enumerate(before):
            if line != self.line_at(y):
                self.paint(y)

    def place(self, cursor: int) -> None:
        """Put the cursor to a row, from 0; -1 is the last one."""
        self._move_to(len(self._entries) - 1 if cursor < 0 else cursor)

    def line_at(self, row: int) -> Line:
        """What stands in a row of the widget: the titles in row 0, entries below them."""
        if row == 0:
            titles = tuple((column.title, "head") for column in self.columns)
            return self._line(titles, "")
        place = row - 1 + self.top
        if not self._entries and row == 1:
            return ((self.empty, "dim"),)
        if not 0 <= place < len(self._entries):
            return ()
        under = "cursor" if place == self.cursor and self.has_focus else ""
        return self._line(self._entries[place].cells, under)

    def on_focus(self) -> None:
        """Paint the table anew with its cursor, which is seen with focus only."""
        self.paint_all()
        self.post_message(self.Moved())

    def on_blur(self) -> None:
        """Paint the table anew without its cursor."""
        self.paint_all()

    def on_resize(self) -> None:
        """Keep the row under the cursor in sight."""
        self._keep_in_sight()

    def action_move(self, by: int) -> None:
        """Move the cursor by rows."""
        row = self.cursor + by
        if 0 <= row < len(self._entries):
            self._move_to(row)
        else:
            self.post_message(self.Past(self, by))

    def action_move_page(self, pages: int) -> None:
        """Move the cursor by pages of as many rows as fit."""
        row = self.cursor + pages * max(1, self.rows)
        last = len(self._entries) - 1
        if (row > last and self.cursor == last) or (row < 0 and self.cursor == 0):
            self.post_message(self.Past(self, pages))
        else:
            self._move_to(row)

    def action_first(self) -> None:
        """Move the cursor to the first row."""
        self._move_to(0)

    def action_last(self) -> None:
        """Move the cursor to the last row."""
        self._move_to(len(self._entries) - 1)

    def action_choose(self) -> None:
        """Open what the row is about."""
        if self.key:
            self.post_message(self.Chosen(self, self.key))

    def _move_to(self, row: int) -> None:
        self._moved = True
        before, top = self.cursor, self.top
        self.cursor = row
        self._keep_in_sight()
        if top != self.top:
            self.paint_all()
        elif before != self.cursor:
            self.paint(before - top + 1)
            self.paint(self.cursor - top + 1)
        if before != self.cursor:
            self.post_message(self.Moved())

    def _keep_in_sight(self) -> None:
        self.cursor = max(0, min(self.cursor, len(self._entries) - 1))
        lowest = max(0, self.cursor - self.rows + 1)
        self.top = max(lowest, min(self.top, self.cursor, max(0, len(self._entries) - self.rows)))

    def _line(self, cells: tuple[Piece, ...], under: str) -> Line:
        pieces: list[Piece] = []
        for column, width, (string, style) in zip(self.columns, self._widths(), cells, strict=True):
            named = f"{under}+{style}" if under and style else under or style
            pieces += [
                (fit(string, width, right=column.right, middle=column.middle), named),
                (" ", under),
            ]
        return tuple(pieces[:-1])

    def _widths(self) -> list[int]:
        shares = sum(column.share for column in self.columns)
        fixed = sum(column.width for column in self.columns) + len(self.columns) - 1
        left = max(0, self.size.width - fixed)
        return [
            column.width + (left * column.share // shares if shares else 0)
            for column in self.columns
        ]
