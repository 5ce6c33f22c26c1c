"""The screens of all bridges and of one."""

from pathlib import Path
from typing import Any

from management_routers import FAR, HERE, routers


def test_down_on_top_with_its_reason(looking: Any, mesh: Any) -> None:
    """State, direction, rates, and why; the whole reason in the line of notes."""

    async def test(seen: Any) -> None:
        screen = await seen.press("2")
        lines = screen.splitlines()
        assert lines[2].split()[:3] == ["from-red", "green", "down"]
        assert lines[3].split()[:5] == ["from-core", "blue", "up", "◄►", "core/yellow"]
        assert "from-red down 1m04s: no given file describes router gone" in lines[-2]
        assert "to-edge" in screen
        assert "from-core" not in await seen.press("d")
        assert "from-core" in await seen.press("d")

    looking(test, mesh.edge, mesh.core)


def test_reconnect(looking: Any, mesh: Any) -> None:
    """It is done after `y` alone."""

    async def test(seen: Any) -> None:
        await seen.press("2", "j")
        assert "Reconnect bridge from-core in message VPN blue?" in await seen.press("R")
        await seen.press("enter")
        await seen.press("n")
        assert mesh.edge.up("blue", "from-core")
        await seen.press("R")
        await seen.press("y")
        await seen.pilot.app.workers.wait_for_complete()
        assert not mesh.edge.up("blue", "from-core")
        assert "bridge from-core connects again" in await seen.screen()
        assert "connects again" not in await seen.press("j"), "the next key takes it away"

    looking(test, mesh.edge)


def test_viewer(looking: Any, mesh: Any) -> None:
    """Who may only look is told so, and asked nothing."""
    router = mesh.edge
    users = {"ann": {"password": "pw", "role": "read-only"}}

    async def test(seen: Any) -> None:
        await seen.press("2")
        screen = await seen.press("x")
        assert "user ann may look and not change" in screen
        assert "Disable" not in screen

    looking(test, router, users=users, login=("ann", "pw"))


def test_open(looking: Any, mesh: Any) -> None:
    """Enter opens the bridge under the cursor, of whichever router it is."""

    async def test(seen: Any) -> None:
        await seen.press("2")
        screen = await seen.press("G", "enter")
        assert screen.startswith("overview › bridges › bridge yellow/to-edge")
        assert "router 2/2 core" in screen

    looking(test, mesh.edge, mesh.core)


def test_bridge_of_another_router_is_configured_there(looking: Any, tmp_path: Path) -> None:
    """What it is here is no part of this router's configuration."""
    _, far = routers(tmp_path, here=HERE, far=FAR)

    async def test(seen: Any) -> None:
        assert "#bridg…" in await seen.press("2")
        assert "it is configured there" in await seen.press("x")
        assert "Reconnect bridge" in await seen.press("R")

    looking(test, far)


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
        assert [numbers[0].split()[at] for at in (1, 5)] == ["150,", "12,"]
        assert any("no-subscription-match 12" in line for line in lines)

    looking(test, mesh.edge, mesh.core)


def test_one_end(looking: Any, mesh: Any) -> None:
    """Else it says what would show the other one."""

    async def test(seen: Any) -> None:
        screen = await opened(seen)
        assert "core/yellow" in screen
        assert "the other end is on router core: give its API by --url as well" in screen

    looking(test, mesh.edge)


def test_down(looking: Any, mesh: Any) -> None:
    """Why, and what each remote said."""

    async def test(seen: Any) -> None:
        await seen.press("2")
        screen = await seen.press("enter")
        assert "no given file describes router gone" in screen
        assert "2, the last 1m04s ago" in screen
        assert "4 red at 198.51.100.9:55555 not connected" in screen

    looking(test, mesh.edge, size=(80, 30))


def test_gone(looking: Any, mesh: Any) -> None:
    """One that is removed meanwhile is told to be gone."""
    router = mesh.edge

    async def test(seen: Any) -> None:
        await opened(seen)
        router.remove_bridge("blue", "from-core")
        assert "this bridge is not there" in await seen.look()

    looking(test, router, mesh.core)


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

    looking(test, mesh.edge)
