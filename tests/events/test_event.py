"""One event: names and texts on one line, and bounded."""

import pytest

from vpnrouter.events import limits, table
from vpnrouter.events.event import Event, bounded


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain", "plain"),
        ("Grüße →", "Grüße →"),
        ("a\nb", "a\\nb"),
        ("\r\x1b[31mred\x00", "\\r\\x1b[31mred\\x00"),
        ("\u2028\u202e", "\\u2028\\u202e"),
        ("\ud800", "\\ud800"),
        ("", ""),
    ],
)
def test_what_does_not_print_is_escaped(given: str, shown: str) -> None:
    """No name can begin a line of its own, move a terminal's cursor or turn text around."""
    assert bounded(given, 100) == shown


def test_names_and_texts_are_cut() -> None:
    """A hostile name or a long text ends with an ellipsis at its bound, escapes included."""
    event = Event(1, 2, table.CONNECT, "blue", "\n" * 70_000, "x" * 70_000)
    assert len(event.name) == limits.EVENT_NAME_CHARS
    assert event.name.startswith("\\n\\n")
    assert len(event.text) == limits.EVENT_TEXT_CHARS
    assert event.text[-2:] == "x…"
