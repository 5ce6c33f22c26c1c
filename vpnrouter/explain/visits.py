"""Puts the events of a message in order: the message VPNs that it has visited, and what led from one to the next."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

from vpnrouter.core.mqtt.session import CONNECTOR_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from vpnrouter.explain.providers import Passage
    from vpnrouter.explain.request import Event


INGRESS: Final = "ingress"
RECEIVE: Final = "bridge_receive"
SEND: Final = "bridge_send"
DELIVERED: Final = frozenset({"deliver", "redeliver"})
KEPT: Final = frozenset({"enqueue", "promote"})
DIRECT: Final = "direct"


@final
class Visit:
    """The message in one message VPN, where it came by `path` ("router/vpn", oldest first).

    `entered` is the event of its entry, None where no row tells of it. `events` are those in between but for
    entry and sends; `sends` are the links that took it, each with the visit that came of it, None where
    no row tells of one. `passed` are what connectors took out, each with the visits behind its entries.
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
        self.passed: list[tuple[Passage, list[Visit | None]]] = []

    @property
    def place(self) -> str:
        """The message VPN as router/vpn."""
        return f"{self.router}/{self.msg_vpn}"

    @property
    def direct(self) -> bool:
        """Whether it came as a Direct message."""
        return self.entered is None or self.entered.mode == DIRECT

    def keeps(self, endpoint: str) -> bool:
        """Return whether the endpoint of this name took the message here; of "" whether any did."""
        return any(
            event.event in KEPT and endpoint in {"", event.endpoint} for event in self.events
        )


def connector_of(event: Event) -> str:
    """Return the connector that brought a message in, by the row of its entry; "" for a client or a bridge."""
    client = event.client
    return client.removeprefix(CONNECTOR_PREFIX) if client.startswith(CONNECTOR_PREFIX) else ""


def link_of(event: Event) -> str:
    """Return the connector's link that a row about a receiver names, for people; "" where it is another one."""
    connector, _, link = connector_of(event).partition("/")
    return f"connector {connector} link {link}" if link else ""


def visits_of(events: Sequence[Event], passages: Sequence[Passage] = ()) -> list[Visit]:
    """Return the visits that nothing led to: one, where all of the way is recorded. The others hang below them.

    The events of a router stand in the order in which they happened there. `passages` are what connectors took out of
    the mesh in memory.
    """
    paths = _paths(events)
    visits: dict[tuple[str, tuple[str, ...]], list[Visit]] = {}
    order: list[Visit] = []
    sends: list[tuple[Visit, Event]] = []

    def visit(event: Event, entered: Event | None) -> Visit:
        new = Visit(event.router, event.vpn, event.path, entered)
        visits.setdefault((event.place, event.path), []).append(new)
        order.append(new)
        return new

    for event in events:
        if event.event == INGRESS and connector_of(event) and not event.path:
            # Its row says nothing of the way that it took; those behind it do.
            path = paths.get((event.place, event.message_id), ())
            entered = replace(event, path=path, hops=len(path))
            visit(entered, entered)
            continue
        if event.event in (INGRESS, RECEIVE):
            visit(event, event)
            continue
        known = visits.get((event.place, event.path))
        owner = _owner(known, event) if known else visit(event, None)
        if event.event == SEND:
            sends.append((owner, event))
        else:
            owner.events.append(event)
    free = [visit for visit in order if visit.path]
    _join(sends, free)
    for passage in passages:
        known = visits.get((passage.event.place, passage.event.path))
        if known:
            _owner(known, passage.event).passed.append((passage, _behind(passage, free)))
    _hang(free, order)
    return _roots(order)


def _paths(events: Iterable[Event]) -> dict[tuple[str, int], tuple[str, ...]]:
    """Return the ways that messages took to message VPNs, by their ids there."""
    found: dict[tuple[str, int], tuple[str, ...]] = {}
    for event in events:
        if event.message_id and event.path:
            found.setdefault((event.place, event.message_id), event.path)
    return found


def _behind(passage: Passage, free: list[Visit]) -> list[Visit | None]:
    """Return the visit that each entry of a passage led to, None for one of which no row tells."""
    found: list[Visit | None] = []
    for entry in passage.entries:
        connector = entry.connector
        # What is refused at the door is not traced: nothing entered, and only its loss has a row.
        by = "" if entry.reason else connector.name
        came = None
        for visit in free:
            place = (visit.router, visit.msg_vpn, visit.path)
            same = place == (connector.node.name, connector.vpn_name, entry.path)
            if same and by == ("" if visit.entered is None else connector_of(visit.entered)):
                came = visit
                break
        if came is not None:
            free.remove(came)
        found.append(came)
    return found


def _owner(known: list[Visit], event: Event) -> Visit:
    """Return which of several visits of one place by one way an event is about: its copies may come twice."""
    if event.endpoint or (event.event == SEND and event.mode != DIRECT):
        for visit in reversed(known):
            if visit.keeps(event.endpoint) or (event.event in KEPT and not visit.direct):
                return visit
    return known[-1]


def _join(sends: list[tuple[Visit, Event]], free: list[Visit]) -> None:
    """Find the visit that each send led to; it is taken out of `free`."""
    for sender, event in sends:
        path = (*sender.path, sender.place)
        fitting = [visit for visit in free if visit.path == path and visit.place == event.peer]
        # A Direct copy and a guaranteed one may have gone the same way.
        alike = [visit for visit in fitting if visit.direct == (event.mode == DIRECT)]
        came = next(iter(alike or fitting), None)
        if came is not None:
            free.remove(came)
        sender.sends.append((event, came))


def _hang(free: list[Visit], order: list[Visit]) -> None:
    """Put visits to which no send led below the one that they came from by their paths."""
    for visit in free:
        *way, at = visit.path
        if "://" in at and way:
            # A provider, which has no rows.
            at = way.pop()
        before = [one for one in order if one.place == at and one.path == tuple(way)]
        if before:
            before[-1].unsent.append(visit)


def _roots(order: list[Visit]) -> list[Visit]:
    below = {id(came) for visit in order for _, came in visit.sends if came is not None}
    below |= {id(came) for visit in order for came in visit.unsent}
    below |= {id(came) for visit in order for _, behind in visit.passed for came in behind}
    return [visit for visit in order if id(visit) not in below]
