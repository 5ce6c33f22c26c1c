"""The screens of all clients and of one."""

from typing import Any


def test_clients(looking: Any, mesh: Any) -> None:
    """Where each comes from, what it sends, and whether it is slow."""
    router = mesh.edge

    async def test(seen: Any) -> None:
        screen = await seen.press("4")
        row = next(line for line in screen.splitlines() if line.startswith("sensor-03"))
        assert row.split()[:4] == ["sensor-03", "blue", "slow", "192.0.2.3:40000"]
        assert "rows 1 to 10 of 10" in screen
        screen = await seen.press("f")
        assert "rows 1 to 1 of 1  filter: slow" in screen

    looking(test, router)


def test_disconnect(looking: Any, mesh: Any) -> None:
    """After a yes."""
    router = mesh.edge

    async def test(seen: Any) -> None:
        await seen.press("4")
        assert "Disconnect client sensor-01 of message VPN blue?" in await seen.press("j", "j", "x")
        await seen.press("y")
        await seen.app.workers.wait_for_complete()
        assert router.clients["sensor-01"].closed
        assert "client sensor-01 is disconnected" in await seen.screen()

    looking(test, router)


def test_client_with_its_subscriptions(looking: Any, mesh: Any) -> None:
    """Its connection, its counts, and what it subscribes to."""

    async def test(seen: Any) -> None:
        await seen.press("4")
        await seen.press("j", "j")
        screen = await seen.press("enter")
        assert "client blue/sensor-01" in screen
        assert "MQTT 5, keep-alive 0 s" in screen
        assert "262 messages, 21kB" in screen
        assert "alerts/#" in screen
        assert "subscriptions: rows 1 to 2 of 2" in screen

    looking(test, mesh.edge)


def test_client_disconnect(looking: Any, mesh: Any) -> None:
    """The client that is shown."""
    router = mesh.edge

    async def test(seen: Any) -> None:
        await seen.press("4")
        await seen.press("j", "j")
        await seen.press("enter")
        await seen.press("x", "y")
        await seen.app.workers.wait_for_complete()
        assert router.clients["sensor-01"].closed

    looking(test, router)


def test_gone(looking: Any, mesh: Any) -> None:
    """The router's words, when it has left for good."""
    router = mesh.edge

    async def test(seen: Any) -> None:
        await seen.press("4")
        await seen.press("j", "j")
        await seen.press("enter")
        del router.router.vpns["blue"].clients["sensor-01"]
        assert "client sensor-01" in (await seen.look()).splitlines()[-2]

    looking(test, router)
