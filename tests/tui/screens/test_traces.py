from typing import Any

import pytest

from vpnrouter.tui.screens.live import conditions


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
