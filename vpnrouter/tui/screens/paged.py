"""A list of one router that may be long: the API gives a page of it, and leaves out what is not wanted."""

import re
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType

from vpnrouter.management.rows import Row
from vpnrouter.tui.keys import Key, bindings_of
from vpnrouter.tui.pager import Pager
from vpnrouter.tui.pieces import Line, text
from vpnrouter.tui.router import Router
from vpnrouter.tui.screens.view import View
from vpnrouter.tui.widgets.table import Column, Entry, Table

_CONDITION: Final = re.compile(r"==|!=|<=|>=|<|>")


class PagedView(View):
    """Fetches the page under the cursor only. Subclasses say the path, the columns and the filters.

    `NAME` is the attribute that a bare word in the filter is looked for in.
    """

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("enter", "enter", "open", "open it"),
        Key("slash", "filter", "filter", "filter: a part of the name, or conditions of the API"),
        Key("f", "next_filter", "which", "the next of the usual filters"),
        Key("n,right", "turn(1)", "", "next page"),
        Key("p,left", "turn(-1)", "", "page before"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(KEYS[1:])
    COLUMNS: ClassVar[tuple[Column, ...]] = ()
    FILTERS: ClassVar[tuple[tuple[str, str], ...]] = (("all", ""),)
    """What they are called, and the conditions."""
    NAME: ClassVar[str] = ""

    def __init__(self, router: Router | None = None, msg_vpn: str = "") -> None:
        super().__init__(router)
        self._msg_vpn = msg_vpn
        self._pager = Pager()
        self._filter = 0
        self._written = ""
        self._rows: list[Row] = []

    def path(self) -> str:
        """Where the list is."""
        raise AssertionError(self)

    def seen(self, router: Router, row: Row) -> None:
        """Note what a row tells of its counters."""

    def entry(self, router: Router, row: Row) -> Entry:
        """A row of the table."""
        raise AssertionError(router, row)

    def more(self) -> dict[str, str]:
        """What else to ask with."""
        return {}

    def none(self) -> str:
        """What to say where there are no rows."""
        return "none that meets the filter" if self.where else f"no {self.PLACE}"

    @property
    def where(self) -> str:
        """The conditions in force."""
        usual = self.FILTERS[self._filter][1]
        written = self._written
        if written and not _CONDITION.search(written):
            written = f"{self.NAME}==*{written}*"
        return ",".join(each for each in (usual, written) if each)

    @property
    def table(self) -> Table:
        """The rows."""
        return self.query_one("#body", Table)

    def place(self) -> str:
        """See View.place."""
        return f"{self.PLACE} of {self._msg_vpn}" if self._msg_vpn else self.PLACE

    def body(self) -> ComposeResult:
        """See View.body."""
        yield Table(self.COLUMNS, empty="asking …", id="body")

    async def fetch(self, router: Router) -> None:
        """See View.fetch."""
        pager = self._pager
        asked = (pager.page, self.where, self.path(), self.more())
        page = await router.api.page(
            self.path(), cursor=pager.cursor, where=self.where, more=self.more()
        )
        if asked != (pager.page, self.where, self.path(), self.more()):
            # Meanwhile another page was wanted.
            return
        if not page.rows and pager.turn(-1):
            return
        pager.saw(page.total, page.cursor)
        self._rows = page.rows
        for row in page.rows:
            self.seen(router, row)

    def draw(self) -> None:
        """See View.draw."""
        asked = self.router.connection.answered_at is not None
        entries = [self.entry(self.router, row) for row in self._rows]
        self.table.fill(entries, self.none() if asked else "asking …")

    def note(self) -> Line:
        """Which rows these are."""
        told = self._pager.rows_told(len(self._rows))
        name, _ = self.FILTERS[self._filter]
        written = f", {self._written}" if self._written else ""
        return text((f"{told}  filter: ", "dim"), (f"{name}{written}", "accent"))

    def on_table_past(self, event: Table.Past) -> None:
        """The cursor goes on in the next page, or in the one before."""
        if self._turned(event.by):
            self.table.place(0 if event.by > 0 else -1)

    def action_turn(self, by: int) -> None:
        """To the next page, or the one before."""
        if self._turned(by):
            self.table.place(0)

    def action_next_filter(self) -> None:
        """The next of the usual filters."""
        self._filter = (self._filter + 1) % len(self.FILTERS)
        self.restart()

    def action_filter(self) -> None:
        """Ask for a filter."""
        hint = f"part of the {self.NAME}, or conditions: {self.FILTERS[-1][1] or 'uptime<60'}"
        self.ui.ask("Filter", self._filtered, hint, self._written)

    def _filtered(self, written: str | None) -> None:
        if written is not None:
            self._written = written.strip()
            self.restart()

    def restart(self) -> None:
        """Something else is wanted: from the first page."""
        self._rows = []
        self._pager.restart()
        self.table.place(0)
        self.redraw()
        self.ui.look_soon()

    def _turned(self, by: int) -> bool:
        turned = self._pager.turn(by)
        if turned:
            self.ui.look_soon()
        return turned
