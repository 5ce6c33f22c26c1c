"""What all screens have: where one is, what is wrong with the connection, a line of notes, and keys."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from vpnrouter.tui import format as fmt
from vpnrouter.tui.api import DeniedError, UnreachableError
from vpnrouter.tui.keys import Key, foot
from vpnrouter.tui.pieces import Line, fit, text, width_of
from vpnrouter.tui.router import Router
from vpnrouter.tui.widgets.lines import Lines

if TYPE_CHECKING:
    from vpnrouter.tui.app import TerminalInterface


class View(Screen[None]):
    """A screen. `KEYS` are its own ones; `TITLE` is what it is called in the line of places."""

    KEYS: ClassVar[tuple[Key, ...]] = ()
    PLACE: ClassVar[str] = ""
    ALL_ROUTERS: ClassVar[bool] = False
    """Whether all routers are asked, or the one that is chosen."""

    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, router: Router | None = None) -> None:
        super().__init__()
        self._router = router
        self.noted = ""

    @property
    def ui(self) -> "TerminalInterface":
        """The application."""
        return cast("TerminalInterface", self.app)

    @property
    def router(self) -> Router:
        """The router that it is about."""
        return self._router or self.ui.router

    @property
    def routers(self) -> Sequence[Router]:
        """The routers to ask."""
        return self.ui.routers if self.ALL_ROUTERS else (self.router,)

    def place(self) -> str:
        """What it is called in the line of places."""
        return self.PLACE

    def body(self) -> ComposeResult:
        """What is between the lines that all screens have."""
        yield Lines(id="body")

    async def fetch(self, router: Router) -> None:
        """Ask a router for what is shown. What it raises is told in the line of notes."""

    def draw(self) -> None:
        """Show what is there."""

    def note(self) -> Line:
        """What stands in the line of notes while there is nothing to say."""
        return ()

    def compose(self) -> ComposeResult:
        """See Screen.compose."""
        yield Lines(id="places")
        yield Lines(id="banner")
        yield from self.body()
        yield Lines(id="notes")
        yield Lines(id="foot")

    def on_mount(self) -> None:
        """Show what is known at once, and ask for more."""
        self.call_after_refresh(self.redraw)
        self.ui.look_soon()

    def on_screen_resume(self) -> None:
        """The same."""
        self.call_after_refresh(self.redraw)
        self.ui.look_soon()

    def on_resize(self) -> None:
        """Lines are made for their width."""
        self.call_after_refresh(self.redraw)

    def redraw(self) -> None:
        """Show everything, as far as it changed."""
        if not self.is_mounted or not self.query("#foot"):
            return
        self._draw_frame()
        self.draw()

    def lines(self, name: str) -> Lines:
        """One of the widgets."""
        return self.query_one(f"#{name}", Lines)

    def show_open(self, view: "View") -> None:
        """Go into something that is shown here."""
        self.ui.push_screen(view)

    def act(self, router: Router, question: str, do: Callable[[], Awaitable[str]]) -> None:
        """Ask for confirmation, then do it and tell what it says. `do` raises as fetch does."""
        if not router.store.may_change():
            who = f"user {router.store.user}" if router.store.user else "this user"
            self.tell(f"{who} may look and not change", "warn")
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.run_worker(self._do(router, do), group="act")

        self.ui.confirm(question, answered)

    async def _do(self, router: Router, do: Callable[[], Awaitable[str]]) -> None:
        self.tell("…")
        try:
            said = await do()
        except DeniedError as error:
            if error.is_for_want_of_rights:
                router.store.role = "read-only"
            self.tell(str(error), "bad")
        except UnreachableError as error:
            router.lost(error)
            self.tell(f"not known whether it was done: {error}", "bad")
        else:
            self.tell(said, "good")
        self.ui.look_soon()

    def tell(self, said: str, style: str = "") -> None:
        """Say something in the line of notes, until the next key."""
        self.noted = said
        if self.is_mounted and self.query("#notes"):
            self.lines("notes").show([text((said, style))])

    def on_table_moved(self) -> None:
        """The notes may be of the row under the cursor."""
        self.redraw()

    def on_key(self) -> None:
        """What was said has been read."""
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
            refused = next((one.said for one in self.routers if one.said), "")
            self.lines("notes").show([text((refused, "warn")) if refused else self.note()])
        self.lines("foot").show([foot(self.KEYS, may_change=router.store.may_change())])


def shortened(places: Sequence[str], room: int) -> str:
    """As many of the last places as there is room for: where one is counts more than how one came."""
    for first in range(len(places)):
        shown = " › ".join(places[first:])
        if width_of(text((shown, ""))) <= room:
            return shown
    return fit(places[-1], room).rstrip() if places else ""


def _lost_line(router: Router, now: float, wall: float) -> Line:
    connection = router.connection
    since = now - (connection.lost_at or now)
    wait = max(0.0, connection.next_try - now)
    said = (
        f" {router.label}: LOST since {fmt.clock(wall - since)}Z ({fmt.duration(since)}),"
        f" next try in {fmt.duration(wait + 0.999)}: {connection.why}"
    )
    return text((said.ljust(400), "banner"))
