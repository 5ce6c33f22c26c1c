"""One event."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from vpnrouter import limits
from vpnrouter.text import printable

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
        self.name = printable(name, limits.EVENT_NAME_CHARS)
        self.text = printable(text, limits.EVENT_TEXT_CHARS)
