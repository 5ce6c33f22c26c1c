import asyncio
from typing import Any

from textual.app import App, ComposeResult

from vpnrouter.tui.format import STYLES, text
from vpnrouter.tui.widgets.lines import Lines, style_of


class Shown(App[None]):
    """Lines alone."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = Lines(focusable=True)

    def compose(self) -> ComposeResult:
        yield self.lines


def test_scrolls_and_paints_what_changed() -> None:
    """Ten lines on a screen of four."""

    async def main() -> None:
        app = Shown()
        async with app.run_test(size=(20, 4)) as pilot:
            lines = app.lines
            lines.focus()

            def drawn() -> list[str]:
                return [lines.render_line(y).text.rstrip() for y in range(4)]

            lines.show([text(f"line {n}") for n in range(10)])
            assert drawn() == ["line 0", "line 1", "line 2", "line 3"]
            seen: list[Any] = []
            for key in ("j", "G", "k", "pageup", "g"):
                await pilot.press(key)
                seen.append(drawn()[0])
            assert seen == ["line 1", "line 6", "line 5", "line 2", "line 0"]
            before = lines.painted
            lines.show([text("line 0"), text("other"), *(text(f"line {n}") for n in range(2, 10))])
            assert lines.painted == before + 1
            await pilot.press("G")
            lines.show([text("one")])
            assert drawn() == ["one", "", "", ""], "what is shorter is seen from its end"

    asyncio.run(main())


def test_styles_are_known() -> None:
    """Each name means something, and several are one over the other."""
    for name in STYLES:
        style_of(name)
    both = style_of("cursor+bad")
    assert both.bgcolor == style_of("cursor").bgcolor
    assert both.color == style_of("bad").color


def test_a_line_commands_nothing() -> None:
    """Whatever is shown, the terminal only draws it."""

    async def main() -> None:
        app = Shown()
        async with app.run_test(size=(30, 4)):
            app.lines.show([text("a\x1b[31mb\nc\x9bd")])
            assert app.lines.render_line(0).text.rstrip() == r"a\x1b[31mb\nc\x9bd"

    asyncio.run(main())
