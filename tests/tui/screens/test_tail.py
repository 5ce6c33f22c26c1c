from dataclasses import replace
from typing import Any

from vpnrouter.limits import TUI_TAIL


def test_pause_and_clear(looking: Any, mesh: Any) -> None:
    """Nothing moves while it is paused, and nothing is lost of a log."""
    router = mesh.edge()

    async def test(seen: Any) -> None:
        await seen.press("6")
        assert "paused, space goes on" in await seen.press("space")
        log = router.events.log
        log.append(replace(log[-1], event_id=3, event="LATER"))
        assert "LATER" not in await seen.look()
        assert "LATER" in await seen.press("space")
        assert "LATER" not in await seen.press("c")

    looking(test, router, size=(120, 24))


def test_follows_until_the_cursor_moves(looking: Any, mesh: Any) -> None:
    """Whoever reads further up is left there; the end follows again. What is kept is bounded."""
    router = mesh.edge()
    one = router.events.log[0]
    router.events.log = [replace(one, event_id=n, event=f"E{n:05}") for n in range(1, 51)]

    async def test(seen: Any) -> None:
        assert "E00050" in await seen.press("6")
        await seen.press("g")
        router.events.log += [replace(one, event_id=n, event=f"E{n:05}") for n in range(51, 61)]
        screen = await seen.look()
        assert "E00001" in screen
        assert "E00060" not in screen
        assert "E00060" in await seen.press("G")
        router.events.log += [replace(one, event_id=61, event="NEWEST")]
        assert "NEWEST" in await seen.look()
        view = seen.app.view
        view.add([{"eventId": n} for n in range(TUI_TAIL * 2)])
        assert len(view.kept) == TUI_TAIL

    looking(test, router, size=(120, 24))
