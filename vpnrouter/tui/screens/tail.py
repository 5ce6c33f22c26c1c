"""What goes on, the newest at the bottom: it scrolls by itself while the cursor is on the last row."""

from collections import deque
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from vpnrouter.limits import TUI_TAIL
from vpnrouter.management.rows import Row
from vpnrouter.tui.keys import Key, bindings_of
from vpnrouter.tui.pieces import Line, text
from vpnrouter.tui.router import Router
from vpnrouter.tui.screens.view import View
from vpnrouter.tui.widgets.table import Column, Entry, Table


class TailView(View):
    """Keeps the last rows of one router. Subclasses ask for those behind `mark`."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("slash", "filter", "filter", "filter"),
        Key("space", "pause", "pause", "stop or go on"),
        Key("c", "clear", "clear", "forget what is shown"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(KEYS)
    COLUMNS: ClassVar[tuple[Column, ...]] = ()
    HINT: ClassVar[str] = ""

    def __init__(self, router: Router | None = None) -> None:
        super().__init__(router)
        self.kept: deque[tuple[str, Row]] = deque(maxlen=TUI_TAIL)
        self.filter = ""
        self.paused = False
        self._count = 0

    def entry(self, key: str, row: Row) -> Entry:
        """A row of the table."""
        raise AssertionError(row)

    def add(self, rows: list[Row]) -> None:
        """These came."""
        for row in rows:
            self._count += 1
            self.kept.append((str(self._count), row))

    def wanted(self, row: Row) -> bool:
        """Whether a row that is kept is shown."""
        return True

    def restart(self) -> None:
        """The filter changed."""

    def body(self) -> ComposeResult:
        """See View.body."""
        yield Table(self.COLUMNS, empty="nothing yet", follows=True, id="body")

    def draw(self) -> None:
        """See View.draw."""
        shown = [self.entry(key, row) for key, row in self.kept if self.wanted(row)]
        self.query_one("#body", Table).fill(shown)

    def note(self) -> Line:
        """Whether it goes on, and what is left out."""
        going = ("paused, space goes on", "warn") if self.paused else ("live", "good")
        return text(going, (f"  filter: {self.filter or 'none'}", "dim"))

    def action_pause(self) -> None:
        """Stop, or go on."""
        self.paused = not self.paused
        self.redraw()

    def action_clear(self) -> None:
        """Forget what is shown."""
        self.kept.clear()
        self.redraw()

    def action_filter(self) -> None:
        """Ask for a filter."""
        self.ui.ask("Filter", self._filtered, self.HINT, self.filter)

    def _filtered(self, written: str | None) -> None:
        if written is not None:
            self.filter = written.strip()
            self.restart()
            self.redraw()
            self.ui.look_soon()
