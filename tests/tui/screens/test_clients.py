from typing import Any


def test_clients(looking: Any, mesh: Any) -> None:
    """Where each comes from, what it sends, and whether it is slow."""
    router = mesh.edge()

    async def test(seen: Any) -> None:
        screen = await seen.press("4")
        row = next(line for line in screen.splitlines() if line.startswith("sensor-03"))
        assert row.split()[:4] == ["sensor-03", "blue", "slow", "192.0.2.3:40000"]
        assert "rows 1 to 8 of 8" in screen
        screen = await seen.press("f")
        assert "rows 1 to 1 of 1  filter: slow" in screen

    looking(test, router)


def test_disconnect(looking: Any, mesh: Any) -> None:
    """After a yes."""
    router = mesh.edge()

    async def test(seen: Any) -> None:
        await seen.press("4")
        assert "Disconnect client sensor-02 of message VPN blue?" in await seen.press("j", "x")
        await seen.press("y")
        await seen.app.workers.wait_for_complete()
        assert router.shown.disconnected == ["sensor-02"]
        assert "client sensor-02 is disconnected" in await seen.screen()

    looking(test, router)
