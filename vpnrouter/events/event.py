"""One event."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter.events import limits

if TYPE_CHECKING:
    from vpnrouter.events.kind import Kind


@final
class Event:
    """What happened when: `time_ns` is UTC since 1970, `event_id` rises by one.

    `msg_vpn` is "" for what is the router's as a whole; `name` is the client, bridge, queue or listener
    that it is about, "" for none. Names and text are one printable line each.
    """

    __slots__ = ("event_id", "kind", "msg_vpn", "name", "text", "time_ns")

    def __init__(
        self, event_id: int, time_ns: int, kind: Kind, msg_vpn: str, name: str, text: str
    ) -> None:
        self.event_id = event_id
        self.time_ns = time_ns
        self.kind = kind
        self.msg_vpn = msg_vpn
        self.name = bounded(name, limits.EVENT_NAME_CHARS)
        self.text = bounded(text, limits.EVENT_TEXT_CHARS)


def bounded(text: str, most: int) -> str:
    """`text` on one line, with escapes for what does not print, and cut at `most` characters."""
    if len(text) > most:
        text = text[: most - 1] + "…"
    if text.isprintable():
        return text
    shown = "".join(each if each.isprintable() else _escaped(each) for each in text)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
