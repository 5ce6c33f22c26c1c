from dataclasses import replace
from typing import Any


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
