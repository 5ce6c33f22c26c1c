from typing import Any

from vpnrouter.tui.keys import Key
from vpnrouter.tui.screens.help import help_lines


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

    looking(test, mesh.edge())
