"""Draws lines of text; only those that changed are painted anew."""

from collections.abc import Sequence
from functools import cache
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from vpnrouter.tui.format import STYLES, Line, cut


@cache
def style_of(name: str) -> Style:
    """The style of a name in STYLES; several names are joined by `+`, the last one over the others."""
    parts = (Style.parse(STYLES[each]) for each in name.split("+") if each)
    return Style.combine(parts) if name else Style.null()


class Lines(Widget):
    """Shows lines; a terminal gets those again that changed since. `painted` counts them.

    With focus it scrolls.
    """

    DEFAULT_CSS: ClassVar[str] = "Lines { height: 1fr; } Lines:focus { }"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_by(-1)", show=False),
        Binding("down,j", "scroll_by(1)", show=False),
        Binding("pageup", "scroll_page(-1)", show=False),
        Binding("pagedown", "scroll_page(1)", show=False),
        Binding("home,g", "scroll_to_first", show=False),
        Binding("end,G", "scroll_to_last", show=False),
    ]

    def __init__(self, *, id: str | None = None, focusable: bool = False) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.can_focus = focusable
        self.painted = 0
        self.top = 0
        self._lines: list[Line] = []

    @property
    def lines(self) -> Sequence[Line]:
        """The lines that were given last."""
        return self._lines

    @property
    def rows(self) -> int:
        """How many lines fit."""
        return max(0, self.size.height)

    def show(self, lines: Sequence[Line]) -> None:
        """Show these lines; only rows that changed are painted anew."""
        before, top = self._lines, self.top
        self._lines = list(lines)
        self.top = max(0, min(self.top, len(self._lines) - self.rows))
        if top != self.top:
            self.paint_all()
            return
        for row in range(self.rows):
            if _at(before, row + top) != _at(self._lines, row + top):
                self.paint(row)

    def paint(self, row: int) -> None:
        """Have one row of the screen painted anew, from 0."""
        self.painted += 1
        self.refresh(Region(0, row, self.size.width, 1))

    def paint_all(self) -> None:
        """Have everything painted anew."""
        self.painted += self.rows
        self.refresh()

    def line_at(self, row: int) -> Line:
        """What stands in a row of the screen."""
        return _at(self._lines, row + self.top)

    def render_line(self, y: int) -> Strip:
        """Give row `y` of the widget, from 0, as a strip that is cut to its width."""
        pieces = cut(self.line_at(y), self.size.width)
        strip = Strip([Segment(string, style_of(name)) for string, name in pieces])
        return strip.apply_style(self.rich_style)

    def action_scroll_by(self, rows: int) -> None:
        """Scroll by rows."""
        top = max(0, min(self.top + rows, len(self._lines) - self.rows))
        if top != self.top:
            self.top = top
            self.paint_all()

    def action_scroll_page(self, pages: int) -> None:
        """Scroll by pages of as many lines as fit, less one."""
        self.action_scroll_by(pages * max(1, self.rows - 1))

    def action_scroll_to_first(self) -> None:
        """Show the beginning."""
        self.action_scroll_by(-len(self._lines))

    def action_scroll_to_last(self) -> None:
        """Show the end."""
        self.action_scroll_by(len(self._lines))


def _at(lines: Sequence[Line], place: int) -> Line:
    return lines[place] if 0 <= place < len(lines) else ()
