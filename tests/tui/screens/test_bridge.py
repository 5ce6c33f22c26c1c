from typing import Any


async def opened(seen: Any) -> str:
    """The bridge from-core."""
    await seen.press("2")
    return await seen.press("j", "enter")


def test_both_ends_beside_each_other(looking: Any, mesh: Any) -> None:
    """Where both routers are looked at."""

    async def test(seen: Any) -> None:
        lines = (await opened(seen)).splitlines()
        assert lines[1].split() == ["edge/blue", "core/yellow"]
        assert lines[2].split() == ["from-core", "up", "to-edge", "up"]
        numbers = [line for line in lines if line.startswith("messages")]
        assert numbers[0].split()[1] == "1,234,567,"
        assert numbers[0].split()[5] == "9,876"
        assert any("transmit-congestion 12" in line for line in lines)

    looking(test, mesh.edge(), mesh.core())


def test_one_end(looking: Any, mesh: Any) -> None:
    """Else it says what would show the other one."""

    async def test(seen: Any) -> None:
        screen = await opened(seen)
        assert "core/yellow" in screen
        assert "the other end is on router core: give its API by --url as well" in screen

    looking(test, mesh.edge())


def test_down(looking: Any, mesh: Any) -> None:
    """Why, and what each remote said."""

    async def test(seen: Any) -> None:
        await seen.press("2")
        screen = await seen.press("enter")
        assert "cannot connect to 198.51.100.9:55555: Connection refused" in screen
        assert "7, the last 4s ago" in screen
        assert "1 red at 198.51.100.9:55555 not connected" in screen

    looking(test, mesh.edge(), size=(80, 30))


def test_gone(looking: Any, mesh: Any) -> None:
    """One that is removed meanwhile is told to be gone."""
    router = mesh.edge()

    async def test(seen: Any) -> None:
        await opened(seen)
        router.bridges.clear()
        assert "this bridge is not there" in await seen.look()

    looking(test, router, mesh.core())


def test_enable_is_a_change_of_the_configuration(looking: Any, mesh: Any) -> None:
    """A router that was not started from a file refuses it, and its words are shown in one line."""

    async def test(seen: Any) -> None:
        await opened(seen)
        assert "Disable bridge from-core in message VPN blue?" in await seen.press("x")
        await seen.press("y")
        await seen.app.workers.wait_for_complete()
        notes = (await seen.screen()).splitlines()[-2]
        assert notes.strip(), "the refusal"
        assert "is disabled" not in notes

    looking(test, mesh.edge())
