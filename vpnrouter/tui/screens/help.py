"""What the keys do, of one screen and of all."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from vpnrouter.tui.format import Line, fit, text
from vpnrouter.tui.keys import EVERYWHERE, MOVING, Key, key_names
from vpnrouter.tui.widgets.lines import Lines

WIDTH = 11
"""Columns for the keys."""


def help_lines(keys: Sequence[Key], place: str) -> list[Line]:
    """All keys, those of the screen first."""
    lines: list[Line] = []
    if keys:
        lines += [text((place, "title")), *_lines((key_names(key), key.help) for key in keys), ()]
    lines += [text(("moving", "title")), *_lines(MOVING), ()]
    lines += [text(("everywhere", "title"))]
    lines += _lines((key_names(key), key.help) for key in EVERYWHERE)
    return lines


class Help(ModalScreen[None]):
    """The keys; any of ?, Escape and q leads back."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q", "leave", show=False)]

    def __init__(self, keys: Sequence[Key], place: str) -> None:
        super().__init__()
        self._keys = keys
        self._place = place

    def compose(self) -> ComposeResult:
        """Give the widget for the keys."""
        with Vertical():
            yield Lines(focusable=True)

    def on_mount(self) -> None:
        """Show the keys."""
        lines = self.query_one(Lines)
        lines.show(help_lines(self._keys, self._place))
        lines.focus()

    def action_leave(self) -> None:
        """Go back to the screen."""
        self.dismiss(None)


def _lines(rows: Iterable[tuple[str, str]]) -> list[Line]:
    return [text((f"  {fit(keys, WIDTH)}", "key"), help_text) for keys, help_text in rows]
