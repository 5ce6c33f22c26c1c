"""The way of a message put together from its trace events: which message VPNs it visited, and from where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vpnrouter.explain.event import Event

INGRESS: Final = "ingress"
RECEIVE: Final = "bridge_receive"
SEND: Final = "bridge_send"
KEPT: Final = frozenset({"enqueue", "promote"})
DIRECT: Final = "direct"


@final
class Visit:
    """The message in one message VPN, where it came by `path` ("router/vpn", oldest first).

    `entered` is the event of its entry, None where no row tells of it. `events` are those in between but for
    entry and sends; `sends` are the links that took it, each with the visit that came of it, None where
    no row tells of one.
    """

    def __init__(
        self, router: str, msg_vpn: str, path: tuple[str, ...], entered: Event | None
    ) -> None:
        self.router = router
        self.msg_vpn = msg_vpn
        self.path = path
        self.entered = entered
        self.events: list[Event] = []
        self.sends: list[tuple[Event, Visit | None]] = []
        self.unsent: list[Visit] = []

    @property
    def place(self) -> str:
        """The message VPN as router/vpn."""
        return f"{self.router}/{self.msg_vpn}"

    @property
    def direct(self) -> bool:
        """Whether it came as a Direct message."""
        return self.entered is None or self.entered.mode == DIRECT

    def keeps(self, endpoint: str) -> bool:
        """Whether the endpoint of this name took the message here; of "" whether any did."""
        return any(
            event.event in KEPT and endpoint in {"", event.endpoint} for event in self.events
        )


def visits_of(events: Iterable[Event]) -> list[Visit]:
    """The visits that nothing led to: one, where all of the way is recorded. The others hang below them.

    The events of a router stand in the order in which they happened there.
    """
    made: dict[tuple[str, tuple[str, ...]], list[Visit]] = {}
    order: list[Visit] = []
    sends: list[tuple[Visit, Event]] = []

    def visit(event: Event, entered: Event | None) -> Visit:
        new = Visit(event.router, event.vpn, event.path, entered)
        made.setdefault((event.place, event.path), []).append(new)
        order.append(new)
        return new

    for event in events:
        if event.event in (INGRESS, RECEIVE):
            visit(event, event)
            continue
        known = made.get((event.place, event.path))
        owner = _owner(known, event) if known else visit(event, None)
        if event.event == SEND:
            sends.append((owner, event))
        else:
            owner.events.append(event)
    _join(sends, order)
    return _roots(order)


def _owner(known: list[Visit], event: Event) -> Visit:
    """Which of several visits of one place by one way an event is about: its copies may come twice."""
    if event.endpoint or (event.event == SEND and event.mode != DIRECT):
        for visit in reversed(known):
            if visit.keeps(event.endpoint) or (event.event in KEPT and not visit.direct):
                return visit
    return known[-1]


def _join(sends: list[tuple[Visit, Event]], order: list[Visit]) -> None:
    """Find the visit that came of each send."""
    free = [visit for visit in order if visit.path]
    for sender, event in sends:
        path = (*sender.path, sender.place)
        fitting = [visit for visit in free if visit.path == path and visit.place == event.peer]
        # A Direct copy and a guaranteed one may have gone the same way.
        alike = [visit for visit in fitting if visit.direct == (event.mode == DIRECT)]
        came = next(iter(alike or fitting), None)
        if came is not None:
            free.remove(came)
        sender.sends.append((event, came))
    for visit in list(free):
        before = [
            one for one in order if one.place == visit.path[-1] and one.path == visit.path[:-1]
        ]
        if before:
            before[-1].unsent.append(visit)


def _roots(order: list[Visit]) -> list[Visit]:
    below = {id(came) for visit in order for _, came in visit.sends if came is not None}
    below |= {id(came) for visit in order for came in visit.unsent}
    return [visit for visit in order if id(visit) not in below]
