from typing import Any


def test_only_y_is_yes(looking: Any, mesh: Any) -> None:
    """Enter and other keys leave the question where it is; n and Escape are no."""
    given: list[Any] = []

    async def test(seen: Any) -> None:
        for keys in (["enter", "x", "y"], ["n"], ["escape"]):
            seen.app.confirm("Delete \x1b[2J everything " * 6 + "?", given.append)
            await seen.pilot.pause()
            screen = await seen.screen()
            assert r"\x1b[2J" in screen
            assert "y yes   n no" in screen
            await seen.press(*keys)
        assert given == [True, False, False]

    looking(test, mesh.edge())
