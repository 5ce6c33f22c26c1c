"""Screens with the newest at the bottom: events and traces."""

from dataclasses import replace
from typing import Any

import pytest

from vpnrouter.limits import TUI_TAIL
from vpnrouter.tui.screens.live import conditions


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


def test_log_goes_on(looking: Any, mesh: Any) -> None:
    """What was before, then what comes, once each."""
    router = mesh.edge()

    async def test(seen: Any) -> None:
        screen = await seen.press("6")
        assert "03:00:02 warning" in screen
        assert "VPN_BRIDGING_LINK_DOWN Connection refused" in screen
        log = router.events.log
        log.append(replace(log[-1], event_id=3, level="error", text="again"))
        screen = await seen.look()
        assert screen.count("LINK_DOWN") == 2
        assert (await seen.look()).count("LINK_DOWN") == 2

    looking(test, router, size=(120, 24))


def test_router_that_was_started_anew(looking: Any, mesh: Any) -> None:
    """Its log begins anew, and what comes is seen."""
    router = mesh.edge()

    async def test(seen: Any) -> None:
        await seen.press("6")
        router.events.log = [replace(router.events.log[0], text="reborn")]
        await seen.look()
        assert "reborn" in await seen.look()

    looking(test, router, size=(120, 24))


def test_filter(looking: Any, mesh: Any) -> None:
    """Any word of it; what is left out is kept."""

    async def test(seen: Any) -> None:
        await seen.press("6", "slash")
        screen = await seen.write("refused")
        assert "LINK_UP" not in screen
        assert "LINK_DOWN" in screen
        assert "filter: refused" in screen

    looking(test, mesh.edge(), size=(120, 24))


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("", {}),
        ("orders/>", {"topic": "orders/>"}),
        ("topic=a/* event=discard", {"topic": "a/*", "event": "discard"}),
        ("msgVpnName=blue a=b", {"msgVpnName": "blue", "topic": "a=b"}),
    ],
)
def test_filter_is_the_routers_work(written: str, asked: dict[str, str]) -> None:
    """A bare word is a topic, whatever it looks like."""
    assert conditions(written) == asked


def test_tail(looking: Any, mesh: Any) -> None:
    """Rows as they come, with why a message was lost; a filter begins anew."""
    router = mesh.edge()

    async def test(seen: Any) -> None:
        screen = await seen.press("7")
        assert "03:00:00 discard        blue     orders/eu/1" in screen
        assert "transmit-congestion" in screen
        router.traces.rows.append(router.traces.rows[0] | {"event": "ingress", "reason": None})
        assert "03:00:00 ingress        blue     orders/eu/1" in await seen.look()
        assert (await seen.look()).count("orders/eu/1") == 2
        await seen.press("slash")
        await seen.write("event=discard topic=orders/>")
        wish = router.traces.wishes[-1]
        assert (wish.event, wish.topic) == ("discard", "orders/>")

    looking(test, router, size=(100, 24))


def test_refused_filter(looking: Any, mesh: Any) -> None:
    """The router's words."""

    async def test(seen: Any) -> None:
        await seen.press("7", "slash")
        screen = await seen.write("event=nonsense")
        assert "event: nonsense is none of" in screen

    looking(test, mesh.edge())


def test_router_that_traces_nothing(looking: Any, mesh: Any) -> None:
    """It is said: an empty tail is no proof that nothing happens."""
    router = mesh.edge()
    look = router.traces.look
    router.traces.look = lambda *asked: type(look(*asked))(0, (), tracing=False)

    async def test(seen: Any) -> None:
        assert "this router traces nothing" in await seen.press("7")

    looking(test, router)
