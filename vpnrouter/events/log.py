"""The event log of one router: keeps the newest events, writes each one as a line, and bounds floods of one kind."""

from __future__ import annotations

import json
from collections import deque
from datetime import UTC, datetime
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Final, final

from vpnrouter import limits
from vpnrouter.events.table import DEBUG, ERROR, WARNING
from vpnrouter.text import printable
from vpnrouter.units import SECOND_NS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vpnrouter.events.table import EventType


@final
class Event:
    """What happened when: `time_ns` is UTC since 1970, `event_id` rises by one.

    `msg_vpn` is "" for what is the router's as a whole; `name` is the client, bridge, queue or listener
    that it is about, "" for none. Names and text are one printable line each.
    """

    __slots__ = ("event_id", "kind", "msg_vpn", "name", "text", "time_ns")

    def __init__(
        self, event_id: int, time_ns: int, kind: EventType, msg_vpn: str, name: str, text: str
    ) -> None:
        self.event_id = event_id
        self.time_ns = time_ns
        self.kind = kind
        self.msg_vpn = msg_vpn
        self.name = printable(name, limits.EVENT_NAME_CHARS)
        self.text = printable(text, limits.EVENT_TEXT_CHARS)


@final
class RateLimit:
    """Lets `most` events a second of each name through, and counts the others. 0 lets all through.

    Names come from the table, so there are not many. Times are nanoseconds of one clock.
    """

    __slots__ = ("_began_ns", "_count", "_suppressed", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self._began_ns: dict[str, int] = {}
        self._count: dict[str, int] = {}
        self._suppressed: dict[str, int] = {}

    def admits(self, name: str, now_ns: int) -> bool:
        """Return whether an event of this name may be raised now, and count it where it may not."""
        if not self.most:
            return True
        began_ns = self._began_ns.get(name)
        # A wall clock may have been set back.
        if began_ns is None or not 0 <= now_ns - began_ns < SECOND_NS:
            self._began_ns[name] = now_ns
            self._count[name] = 0
        count = self._count[name]
        if count >= self.most:
            self._suppressed[name] = self._suppressed.get(name, 0) + 1
            return False
        self._count[name] = count + 1
        return True

    def suppressed(self) -> dict[str, int]:
        """Return how many events of each name were suppressed since the last call."""
        found = self._suppressed
        self._suppressed = {}
        return found


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


@final
class EventLog:
    """Whatever raises events holds this one object; a context without it raises none.

    `listeners` are called with each event, in the router's thread, and must not raise events themselves.
    `clock_ns` gives UTC since 1970. `on_fault` is called with what a listener raises: the code that raises an
    event is not affected.
    """

    __slots__ = (
        "_clock_ns",
        "_kept",
        "_standing",
        "last_event_id",
        "listeners",
        "on_fault",
        "router_name",
    )

    def __init__(self, router_name: str, clock_ns: Callable[[], int]) -> None:
        self.router_name = router_name
        self.listeners: list[Callable[[Event], None]] = []
        self.last_event_id = 0
        self.on_fault: Callable[[Exception], object] | None = None
        self._clock_ns = clock_ns
        self._kept: dict[str, deque[Event]] = {}
        self._standing: dict[tuple[str, str, str], None] = {}

    def raise_event(
        self, kind: EventType, msg_vpn: str = "", name: str = "", text: str = ""
    ) -> None:
        """Raise an event of `msg_vpn` ("" for the router) and `name`; `text` says what happened.

        Called at the frequency of logins, never for each message.
        """
        event = Event(self.last_event_id + 1, self._clock_ns(), kind, msg_vpn, name, text)
        self.last_event_id = event.event_id
        if kind.level > DEBUG:
            kept = self._kept.get(kind.name)
            if kept is None:
                kept = self._kept[kind.name] = deque(maxlen=limits.EVENTS_KEPT)
            kept.append(event)
        for listener in self.listeners:
            try:
                listener(event)
            except Exception as error:
                if self.on_fault is None:
                    raise
                self.on_fault(error)

    def raise_once(self, kind: EventType, msg_vpn: str, name: str, text: str) -> bool:
        """Raise a one-shot event. Returns False while it is raised already."""
        key = (kind.name, msg_vpn, name)
        if key in self._standing:
            return False
        if len(self._standing) >= limits.EVENTS_STANDING:
            del self._standing[next(iter(self._standing))]
        self._standing[key] = None
        self.raise_event(kind, msg_vpn, name, text)
        return True

    def clear(self, kind: EventType, msg_vpn: str, name: str) -> bool:
        """Clear a one-shot event, so that it may be raised again. Returns False where it was not raised."""
        key = (kind.name, msg_vpn, name)
        if key not in self._standing:
            return False
        del self._standing[key]
        return True

    def stands(self, kind: EventType, msg_vpn: str, name: str) -> bool:
        """Whether a one-shot event was raised and not cleared."""
        return (kind.name, msg_vpn, name) in self._standing

    def after(
        self, event_id: int, most: int, sees: Callable[[str], bool] | None = None
    ) -> list[Event]:
        """At most `most` events with ids above `event_id`, by rising id.

        `sees` says of a message VPN ("" for the router) whether its events are wanted.
        """
        newer = []
        for kept in self._kept.values():
            back: list[Event] = []
            for event in reversed(kept):
                if event.event_id <= event_id:
                    break
                back.append(event)
            newer.append(reversed(back))
        wanted = _seen(merge(*newer, key=_id_of), sees)
        return list(islice(wanted, most))

    def newest(self, most: int, sees: Callable[[str], bool] | None = None) -> list[Event]:
        """The last `most` events, by rising id; `sees` is as for `after`."""
        falling = merge(*map(reversed, self._kept.values()), key=_id_of, reverse=True)
        return list(islice(_seen(falling, sees), most))[::-1]


def _id_of(event: Event) -> int:
    return event.event_id


def _seen(events: Iterator[Event], sees: Callable[[str], bool] | None) -> Iterator[Event]:
    return (event for event in events if sees is None or sees(event.msg_vpn))
