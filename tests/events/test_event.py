"""One event: names and texts on one line, and bounded."""

from vpnrouter import limits
from vpnrouter.events import table
from vpnrouter.events.log import Event


def test_names_and_texts_are_cut() -> None:
    """A hostile name or a long text ends with an ellipsis at its bound, escapes included."""
    event = Event(1, 2, table.CONNECT, "blue", "\n" * 70_000, "x" * 70_000)
    assert len(event.name) == limits.EVENT_NAME_CHARS
    assert event.name.startswith("\\n\\n")
    assert len(event.text) == limits.EVENT_TEXT_CHARS
    assert event.text[-2:] == "x…"
