"""Asks for a text, or for yes or no."""

from __future__ import annotations

from textwrap import wrap
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from vpnrouter.limits import TUI_TEXT
from vpnrouter.tui.format import clean, text
from vpnrouter.tui.widgets.lines import Lines


class Ask(ModalScreen[str | None]):
    """Gives the text, or None when it was left by Escape."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    def __init__(self, label: str, hint: str = "", default: str = "") -> None:
        super().__init__()
        self._label = label
        self._hint = hint
        self._default = default

    def compose(self) -> ComposeResult:
        """Give the label, the field for the text and the hint."""
        with Vertical():
            label = Lines(id="label")
            label.styles.height = 1
            yield label
            field = Input(self._default, max_length=TUI_TEXT, id="field", select_on_focus=False)
            field.cursor_blink = False
            yield field
            hint = Lines(id="hint")
            hint.styles.height = 1
            yield hint

    def on_mount(self) -> None:
        """Show the label and the hint, and focus the field."""
        self.query_one("#label", Lines).show([text((self._label, "title"))])
        self.query_one("#hint", Lines).show([text((self._hint or "⏎ done  esc leave", "dim"))])
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Close the dialog with the text."""
        self.dismiss(event.value)

    def action_leave(self) -> None:
        """Close the dialog without a text."""
        self.dismiss(None)


WIDTH = 64
"""Columns of the question."""


class Confirm(ModalScreen[bool]):
    """Gives True for `y` alone: Enter, pressed once too often, does nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", show=False),
        Binding("n,escape", "answer(False)", show=False),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """Give the widget for the question."""
        with Vertical():
            yield Lines(id="question")

    def on_mount(self) -> None:
        """Show the question and the keys that answer it."""
        question = [text((part, "title")) for part in wrap(clean(self._question), WIDTH)]
        shown = self.query_one(Lines)
        shown.styles.height = len(question) + 2
        shown.show([*question, (), text(("y", "key"), " yes   ", ("n", "key"), " no")])

    def action_answer(self, yes: bool) -> None:
        """Close the dialog with the answer."""
        self.dismiss(yes)
