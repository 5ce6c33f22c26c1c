import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from textual.app import App, ComposeResult

from vpnrouter.tui.widgets.table import Column, Entry, Table


class Shown(App[None]):
    """A table alone, which notes what it says."""

    def __init__(self, **more: Any) -> None:
        super().__init__()
        self.table = Table((Column("name", 4, share=1), Column("n", 3, right=True)), **more)
        self.said: list[Any] = []

    def compose(self) -> ComposeResult:
        yield self.table

    def on_table_chosen(self, event: Table.Chosen) -> None:
        self.said.append(event.key)

    def on_table_past(self, event: Table.Past) -> None:
        self.said.append(event.by)


def rows(*names: str) -> list[Entry]:
    """Rows by name."""
    return [Entry(name, ((name, ""), (str(len(name)), ""))) for name in names]


def on(test: Callable[[Shown, Any], Awaitable[None]], **more: Any) -> None:
    """Run a test with a table of 20 columns and 4 rows under its titles."""

    async def main() -> None:
        app = Shown(**more)
        async with app.run_test(size=(20, 5)) as pilot:
            app.table.focus()
            await test(app, pilot)

    asyncio.run(main())


def text_of(table: Table) -> list[str]:
    """What is drawn."""
    return [table.render_line(y).text.rstrip() for y in range(table.size.height)]


def test_cursor_stays_with_its_row() -> None:
    """Rows that come and go around it do not move it."""

    async def test(app: Shown, pilot: Any) -> None:
        app.table.fill(rows("b", "c", "d"))
        await pilot.press("down")
        assert app.table.key == "c"
        app.table.fill(rows("a", "b", "bb", "c"))
        assert app.table.key == "c"
        app.table.fill(rows("a", "b"))
        assert app.table.key == "b", "its row is gone: the nearest one"
        app.table.fill([])
        assert app.table.key == ""
        await pilot.press("enter")
        assert app.said == []

    on(test)


def test_moving() -> None:
    """By lines, by screens, to the ends, and past them."""

    async def test(app: Shown, pilot: Any) -> None:
        app.table.fill(rows(*(f"r{n}" for n in range(10))))
        keys = []
        for key in ("j", "pagedown", "pageup", "G", "k", "g", "end", "home"):
            await pilot.press(key)
            keys.append(app.table.key)
        assert keys == ["r1", "r5", "r1", "r9", "r8", "r0", "r9", "r0"]
        await pilot.press("up", "G", "down", "enter")
        assert app.said == [-1, 1, "r9"]
        assert text_of(app.table)[-1].startswith("r9"), "the cursor is in sight"

    on(test)


def test_only_changed_rows_are_painted() -> None:
    """One of ten rows, or none."""

    async def test(app: Shown, pilot: Any) -> None:
        app.table.fill(rows("a", "b", "c"))
        await pilot.pause()
        before = app.table.painted
        app.table.fill(rows("a", "b", "c"))
        assert app.table.painted == before
        changed = [*rows("a", "b"), Entry("c", (("c", ""), ("9", "")))]
        app.table.fill(changed)
        assert app.table.painted == before + 1
        await pilot.press("down")
        assert app.table.painted == before + 3, "the rows that the cursor leaves and comes to"

    on(test)
