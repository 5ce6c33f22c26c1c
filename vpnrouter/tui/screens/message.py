"""One message of a queue: its attributes, and its payload as text, JSON or bytes."""

from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import BindingType

from vpnrouter.management.rows import Row
from vpnrouter.tui import format as fmt
from vpnrouter.tui import paths
from vpnrouter.tui.keys import Key, bindings_of
from vpnrouter.tui.pieces import Line, fit, text
from vpnrouter.tui.router import Router
from vpnrouter.tui.screens.view import View
from vpnrouter.tui.widgets.lines import Lines
from vpnrouter.tui.widgets.payload import PayloadView, best_view, payload_lines

VIEWS: Final = {"t": PayloadView.TEXT, "o": PayloadView.JSON, "x": PayloadView.HEX}


class QueuedMessage(View):
    """One message as the queue's page told of it; its payload is asked for once."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("t", "shown('t')", "text", "the payload as text"),
        Key("o", "shown('o')", "JSON", "the payload as JSON object"),
        Key("x", "shown('x')", "hex", "the payload as bytes in hexadecimal"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(KEYS)

    def __init__(self, router: Router, msg_vpn: str, queue: str, row: Row) -> None:
        super().__init__(router)
        self._path = f"{paths.OURS}{paths.queue(msg_vpn, queue)}/msgs/{row['msgId']}/payload"
        self._row = row
        self._payload: bytes | None = None
        self._view = PayloadView.TEXT

    def place(self) -> str:
        """See View.place."""
        return f"message {self._row['msgId']}"

    def body(self) -> ComposeResult:
        """See View.body."""
        facts = Lines(id="facts")
        facts.styles.height = 4
        yield facts
        yield Lines(id="body", focusable=True)

    async def fetch(self, router: Router) -> None:
        """See View.fetch."""
        if self._payload is None:
            self._payload = await router.api.content(self._path)
            self._view = best_view(self._payload)

    def draw(self) -> None:
        """See View.draw."""
        self.lines("facts").show(_facts(self._row))
        if self._payload is None:
            self.lines("body").show([text(("asking …", "dim"))])
        else:
            width = self.size.width
            self.lines("body").show(payload_lines(self._payload, self._view, width))

    def note(self) -> Line:
        """How the payload is shown."""
        size = len(self._payload or b"")
        return text((f"payload of {size:,} bytes as ", "dim"), (self._view.value, "accent"))

    def action_shown(self, key: str) -> None:
        """Show the payload in another way."""
        self._view = VIEWS[key]
        self.lines("body").action_scroll_to_first()
        self.redraw()


def _facts(row: Row) -> list[Line]:
    times = f"spooled {fmt.moment(row['spooledTime'])}, expires {fmt.moment(row['expiryTime'])} UTC"
    told = (
        f"priority {row['priority']}, delivered again {row['redeliveryCount']} times,"
        f" publisher {row['publisherId'] or fmt.NONE}"
    )
    return [
        text((fit(str(row["topic"]), 400).rstrip(), "title")),
        text((times, "dim")),
        text((told, "dim")),
        (),
    ]
