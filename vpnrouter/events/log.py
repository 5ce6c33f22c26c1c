"""The event log of one router: keeps the newest events, and hands each one to whoever listens."""

from __future__ import annotations

from collections import deque
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, final

from vpnrouter import limits
from vpnrouter.events.event import Event
from vpnrouter.events.levels import DEBUG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from vpnrouter.events.kind import Kind


@final
class EventLog:
    """Whatever raises events holds this one object; a plane without it raises none.

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

    def raise_event(self, kind: Kind, msg_vpn: str = "", name: str = "", text: str = "") -> None:
        """Something happened in `msg_vpn` ("" for the router's own) to `name`; `text` says it in words.

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

    def raise_once(self, kind: Kind, msg_vpn: str, name: str, text: str) -> bool:
        """The same for a one-shot event: True if it was raised, False while it stands already."""
        key = (kind.name, msg_vpn, name)
        if key in self._standing:
            return False
        if len(self._standing) >= limits.EVENTS_STANDING:
            del self._standing[next(iter(self._standing))]
        self._standing[key] = None
        self.raise_event(kind, msg_vpn, name, text)
        return True

    def clear(self, kind: Kind, msg_vpn: str, name: str) -> bool:
        """A one-shot event may be raised again; False where it did not stand."""
        key = (kind.name, msg_vpn, name)
        if key not in self._standing:
            return False
        del self._standing[key]
        return True

    def stands(self, kind: Kind, msg_vpn: str, name: str) -> bool:
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
        """The last `most` events, by rising id; `sees` as above."""
        falling = merge(*map(reversed, self._kept.values()), key=_id_of, reverse=True)
        return list(islice(_seen(falling, sees), most))[::-1]


def _id_of(event: Event) -> int:
    return event.event_id


def _seen(events: Iterator[Event], sees: Callable[[str], bool] | None) -> Iterator[Event]:
    return (event for event in events if sees is None or sees(event.msg_vpn))
