"""Runs the terminal interface: looks at the routers twice a second and keeps the stack of screens."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, Final

from rich.segment import Segments
from rich.traceback import Traceback
from textual.app import App
from textual.binding import BindingType

from vpnrouter.errors import OperationError
from vpnrouter.limits import TUI_ROUTERS
from vpnrouter.tui.api import Router, RouterApi
from vpnrouter.tui.explainer import Explainer
from vpnrouter.tui.keys import EVERYWHERE, bindings_of
from vpnrouter.tui.screens.dialogs import Ask, Confirm
from vpnrouter.tui.screens.help import Help
from vpnrouter.tui.screens.view import View

PERIOD_S: Final = 0.5
"""Seconds between looks."""


class Terminal(App[None]):
    """What all screens share: the routers behind `apis`, one or more, the clocks, and questions over a screen.

    `period_s` None leaves looking to `look`. `clock` gives seconds that do not jump, `wall` seconds since 1970.
    `explainer` answers the explain screen. Raises OperationError for more routers than TUI_ROUTERS.
    """

    CSS_PATH = "tui.tcss"
    TITLE = "vpnrouter"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(EVERYWHERE)
    FIRST: ClassVar[type[View]]
    """The screen that stays below all others."""

    MAIN: ClassVar[Mapping[str, type[View]]]
    """The main screens by the names that keys open them by."""

    def __init__(
        self,
        apis: Sequence[RouterApi],
        *,
        explainer: Explainer | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        period_s: float | None = PERIOD_S,
    ) -> None:
        super().__init__()
        if len(apis) > TUI_ROUTERS:
            raise OperationError(f"{len(apis)} routers are more than {TUI_ROUTERS}")
        self.animation_level = "none"
        self.clock = clock
        self.wall = wall
        self.explainer = explainer
        self.routers = [Router(api, clock) for api in apis]
        self.router = self.routers[0]
        self._period_s = period_s
        self._is_looking = False

    @property
    def view(self) -> View | None:
        """The uppermost screen, questions over it left out."""
        views = (screen for screen in reversed(self.screen_stack) if isinstance(screen, View))
        return next(views, None)

    async def on_mount(self) -> None:
        """Begin with the overview."""
        await self.push_screen(self.FIRST())
        if self._period_s is not None:
            self.set_interval(self._period_s, self.look_soon)

    async def on_unmount(self) -> None:
        """Leave no connection open."""
        for router in self.routers:
            await router.api.aclose()

    def _fatal_error(self) -> None:
        """A bug ends it with its traceback: without the values of variables, where passwords may be."""
        traceback = Traceback(show_locals=False)
        rendered = self.console.render(traceback, self.console.options)
        self._exit_renderables.append(Segments(rendered))
        self._close_messages_no_wait()

    def look_soon(self) -> None:
        """Look, unless a look is under way: a slow router gets one request at a time."""
        if not self._is_looking and self._period_s is not None:
            self.run_worker(self.look(), group="look")

    async def look(self) -> None:
        """Fetch what the uppermost screen shows, and show it."""
        view = self.view
        if view is None or self._is_looking:
            return
        self._is_looking = True
        try:
            # One that does not answer must not keep the others off the screen: each draws by itself.
            await asyncio.gather(*(self._look_at(view, router) for router in view.routers))
        finally:
            self._is_looking = False
        if view is self.view:
            view.redraw()

    async def _look_at(self, view: View, router: Router) -> None:
        if await router.look(view.fetch) and view is self.view:
            view.redraw()

    def places_to(self, view: View) -> list[str]:
        """The names of the screens that lead to the uppermost one, from the overview."""
        places = []
        for screen in self.screen_stack:
            if isinstance(screen, View):
                places.append(screen.place())
            if screen is view:
                break
        return places

    def confirm(self, question: str, answered: Callable[[bool | None], None]) -> None:
        """Ask whether to do something."""
        self.push_screen(Confirm(question), answered)

    def ask(
        self, label: str, answered: Callable[[str | None], None], hint: str = "", default: str = ""
    ) -> None:
        """Ask for a text; None when the question was left."""
        self.push_screen(Ask(label, hint, default), answered)

    def action_open(self, name: str) -> None:
        """Open one of the main screens."""
        if not isinstance(self.screen, View):
            return
        while len(self.screen_stack) > 2:
            self.pop_screen()
        made = self.MAIN.get(name)
        if made is not None:
            self.push_screen(made())

    async def action_back(self) -> None:
        """Leave the uppermost screen; the overview stays."""
        if len(self.screen_stack) > 2:
            await self.pop_screen()

    def action_help(self) -> None:
        """Say what the keys do."""
        if self.view is not None and isinstance(self.screen, View):
            self.push_screen(Help(self.view.KEYS, self.view.place()))

    def action_look_now(self) -> None:
        """Look at once, also at routers whose next try is later."""
        for router in self.routers:
            router.connection.next_try = 0.0
        self.look_soon()

    def action_router(self, by: int) -> None:
        """Choose another router, from the overview on."""
        if len(self.routers) < 2 or self.view is None:
            return
        self.router = self.routers[(self.routers.index(self.router) + by) % len(self.routers)]
        first = self.screen_stack[2] if len(self.screen_stack) > 2 else None
        self.action_open(next((n for n, kind in self.MAIN.items() if type(first) is kind), ""))
        self.view.redraw()
        self.look_soon()
