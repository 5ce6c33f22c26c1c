"""An event as a line of the log: for people, or as JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Final

from vpnrouter import limits
from vpnrouter.events.event import Event
from vpnrouter.events.levels import ERROR, WARNING
from vpnrouter.text import printable

SECOND_NS: Final = 1_000_000_000

_COLOURS: Final = {WARNING: "\x1b[33m", ERROR: "\x1b[31m"}
_PLAIN: Final = "\x1b[0m"


def readable(event: Event, *, colour: bool = False) -> str:
    """`vpnrouter: NAME: text`; without the name where the text says it all."""
    kind = event.kind
    label = kind.name if kind.label is None else kind.label
    line = f"vpnrouter: {label}: {event.text}" if label else f"vpnrouter: {event.text}"
    shade = _COLOURS.get(kind.level, "") if colour else ""
    return f"{shade}{line}{_PLAIN}" if shade else line


def as_json(event: Event, router_name: str, tag: str = "") -> str:
    """One JSON object; `tag` is the `log_tag` of the event's message VPN, left out where there is none."""
    kind = event.kind
    fields: dict[str, str] = {
        "time": rfc3339(event.time_ns),
        "level": kind.level_name,
        "event": kind.name,
        "scope": kind.scope,
        "area": kind.area,
        "router": router_name,
        "msgVpn": printable(event.msg_vpn),
        "name": event.name,
        "text": event.text,
    }
    if tag:
        fields["tag"] = printable(tag)
    return json.dumps(fields, ensure_ascii=False)


def rfc3339(time_ns: int) -> str:
    """`2026-01-31T23:59:59.123456789Z`; nanoseconds since 1970, UTC."""
    seconds, rest = divmod(time_ns, SECOND_NS)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09}Z"


def shortened(event: Event) -> Event:
    """The event with so little text that any line of it fits `limits.EVENT_LINE_BYTES`."""
    # A character has four bytes at most, or six where JSON escapes it.
    most = limits.EVENT_LINE_BYTES // 12
    text = event.text if len(event.text) <= most else event.text[: most - 1] + "…"
    return Event(
        event.event_id, event.time_ns, event.kind, event.msg_vpn, event.name[: most // 2], text
    )
