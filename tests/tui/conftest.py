"""Routers in memory, the terminal interface on them, and a clock that is moved by hand."""

import asyncio
import importlib.util
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from vpnrouter.tui.api import RouterApi
from vpnrouter.tui.app import TerminalInterface

BEGAN = 1_795_316_465.0
"""2026-11-22 03:01:05, UTC, which the routers of scene.py have as well."""


def _loaded(name: str, place: Path) -> ModuleType:
    # Tests are no package (importlib mode), so that a module beside them is loaded by its path.
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, place)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


_routers = _loaded("management_routers", Path(__file__).parents[1] / "management" / "routers.py")
_scene = _loaded("tui_scene", Path(__file__).with_name("scene.py"))
"""The tests here import it as tui_scene."""


@pytest.fixture
def mesh(tmp_path: Path) -> Any:
    """The routers `edge` and `core` of scene.py, joined by their bridges."""
    return _scene.edge_and_core(tmp_path)


@pytest.fixture(autouse=True)
def settling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Textual's pilot waits until the process is idle, which it is not while routers are served in it."""

    async def settle(*_: float) -> None:
        for _ in range(5):
            await asyncio.sleep(0.001)

    monkeypatch.setattr("textual.app.wait_for_idle", settle)
    monkeypatch.setattr("textual.pilot.wait_for_idle", settle)


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Seconds that do not jump."""
        return self.now

    def wall(self) -> float:
        """Seconds since 1970."""
        return BEGAN + self.now - 100.0


class Seen:
    """The terminal interface under test, 80 columns and 24 lines."""

    def __init__(self, app: TerminalInterface, pilot: Any, clock: Clock) -> None:
        self.app = app
        self.pilot = pilot
        self.clock = clock

    async def look(self, seconds: float = 1.0) -> str:
        """Time passes, the routers are asked; gives what stands on the screen."""
        self.clock.now += seconds
        await self.pilot.pause()
        await self.app.look()
        return await self.screen()

    async def press(self, *keys: str) -> str:
        """Press keys, ask the routers, and give what stands on the screen."""
        await self.pilot.press(*keys)
        return await self.look(0.0)

    async def write(self, text: str) -> str:
        """Type a text and end it by Enter."""
        await self.pilot.press(*[NAMES.get(each, each) for each in text], "enter")
        return await self.look(0.0)

    async def screen(self) -> str:
        """What stands on the screen, without colours."""
        await self.pilot.pause()
        await self.pilot.pause()
        return shown(self.app)


NAMES = {
    "/": "slash", "=": "equals_sign", ">": "greater_than_sign", " ": "space", "*": "asterisk",
    "-": "minus", "!": "exclamation_mark", "<": "less_than_sign", ".": "full_stop", ",": "comma",
}  # fmt: skip


def shown(app: TerminalInterface) -> str:
    """What stands on an application's screen."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips)


@pytest.fixture
def clock() -> Clock:
    """A clock that is moved by hand."""
    return Clock()


@pytest.fixture
def served() -> Iterator[Callable[..., str]]:
    """`served(router, users)` serves the API of a router and gives its URL; `others`: beside others."""
    with ExitStack() as stack:

        def serve(router: Any, users: Any = None, *, others: bool = False) -> str:
            app = router.application(users)
            if others:
                # Paths are made ready at the first request, with warnings silenced: two threads at that undo each
                # other's silence.
                app.openapi()
            return str(stack.enter_context(_routers.serving(app)))

        yield serve


@pytest.fixture
def application(served: Callable[..., str], clock: Clock) -> Callable[..., TerminalInterface]:
    """`application(router, …)` gives a terminal interface that looks when it is told."""

    def make(*routers: Any, login: Any = ("", ""), users: Any = None, **more: Any) -> Any:
        urls = [
            each if isinstance(each, str) else served(each, users, others=len(routers) > 1)
            for each in routers
        ]
        settings = {"clock": clock, "wall": clock.wall, "period_s": None} | more
        return TerminalInterface([RouterApi(url, *login) for url in urls], **settings)

    return make


@pytest.fixture
def looking(application: Callable[..., TerminalInterface], clock: Clock) -> Callable[..., None]:
    """`looking(test, router, …)` runs a coroutine function with a Seen, having looked once.

    Textual runs under asyncio, so that such a test is no coroutine itself.
    """

    def run(test: Callable[[Seen], Awaitable[None]], *routers: Any, **more: Any) -> None:
        size = more.pop("size", (80, 24))

        async def main() -> None:
            app = application(*routers, **more)
            async with app.run_test(size=size) as pilot:
                seen = Seen(app, pilot, clock)
                await seen.look()
                await test(seen)

        asyncio.run(main())

    return run
