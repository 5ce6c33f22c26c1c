"""Explain: where a message goes and why, step by step over all bridges."""

from collections.abc import Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType

from vpnrouter.errors import VpnrouterError
from vpnrouter.limits import TUI_LINES
from vpnrouter.tui.api import Router
from vpnrouter.tui.explainer import Question
from vpnrouter.tui.format import Line, folded, text
from vpnrouter.tui.keys import Key, bindings_of
from vpnrouter.tui.screens.view import View
from vpnrouter.tui.widgets.lines import Lines

MODES: Final = ("direct", "persistent")


MARKS: Final = {"✓": "good", "✗": "bad"}
"""Signs of what comes and what does not, and their styles."""


class Explain(View):
    """Asks for a topic and shows the tree."""

    PLACE = "explain"
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("slash", "topic", "topic", "explain another topic"),
        Key("v", "msg_vpn", "VPN", "published in the next message VPN"),
        Key("m", "mode", "mode", "direct or persistent"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(KEYS)

    def __init__(self, router: Router | None = None) -> None:
        super().__init__(router)
        self._msg_vpn = ""
        self._topic = ""
        self._mode = MODES[0]
        self._answer: tuple[tuple[str, str, str], Sequence[str]] | None = None

    def body(self) -> ComposeResult:
        """Give the lines of the explanation."""
        yield Lines(id="body", focusable=True)

    async def fetch(self, router: Router) -> None:
        """Request the message VPNs where none are known, and for the explanation that is wanted."""
        if not router.store.msg_vpns:
            await router.fetch_msg_vpns()
        if not self._msg_vpn and router.store.msg_vpns:
            self._msg_vpn = router.store.msg_vpns[0]["msgVpnName"]
        explainer, query = self.ui.explainer, self._query
        if explainer is None or not self._topic or (self._answer and self._answer[0] == query):
            return
        try:
            lines = await explainer(Question(router.store.name, *query))
        except VpnrouterError as error:
            lines = [str(error)]
        if query == self._query:
            self._answer = (query, lines)

    def draw(self) -> None:
        """Show the explanation, or say why there is none yet."""
        self.lines("body").show(self._lines())

    def note(self) -> Line:
        """Say the message VPN, the mode and the topic that are asked about."""
        return text(
            ("message VPN ", "dim"),
            (self._msg_vpn or "?", "accent"),
            ("  mode ", "dim"),
            (self._mode, "accent"),
            ("  topic ", "dim"),
            (self._topic or "?", "accent"),
        )

    def action_topic(self) -> None:
        """Ask for a topic."""
        self.ui.ask("Topic of the message", self._set_topic, "such as orders/eu/1", self._topic)

    def action_msg_vpn(self) -> None:
        """Ask about the next message VPN."""
        names = [row["msgVpnName"] for row in self.router.store.msg_vpns]
        if names:
            place = names.index(self._msg_vpn) + 1 if self._msg_vpn in names else 0
            self._msg_vpn = names[place % len(names)]
            self._ask_again()

    def action_mode(self) -> None:
        """Ask about the other mode."""
        self._mode = MODES[(MODES.index(self._mode) + 1) % len(MODES)]
        self._ask_again()

    @property
    def _query(self) -> tuple[str, str, str]:
        return (self._msg_vpn, self._topic, self._mode)

    def _set_topic(self, topic: str | None) -> None:
        if topic is not None:
            self._topic = topic
            self._ask_again()

    def _ask_again(self) -> None:
        # What was told is of this moment: the same question is asked anew.
        self._answer = None
        self.redraw()
        self.ui.look_soon()

    def _lines(self) -> list[Line]:
        if self.ui.explainer is None:
            return [text(("not here: vpnrouter explain CONFIG… tells it", "warn"))]
        if not self._topic:
            return [text(("/ asks for a topic", "dim"))]
        if self._answer is None or self._answer[0] != self._query:
            return [text(("asking …", "dim"))]
        width = max(1, self.size.width)
        parts = [part for line in self._answer[1] for part in folded(line, width)]
        return [_marked(part) for part in parts[:TUI_LINES]]


def _marked(line: str) -> Line:
    """A line of the tree, its sign in colour."""
    for mark, style in MARKS.items():
        before, found, after = line.partition(mark)
        if found:
            return text((before, "dim"), (mark, style), after)
    return text(line)
