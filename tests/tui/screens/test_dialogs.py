"""Dialogs that ask for a text or a yes, and the help."""

from typing import Any

from vpnrouter.tui.keys import Key
from vpnrouter.tui.screens.help import help_lines


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

    looking(test, mesh.edge)


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

    looking(test, mesh.edge)


def test_keys_of_the_screen_come_first() -> None:
    """Then those of tables, then those of everywhere."""
    lines = [
        "".join(piece for piece, _ in line)
        for line in help_lines([Key("d", "x", "", "do")], "place")
    ]
    assert lines[0] == "place"
    assert lines[1].split() == ["d", "do"]
    assert lines.index("moving") < lines.index("everywhere")


def test_help_on_a_question_mark(looking: Any, mesh: Any) -> None:
    """It scrolls where it is longer than the screen, and goes away."""

    async def test(seen: Any) -> None:
        await seen.press("3")
        screen = await seen.press("question_mark")
        assert "the next of the usual filters" in screen
        assert "q          quit" in await seen.press("G")
        assert "usual filters" not in await seen.press("question_mark")
        assert seen.app.is_running

    looking(test, mesh.edge)
