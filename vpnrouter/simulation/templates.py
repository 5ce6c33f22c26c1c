"""Templates of trace rows: what a message leaves behind on its way through the mesh.

A template is written once and filled for each message: only the times differ. A row knows its parent, after which
it happens, and the row with which the message entered its router. The rows are those that a router writes
(docs/traces.md): a guaranteed message waits in the queue of its bridge at the source until the target has it.
"""

from collections.abc import Container
from dataclasses import dataclass, field
from typing import Final

from vpnrouter.simulation.mesh import Bridge, Mesh
from vpnrouter.simulation.traffic import DIRECT, PERSISTENT, Feed, Receiver

COLUMNS: Final = (
    *("vpn", "event", "mode", "client", "endpoint", "bridge", "peer_router", "peer_vpn", "hops"),
    *("path", "reason", "origin_router", "origin_vpn", "count", "partition", "topic_syntax"),
)
"""The columns of a trace file that a template states; None is null."""

Value = str | int | None


@dataclass
class Templates:
    """All rows of all templates, one list a column.

    Of a template: `first` its first row and `length`. Of a row: `router` the router's number, `up` how many
    rows its parent stands before it, `entry` the same for the row at which its message entered the router,
    `depth` how many parents it has; its delay after the parent is `base_ns` and an exponential draw with mean
    `spread_ns`, and `ramp_ns` more that grows over the time of the simulation with the square.
    """

    columns: dict[str, list[Value]] = field(default_factory=lambda: {name: [] for name in COLUMNS})
    router: list[int] = field(default_factory=list)
    up: list[int] = field(default_factory=list)
    entry: list[int] = field(default_factory=list)
    depth: list[int] = field(default_factory=list)
    base_ns: list[float] = field(default_factory=list)
    spread_ns: list[float] = field(default_factory=list)
    ramp_ns: list[float] = field(default_factory=list)
    bridge_number: list[int] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    length: list[int] = field(default_factory=list)

    def begin(self) -> int:
        """Begin a template; the rows added from now on are its rows."""
        self.first.append(len(self.router))
        self.length.append(0)
        return len(self.first) - 1

    def add(
        self,
        router: int,
        values: dict[str, Value],
        *,
        parent: int = -1,
        entry: int = -1,
        base_ns: float = 0.0,
        spread_ns: float = 0.0,
        ramp_ns: float = 0.0,
        bridge_number: int = -1,
    ) -> int:
        """Add a row to the template begun last.

        `parent` and `entry` are rows as this method returned them; -1: the row itself. `bridge_number` is
        the bridge of a send or receive row. Returns the row's number among all rows.
        """
        number = len(self.router)
        for name, column in self.columns.items():
            column.append(values.get(name))
        self.router.append(router)
        self.up.append(0 if parent < 0 else number - parent)
        self.entry.append(0 if entry < 0 else number - entry)
        self.depth.append(0 if parent < 0 else self.depth[parent] + 1)
        self.base_ns.append(base_ns)
        self.spread_ns.append(spread_ns)
        self.ramp_ns.append(ramp_ns)
        self.bridge_number.append(bridge_number)
        self.length[-1] += 1
        return number


@dataclass(frozen=True)
class Stream:
    """Messages of one template and one topic.

    `topic` is the topic's number; `profile` is how they spread over time; `mean_bytes` the mean size. `messages` are
    fixed, and `weight` shares out the rest.
    """

    template: int
    topic: int
    profile: int
    mean_bytes: int
    weight: float = 0.0
    messages: int = 0


@dataclass(frozen=True)
class State:
    """A row that concerns no message: `at_s` seconds after the start, `row` of a template, `topic` or -1."""

    at_s: float
    row: int
    topic: int = -1


@dataclass
class Topics:
    """Topics and filters by number."""

    names: list[str] = field(default_factory=list)
    _numbers: dict[str, int] = field(default_factory=dict)

    def number(self, name: str) -> int:
        """Return the number of `name`, a new one the first time."""
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self.names)
            self.names.append(name)
        return number


_NS_PER_KM: Final = 6_500.0
"""Light in fibre takes 5 µs a kilometre; cables are about a third longer than the way."""

_HANDLING_NS: Final = (20_000.0, 30_000.0)
_SPOOLING_NS: Final = (150_000.0, 120_000.0)
_CONSUMING_NS: Final = (300_000.0, 600_000.0)
_LINK_NS: Final = (120_000.0, 60_000.0)
_JITTER: Final = 0.01


@dataclass(frozen=True)
class Visit:
    """A message in a site: its row there, the path before, bridges crossed, and who delivered it (a client, or the
    bridge).
    """

    site: int
    row: int
    path: str | None
    hops: int
    source: str


class Journey:
    """Writes one template: a message of `feed` enters, then goes where the calls lead it."""

    def __init__(self, templates: Templates, mesh: Mesh, feed: Feed) -> None:
        self._templates = templates
        self._mesh = mesh
        self._feed = feed
        self.template = templates.begin()

    def ingress(self) -> Visit:
        """Record that the message is published."""
        site = self._feed.origin
        visit = Visit(site, -1, None, 0, self._feed.publisher)
        values = self._values(visit, "ingress", {"client": self._feed.publisher})
        row = self._templates.add(self._mesh.sites[site].router, values)
        return Visit(site, row, None, 0, self._feed.publisher)

    def deliver(self, visit: Visit, receiver: Receiver, partition: int | None = None) -> None:
        """Record that the message goes to `receiver`, through its queue where it has one."""
        if not receiver.endpoint:
            self._after(visit, "deliver", visit.row, _HANDLING_NS, {"client": receiver.client})
            return
        client = receiver.client if partition is None else f"{receiver.client}-{partition}"
        place: dict[str, Value] = {
            "client": client,
            "endpoint": receiver.endpoint,
            "partition": partition,
        }
        row = self.enqueue(visit, receiver.endpoint, partition)
        row = self._after(visit, "deliver", row, _HANDLING_NS, place)
        self._after(visit, "acknowledge", row, _CONSUMING_NS, place)

    def enqueue(self, visit: Visit, endpoint: str, partition: int | None = None) -> int:
        """Record that an endpoint takes the message, and return the row."""
        return self._after(
            visit,
            "enqueue",
            visit.row,
            _SPOOLING_NS,
            {"client": visit.source, "endpoint": endpoint, "partition": partition},
        )

    def discard(self, visit: Visit, reason: str, client: str = "") -> None:
        """Record that the message is given up; `client` by default is who brought it."""
        fields: dict[str, Value] = {"client": client or visit.source, "reason": reason}
        self._after(visit, "discard", visit.row, _HANDLING_NS, fields)

    def reject(
        self, visit: Visit, endpoint: str, reason: str, bridge: Bridge | None = None
    ) -> None:
        """Record that an endpoint refuses the message that `bridge` brought, or that a client published."""
        fields: dict[str, Value] = {"client": visit.source, "endpoint": endpoint, "reason": reason}
        if bridge is not None:
            fields |= self._peer_of(bridge)
        self._after(visit, "reject", visit.row, _SPOOLING_NS, fields)

    def send(self, visit: Visit, number: int, *, acknowledged: bool = True) -> int:
        """Record that the message goes over bridge `number`, and leaves its queue there when it is `acknowledged`;
        returns the row.
        """
        mesh, bridge = self._mesh, self._mesh.bridges[number]
        local, here = mesh.sites[bridge.target], mesh.sites[bridge.source]
        row = visit.row
        client = mesh.client_of(bridge)
        if self._feed.mode == PERSISTENT:
            row = self.enqueue(visit, bridge.queue)
        origin = mesh.sites[self._feed.origin]
        fields: dict[str, Value] = {
            "client": client,
            "bridge": bridge.name,
            "peer_router": local.router_name,
            "peer_vpn": local.vpn,
            "hops": visit.hops + 1,
            "origin_router": origin.router_name,
            "origin_vpn": origin.vpn,
        }
        sent = self._after(visit, "bridge_send", row, _HANDLING_NS, fields, number)
        if self._feed.mode == PERSISTENT and acknowledged:
            there_and_back = 2 * (bridge.km * _NS_PER_KM + _LINK_NS[0])
            self._templates.add(
                here.router,
                self._values(visit, "acknowledge", {"client": client, "endpoint": bridge.queue}),
                parent=sent,
                entry=visit.row,
                base_ns=there_and_back + _SPOOLING_NS[0],
                spread_ns=_SPOOLING_NS[1],
            )
        return sent

    def arrive(self, visit: Visit, sent: int, number: int, ramp_ns: float = 0.0) -> Visit:
        """Record that the message sent from `visit` with row `sent` comes out of bridge `number`."""
        bridge = self._mesh.bridges[number]
        here = self._mesh.sites[bridge.source].name
        path = here if visit.path is None else f"{visit.path}>{here}"
        source = f"#bridge/{bridge.name}"
        coming = Visit(bridge.target, -1, path, visit.hops + 1, source)
        values = self._values(coming, "bridge_receive", self._peer_of(bridge))
        base = bridge.km * _NS_PER_KM
        row = self._templates.add(
            self._mesh.sites[bridge.target].router,
            values,
            parent=sent,
            base_ns=base + _LINK_NS[0],
            spread_ns=base * _JITTER + _LINK_NS[1],
            ramp_ns=ramp_ns,
            bridge_number=number,
        )
        return Visit(bridge.target, row, path, visit.hops + 1, source)

    def cross(self, visit: Visit, number: int, ramp_ns: float = 0.0) -> Visit:
        """Record that the message crosses bridge `number`."""
        return self.arrive(visit, self.send(visit, number), number, ramp_ns)

    def _peer_of(self, bridge: Bridge) -> dict[str, Value]:
        remote = self._mesh.sites[bridge.source]
        return {"bridge": bridge.name, "peer_router": remote.router_name, "peer_vpn": remote.vpn}

    def _after(
        self,
        visit: Visit,
        event: str,
        parent: int,
        delay_ns: tuple[float, float],
        given: dict[str, Value],
        bridge_number: int = -1,
    ) -> int:
        return self._templates.add(
            self._mesh.sites[visit.site].router,
            self._values(visit, event, given),
            parent=parent,
            entry=visit.row,
            base_ns=delay_ns[0],
            spread_ns=delay_ns[1],
            bridge_number=bridge_number,
        )

    def _values(self, visit: Visit, event: str, given: dict[str, Value]) -> dict[str, Value]:
        values: dict[str, Value] = {
            "vpn": self._mesh.sites[visit.site].vpn,
            "event": event,
            "mode": self._feed.mode,
            "hops": visit.hops,
            "path": visit.path,
        }
        if visit.path is not None:
            origin = self._mesh.sites[self._feed.origin]
            values |= {"origin_router": origin.router_name, "origin_vpn": origin.vpn}
        return values | given


def walk(
    templates: Templates,
    mesh: Mesh,
    feed: Feed,
    item: int,
    *,
    partition: int | None = None,
    stalled: Container[int] = (),
) -> int:
    """Return the normal way of a message of `feed` on `item`: to all who want it. Returns the template.

    `partition` is where partitioned queues put it. Over the bridges `stalled` it is sent and never arrives.
    """
    journey = Journey(templates, mesh, feed)
    visits = [journey.ingress()]
    while visits:
        visit = visits.pop()
        for receiver in feed.receivers.get(visit.site, ()):
            if receiver.item is None or receiver.item == item:
                journey.deliver(visit, receiver, partition if receiver.partitions else None)
        for number in feed.onward.get(visit.site, ()):
            sent = journey.send(visit, number, acknowledged=number not in stalled)
            if number not in stalled:
                visits.append(journey.arrive(visit, sent, number))
    return journey.template


def partitions_of(feed: Feed) -> int:
    """Return partitions of the feed's partitioned queue; 0 if none."""
    if feed.mode == DIRECT:
        return 0
    return max((one.partitions for each in feed.receivers.values() for one in each), default=0)


def key_of(feed: Feed, item: int) -> tuple[int, ...]:
    """Return the key of an item's template: equal keys, equal templates."""
    items = {one.item for each in feed.receivers.values() for one in each}
    return (item,) if item in items else ()
