"""What all screens share: the line of places, the banner for a lost connection, notes; and lists in pages."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, cast

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from vpnrouter.management.answers.rows import Row
from vpnrouter.tui import format as fmt
from vpnrouter.tui.api import DeniedError, Router, UnreachableError
from vpnrouter.tui.columns import Columns
from vpnrouter.tui.format import Line, fit, text, width_of
from vpnrouter.tui.keys import Key, bindings_of, foot
from vpnrouter.tui.pager import Pager
from vpnrouter.tui.widgets.lines import Lines
from vpnrouter.tui.widgets.table import Table

if TYPE_CHECKING:
    from vpnrouter.tui.screens.terminal import Terminal


class View(Screen[None]):
    """A screen. `KEYS` are its own keys; `PLACE` is its name in the line of places."""

    KEYS: ClassVar[tuple[Key, ...]] = ()
    PLACE: ClassVar[str] = ""
    ALL_ROUTERS: ClassVar[bool] = False
    """Whether all routers are requested, or the chosen one only."""

    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, router: Router | None = None) -> None:
        super().__init__()
        self._router = router
        self.noted = ""

    @property
    def ui(self) -> Terminal:
        """The application."""
        return cast("Terminal", self.app)

    @property
    def router(self) -> Router:
        """The router that it is about."""
        return self._router or self.ui.router

    @property
    def routers(self) -> Sequence[Router]:
        """The routers to request."""
        return self.ui.routers if self.ALL_ROUTERS else (self.router,)

    def place(self) -> str:
        """The screen's name in the line of places."""
        return self.PLACE

    def body(self) -> ComposeResult:
        """Give the widgets between the lines that all screens have."""
        yield Lines(id="body")

    async def fetch(self, router: Router) -> None:
        """Request what is shown from a router. An error that it raises stands in the line of notes."""

    def draw(self) -> None:
        """Show what was fetched."""

    def note(self) -> Line:
        """The line of notes while there is no notice."""
        return ()

    def compose(self) -> ComposeResult:
        """Give the widgets of every screen: places, banner, the body, notes and foot."""
        yield Lines(id="places")
        yield Lines(id="banner")
        yield from self.body()
        yield Lines(id="notes")
        yield Lines(id="foot")

    def on_mount(self) -> None:
        """Show what is known, and request the rest."""
        self.call_after_refresh(self.redraw)
        self.ui.look_soon()

    def on_screen_resume(self) -> None:
        """Show what is known, and request the rest, when the screen comes back to the top."""
        self.call_after_refresh(self.redraw)
        self.ui.look_soon()

    def on_resize(self) -> None:
        """Draw anew, since lines are made for their width."""
        self.call_after_refresh(self.redraw)

    def redraw(self) -> None:
        """Show everything, as far as it changed."""
        if not self.is_mounted or not self.query("#foot"):
            return
        self._draw_frame()
        self.draw()

    def lines(self, name: str) -> Lines:
        """The widget of this name."""
        return self.query_one(f"#{name}", Lines)

    def show_open(self, view: View) -> None:
        """Open a screen about something that is shown here."""
        self.ui.push_screen(view)

    def act(self, router: Router, question: str, do: Callable[[], Awaitable[str]]) -> None:
        """Ask for confirmation, then call `do` and show the text that it returns. `do` raises as fetch does."""
        if not router.store.may_change():
            who = f"user {router.store.user}" if router.store.user else "this user"
            self.show_notice(f"{who} may look and not change", "warn")
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.run_worker(self._do(router, do), group="act")

        self.ui.confirm(question, answered)

    async def _do(self, router: Router, do: Callable[[], Awaitable[str]]) -> None:
        self.show_notice("…")
        try:
            message = await do()
        except DeniedError as error:
            if error.is_for_want_of_rights:
                router.store.role = "read-only"
            self.show_notice(str(error), "bad")
        except UnreachableError as error:
            router.lost(error)
            self.show_notice(f"not known whether it was done: {error}", "bad")
        else:
            self.show_notice(message, "good")
        self.ui.look_soon()

    def show_notice(self, message: str, style: str = "") -> None:
        """Show a message in the line of notes until the next key."""
        self.noted = message
        if self.is_mounted and self.query("#notes"):
            self.lines("notes").show([text((message, style))])

    def on_table_moved(self) -> None:
        """Draw anew, since the notes may be about the row under the cursor."""
        self.redraw()

    def on_key(self) -> None:
        """Clear the line of notes, since a key says that it was read."""
        if self.noted:
            self.noted = ""
            self.redraw()

    def _draw_frame(self) -> None:
        router, app = self.router, self.ui
        where = f"{router.label}  {fmt.clock(app.wall())}Z"
        if len(app.routers) > 1:
            where = f"router {app.routers.index(router) + 1}/{len(app.routers)} {where}"
        room = max(0, self.size.width - len(where) - 1)
        head = text((shortened(app.places_to(self), room), "title"))
        gap = " " * max(1, room - width_of(head) + 1)
        self.lines("places").show([(*head, (gap, ""), (where, "accent"))])
        lost = [one for one in app.routers if one.connection.is_lost]
        banner = self.lines("banner")
        banner.display = bool(lost)
        banner.show([_lost_line(one, app.clock(), app.wall()) for one in lost[:3]])
        banner.styles.height = max(1, len(lost[:3]))
        if not self.noted:
            refused = next((one.refusal for one in self.routers if one.refusal), "")
            self.lines("notes").show([text((refused, "warn")) if refused else self.note()])
        self.lines("foot").show([foot(self.KEYS, may_change=router.store.may_change())])


def shortened(places: Sequence[str], room: int) -> str:
    """The last places, as many as there is room for."""
    for first in range(len(places)):
        shown = " › ".join(places[first:])
        if width_of(text((shown, ""))) <= room:
            return shown
    return fit(places[-1], room).rstrip() if places else ""


def _lost_line(router: Router, now: float, wall: float) -> Line:
    connection = router.connection
    since = now - (connection.lost_at or now)
    wait = max(0.0, connection.next_try - now)
    message = (
        f" {router.label}: LOST since {fmt.clock(wall - since)}Z ({fmt.duration(since)}),"
        f" next try in {fmt.duration(wait + 0.999)}: {connection.why}"
    )
    return text((message.ljust(400), "banner"))


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
    COLUMNS: ClassVar[Columns] = Columns([])
    FILTERS: ClassVar[tuple[tuple[str, str], ...]] = (("all", ""),)
    """What they are called, and the conditions."""
    NAME: ClassVar[str] = ""

    def __init__(self, router: Router | None = None, msg_vpn: str = "") -> None:
        super().__init__(router)
        self._msg_vpn = msg_vpn
        self._pager = Pager()
        self._filter = 0
        self._typed = ""
        self._rows: list[Row] = []

    def path(self) -> str:
        """The path of the list, for the API."""
        raise AssertionError(self)

    def measure(self, router: Router, row: Row) -> None:
        """Measure the rates of a row's counters."""

    def key(self, row: Row) -> str:
        """The key of a row, which no other row has."""
        raise AssertionError(row)

    def more(self) -> dict[str, str]:
        """Further query parameters of the request."""
        return {}

    def none(self) -> str:
        """The text that is shown where there are no rows."""
        return "none that meets the filter" if self.where else f"no {self.PLACE}"

    @property
    def where(self) -> str:
        """The conditions in force."""
        usual = self.FILTERS[self._filter][1]
        typed = self._typed
        if typed and not _CONDITION.search(typed):
            typed = f"{self.NAME}==*{typed}*"
        return ",".join(each for each in (usual, typed) if each)

    @property
    def table(self) -> Table:
        """The table of the rows."""
        return self.query_one("#body", Table)

    def place(self) -> str:
        """Name the list, with its message VPN where it is of one."""
        return f"{self.PLACE} of {self._msg_vpn}" if self._msg_vpn else self.PLACE

    def body(self) -> ComposeResult:
        """Give the table of the rows, in the screen's columns."""
        yield Table(self.COLUMNS.titles, empty="asking …", id="body")

    async def fetch(self, router: Router) -> None:
        """Request the current page; drop the answer if another page was chosen meanwhile."""
        pager = self._pager
        asked = (pager.page, self.where, self.path(), self.more())
        page = await router.api.page(
            self.path(), cursor=pager.cursor, where=self.where, more=self.more()
        )
        if asked != (pager.page, self.where, self.path(), self.more()):
            # Another page was chosen meanwhile.
            return
        if not page.rows and pager.turn(-1):
            return
        pager.update(page.total, page.cursor)
        self._rows = page.rows
        for row in page.rows:
            self.measure(router, row)

    def draw(self) -> None:
        """Fill the table with the rows of the page."""
        asked = self.router.connection.answered_at is not None
        entries = [self.COLUMNS.entry(self.key(row), self.router, row) for row in self._rows]
        self.table.fill(entries, self.none() if asked else "asking …")

    def note(self) -> Line:
        """Say which rows are shown, and the filter."""
        shown = self._pager.range_text(len(self._rows))
        name, _ = self.FILTERS[self._filter]
        also = f", {self._typed}" if self._typed else ""
        return text((f"{shown}  filter: ", "dim"), (f"{name}{also}", "accent"))

    def on_table_past(self, event: Table.Past) -> None:
        """Go on in the next page, or in the one before, when the cursor leaves this one."""
        if self._turned(event.by):
            self.table.place(0 if event.by > 0 else -1)

    def action_turn(self, by: int) -> None:
        """Turn to the next page (`by` 1) or the one before (-1)."""
        if self._turned(by):
            self.table.place(0)

    def action_next_filter(self) -> None:
        """Use the next of the usual filters."""
        self._filter = (self._filter + 1) % len(self.FILTERS)
        self.restart()

    def action_filter(self) -> None:
        """Ask for a filter."""
        hint = f"part of the {self.NAME}, or conditions: {self.FILTERS[-1][1] or 'uptime<60'}"
        self.ui.ask("Filter", self._filtered, hint, self._typed)

    def _filtered(self, typed: str | None) -> None:
        if typed is not None:
            self._typed = typed.strip()
            self.restart()

    def restart(self) -> None:
        """Go back to the first page and request it, since the filter or the list has changed."""
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
