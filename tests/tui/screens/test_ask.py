from typing import Any


def test_a_text_or_nothing(looking: Any, mesh: Any) -> None:
    """Enter gives the text, Escape nothing; keys of the screen are letters meanwhile."""
    given: list[Any] = []

    async def test(seen: Any) -> None:
        seen.app.ask("Which?", given.append, "a hint", "abc")
        await seen.screen()
        screen = await seen.screen()
        assert "Which?" in screen
        assert "a hint" in screen
        await seen.write("q1")
        seen.app.ask("Which?", given.append)
        await seen.pilot.pause()
        await seen.press("x", "escape")
        assert given == ["abcq1", None]
        assert (await seen.screen()).startswith("overview  ")

    looking(test, mesh.edge())
