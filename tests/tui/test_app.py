import asyncio
from typing import Any

import pytest
from textual.worker import WorkerFailed

from vpnrouter.errors import OperationError
from vpnrouter.limits import TUI_ROUTERS
from vpnrouter.tui.api import RouterApi
from vpnrouter.tui.app import SCREENS, TerminalInterface
from vpnrouter.tui.keys import EVERYWHERE


def test_each_number_opens_a_screen(looking: Any, mesh: Any) -> None:
    """From any screen; the overview stays below."""

    async def test(seen: Any) -> None:
        opened = {key.key: key.action[6:-2] for key in EVERYWHERE if key.action.startswith("open(")}
        assert opened.pop("1") == "overview"
        assert set(opened.values()) == set(SCREENS)
        for number, name in opened.items():
            screen = await seen.press(number)
            assert screen.startswith(f"overview › {name}"), number
            assert len(seen.app.screen_stack) == 3
        assert (await seen.press("1")).startswith("overview  ")
        assert (await seen.press("escape")).startswith("overview  ")

    looking(test, mesh.edge)


def test_routers_are_chosen(looking: Any, mesh: Any) -> None:
    """`[` and `]` go through them, and the same screen shows the next one."""

    async def test(seen: Any) -> None:
        assert "queues" in await seen.press("3")
        screen = await seen.press("right_square_bracket")
        assert screen.startswith("overview › queues")
        assert "router 2/2 core" in screen
        assert "router 1/2 edge" in await seen.press("left_square_bracket")

    looking(test, mesh.edge, mesh.core)


def test_too_many_routers() -> None:
    """There is a bound, and a way to know it."""
    apis = [RouterApi("http://127.0.0.1:1")] * (TUI_ROUTERS + 1)
    with pytest.raises(OperationError, match=f"more than {TUI_ROUTERS}"):
        TerminalInterface(apis)


def test_it_looks_by_itself(looking: Any, mesh: Any) -> None:
    """With a period, no key is needed; a slow look is not overtaken by another."""
    router = mesh.edge
    looks, at_once, enough = 0, 0, asyncio.Event()

    async def test(seen: Any) -> None:
        nonlocal looks, at_once
        view = seen.app.view
        fetch, under_way = view.fetch, 0

        async def slow(one: Any) -> None:
            nonlocal looks, at_once, under_way
            under_way += 1
            looks += 1
            at_once = max(at_once, under_way)
            await asyncio.sleep(0.05)
            await fetch(one)
            under_way -= 1
            if looks == 4:
                enough.set()

        view.fetch = slow
        await enough.wait()
        assert at_once == 1

    looking(test, router, period_s=0.01)


def test_quit(looking: Any, mesh: Any) -> None:
    """`q` ends it and closes the connections."""

    async def test(seen: Any) -> None:
        await seen.pilot.press("q")
        assert not seen.app.is_running or seen.app._exit

    looking(test, mesh.edge)


def test_a_bug_shows_no_secrets(
    application: Any, mesh: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its traceback has no values of variables."""
    app = application(mesh.edge)

    async def main() -> None:
        async with app.run_test(size=(80, 24)):

            async def wrong(_: Any) -> None:
                password = f"hunter-{1 + 1}"
                raise ZeroDivisionError(len(password))

            app.view.fetch = wrong
            app.run_worker(app.look())
            await asyncio.sleep(5)

    with pytest.raises(WorkerFailed):
        asyncio.run(main())
    app._print_error_renderables()
    printed = capsys.readouterr().err
    assert "ZeroDivisionError: 8" in printed
    assert "hunter-2" not in printed
