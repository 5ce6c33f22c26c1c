from typing import Any


def test_map_moves_with_the_keys(looking: Any, mesh: Any) -> None:
    """Bridges of all routers once; the chosen one is told below and opened by Enter."""

    async def test(seen: Any) -> None:
        screen = await seen.press("5")
        assert screen.count("from-core") == 2, "its arrow and the line of notes"
        assert "to-edge" not in screen, "it is the other end"
        assert "1.2k/s ↔ 40/s" in screen
        assert "DOWN" in screen
        assert "up from-core — core/yellow: 1.2k/s in, 40/s out" in screen
        screen = await seen.press("down")
        assert "down from-red — red@198.51.100.9:55555: cannot connect" in screen
        assert "bridge green/from-red" in await seen.press("enter")

    looking(test, mesh.edge(), mesh.core())


def test_many_message_vpns(looking: Any, mesh: Any) -> None:
    """What does not fit is reached by moving."""
    router = mesh.edge()
    router.add(*[f"v{number:02}" for number in range(20)])

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
    router = mesh.edge()
    router.bridges.clear()

    async def test(seen: Any) -> None:
        assert "no bridges" in await seen.press("5", "down", "enter")

    looking(test, router)
