from pathlib import Path
from typing import Any

from management_routers import routers


def test_map_moves_with_the_keys(looking: Any, mesh: Any) -> None:
    """Bridges of all routers once; the chosen one is told below and opened by Enter."""

    async def test(seen: Any) -> None:
        screen = await seen.press("5")
        assert screen.count("from-core") == 2, "its arrow and the line of notes"
        assert "to-edge" not in screen, "it is the other end"
        assert "50/s ↔ 4/s" in screen
        assert "DOWN" in screen
        assert "up from-core — core/yellow: 50/s in, 4/s out" in screen
        screen = await seen.press("down")
        assert "down from-red — 198.51.100.9:55555/red: no given file" in screen
        assert "bridge green/from-red" in await seen.press("enter")

    looking(test, mesh.edge, mesh.core)


def test_many_message_vpns(looking: Any, tmp_path: Path) -> None:
    """What does not fit is reached by moving."""
    names = ["blue", *[f"v{number:02}" for number in range(20)]]
    (router,) = routers(tmp_path, edge=f"msg_vpns: {{{': {}, '.join(names)}: {{}}}}")

    async def test(seen: Any) -> None:
        screen = await seen.press("5")
        assert "v00" in screen
        assert "v19" not in screen
        screen = await seen.press(*["right"] * 30)
        assert "v19" in screen
        assert "blue" not in screen.splitlines()[2]
        assert "blue" in await seen.press(*["left"] * 30)

    looking(test, router)


def test_no_bridges(looking: Any, mesh: Any) -> None:
    """Keys of bridges do nothing then."""
    mesh.edge.bridges.clear()

    async def test(seen: Any) -> None:
        assert "no bridges" in await seen.press("5", "down", "enter")

    looking(test, mesh.edge)
