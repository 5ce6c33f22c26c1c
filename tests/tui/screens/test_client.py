from typing import Any


def test_client_with_its_subscriptions(looking: Any, mesh: Any) -> None:
    """Its connection, its counts, and what it subscribes to."""

    async def test(seen: Any) -> None:
        await seen.press("4")
        screen = await seen.press("enter")
        assert "client blue/sensor-01" in screen
        assert "MQTT 5, keep-alive 60 s" in screen
        assert "1,000 messages, 64kB" in screen
        assert "alerts/#" in screen
        assert "subscriptions: rows 1 to 2 of 2" in screen

    looking(test, mesh.edge())


def test_disconnect(looking: Any, mesh: Any) -> None:
    """The client that is shown."""
    router = mesh.edge()

    async def test(seen: Any) -> None:
        await seen.press("4")
        await seen.press("enter")
        await seen.press("x", "y")
        await seen.app.workers.wait_for_complete()
        assert router.shown.disconnected == ["sensor-01"]

    looking(test, router)


def test_gone(looking: Any, mesh: Any) -> None:
    """The router's words, when it has left for good."""
    router = mesh.edge()

    async def test(seen: Any) -> None:
        await seen.press("4")
        await seen.press("enter")
        router.shown.clients.clear()
        assert "client sensor-01" in (await seen.look()).splitlines()[-2]

    looking(test, router)
