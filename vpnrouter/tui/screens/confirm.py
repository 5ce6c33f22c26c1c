"""A question that is answered by yes or no."""

from textwrap import wrap
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from vpnrouter.tui.format import clean
from vpnrouter.tui.pieces import text
from vpnrouter.tui.widgets.lines import Lines

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
        """See Screen.compose."""
        with Vertical():
            yield Lines(id="question")

    def on_mount(self) -> None:
        """Ask."""
        asked = [text((part, "title")) for part in wrap(clean(self._question), WIDTH)]
        shown = self.query_one(Lines)
        shown.styles.height = len(asked) + 2
        shown.show([*asked, (), text(("y", "key"), " yes   ", ("n", "key"), " no")])

    def action_answer(self, yes: bool) -> None:
        """Answered."""
        self.dismiss(yes)
