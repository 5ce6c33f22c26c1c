from typing import Any


def test_all_of_them(looking: Any, mesh: Any) -> None:
    """Of every holder, with whoever is away."""

    async def test(seen: Any) -> None:
        screen = await seen.press("8")
        assert "rows 1 to 8 of 8" in screen
        assert "client away" in screen
        screen = await seen.press("v")
        assert "subscriptions of blue" in screen
        assert "no subscriptions" in await seen.press("v"), "green has none"
        assert "rows 1 to 8 of 8" in await seen.press("v"), "all again"

    looking(test, mesh.edge)


def test_what_matches_this_topic(looking: Any, mesh: Any) -> None:
    """The router is asked, for one message VPN; an empty topic shows all again."""

    async def test(seen: Any) -> None:
        await seen.press("8", "w")
        screen = await seen.write("alerts/x")
        assert "who gets alerts/x in blue?" in screen
        assert "rows 1 to 2 of 2  filter: all match" in screen
        assert "alerts/#" in screen
        await seen.press("w", "ctrl+u")
        assert "rows 1 to 8 of 8" in await seen.write("")

    looking(test, mesh.edge)


def test_no_topic(looking: Any, mesh: Any) -> None:
    """What the router says of it."""

    async def test(seen: Any) -> None:
        await seen.press("8", "w")
        screen = await seen.write("bad//#")
        assert "topic: " in screen.splitlines()[-2]

    looking(test, mesh.edge)


def test_open_the_holder(looking: Any, mesh: Any) -> None:
    """A client, or a queue."""

    async def test(seen: Any) -> None:
        await seen.press("8")
        await seen.press("j", "j")
        assert "client blue/sensor-01" in await seen.press("enter")
        await seen.press("escape")
        assert "queue blue/raw" in await seen.press("G", "enter")

    looking(test, mesh.edge)
