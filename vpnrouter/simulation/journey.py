"""The way of one message through the mesh as a template of trace rows, event by event.

What each event's row says is what a router writes (docs/traces.md): hops and path on the sending side are
those of docs/traces.md, a bridge's guaranteed messages wait in its queue at the source until the target has them.
"""

from collections.abc import Container
from dataclasses import dataclass
from typing import Final

from vpnrouter.simulation.mesh import Bridge, Mesh
from vpnrouter.simulation.templates import Templates, Value
from vpnrouter.simulation.traffic import DIRECT, PERSISTENT, Feed, Receiver

_NS_PER_KM: Final = 6_500.0
"""Light in fibre takes 5 µs a kilometre; cables are about a third longer than the way."""

_HANDLING_NS: Final = (20_000.0, 30_000.0)
_SPOOLING_NS: Final = (150_000.0, 120_000.0)
_CONSUMING_NS: Final = (300_000.0, 600_000.0)
_LINK_NS: Final = (120_000.0, 60_000.0)
_JITTER: Final = 0.01


@dataclass(frozen=True)
class Visit:
    """A message in a site: the row with which it came in, what it visited before, bridges crossed, and by
    whom it came (a client, or the bridge).
    """

    site: int
    row: int
    path: str | None
    hops: int
    source: str


class Journey:
    """Writes one template: `feed`'s message comes in, then goes where the calls say."""

    def __init__(self, templates: Templates, mesh: Mesh, feed: Feed) -> None:
        self._templates = templates
        self._mesh = mesh
        self._feed = feed
        self.template = templates.begin()

    def ingress(self) -> Visit:
        """Record that the message is published."""
        site = self._feed.origin
        spot = Visit(site, -1, None, 0, self._feed.publisher)
        values = self._values(spot, "ingress", {"client": self._feed.publisher})
        row = self._templates.add(self._mesh.sites[site].router, values)
        return Visit(site, row, None, 0, self._feed.publisher)

    def deliver(self, spot: Visit, receiver: Receiver, partition: int | None = None) -> None:
        """Record that the message goes to `receiver`, through its queue where it has one."""
        if not receiver.endpoint:
            self._after(spot, "deliver", spot.row, _HANDLING_NS, {"client": receiver.client})
            return
        client = receiver.client if partition is None else f"{receiver.client}-{partition}"
        place: dict[str, Value] = {
            "client": client,
            "endpoint": receiver.endpoint,
            "partition": partition,
        }
        row = self.enqueue(spot, receiver.endpoint, partition)
        row = self._after(spot, "deliver", row, _HANDLING_NS, place)
        self._after(spot, "acknowledge", row, _CONSUMING_NS, place)

    def enqueue(self, spot: Visit, endpoint: str, partition: int | None = None) -> int:
        """An endpoint takes the message; returns the row."""
        return self._after(
            spot,
            "enqueue",
            spot.row,
            _SPOOLING_NS,
            {"client": spot.source, "endpoint": endpoint, "partition": partition},
        )

    def discard(self, spot: Visit, reason: str, client: str = "") -> None:
        """Record that the message is given up; `client` by default is who brought it."""
        given: dict[str, Value] = {"client": client or spot.source, "reason": reason}
        self._after(spot, "discard", spot.row, _HANDLING_NS, given)

    def reject(self, spot: Visit, endpoint: str, reason: str, bridge: Bridge) -> None:
        """Record that an endpoint refuses the message that `bridge` brought."""
        given: dict[str, Value] = {"client": spot.source, "endpoint": endpoint, "reason": reason}
        self._after(spot, "reject", spot.row, _SPOOLING_NS, given | self._peer_of(bridge))

    def send(self, spot: Visit, number: int, *, acknowledged: bool = True) -> int:
        """The message goes over bridge `number`, and leaves its queue there when it is `acknowledged`;
        returns the row.
        """
        mesh, bridge = self._mesh, self._mesh.bridges[number]
        local, here = mesh.sites[bridge.target], mesh.sites[bridge.source]
        row = spot.row
        client = mesh.client_of(bridge)
        if self._feed.mode == PERSISTENT:
            row = self.enqueue(spot, bridge.queue)
        origin = mesh.sites[self._feed.origin]
        given: dict[str, Value] = {
            "client": client,
            "bridge": bridge.name,
            "peer_router": local.router_name,
            "peer_vpn": local.vpn,
            "hops": spot.hops + 1,
            "origin_router": origin.router_name,
            "origin_vpn": origin.vpn,
        }
        sent = self._after(spot, "bridge_send", row, _HANDLING_NS, given, number)
        if self._feed.mode == PERSISTENT and acknowledged:
            there_and_back = 2 * (bridge.km * _NS_PER_KM + _LINK_NS[0])
            self._templates.add(
                here.router,
                self._values(spot, "acknowledge", {"client": client, "endpoint": bridge.queue}),
                parent=sent,
                entry=spot.row,
                base_ns=there_and_back + _SPOOLING_NS[0],
                spread_ns=_SPOOLING_NS[1],
            )
        return sent

    def arrive(self, spot: Visit, sent: int, number: int, ramp_ns: float = 0.0) -> Visit:
        """The message sent from `spot` with row `sent` comes out of bridge `number`."""
        bridge = self._mesh.bridges[number]
        here = self._mesh.sites[bridge.source].name
        path = here if spot.path is None else f"{spot.path}>{here}"
        source = f"#bridge/{bridge.name}"
        coming = Visit(bridge.target, -1, path, spot.hops + 1, source)
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
        return Visit(bridge.target, row, path, spot.hops + 1, source)

    def cross(self, spot: Visit, number: int, ramp_ns: float = 0.0) -> Visit:
        """Over bridge `number` and out at its other end."""
        return self.arrive(spot, self.send(spot, number), number, ramp_ns)

    def _peer_of(self, bridge: Bridge) -> dict[str, Value]:
        remote = self._mesh.sites[bridge.source]
        return {"bridge": bridge.name, "peer_router": remote.router_name, "peer_vpn": remote.vpn}

    def _after(
        self,
        spot: Visit,
        event: str,
        parent: int,
        delay_ns: tuple[float, float],
        given: dict[str, Value],
        bridge_number: int = -1,
    ) -> int:
        return self._templates.add(
            self._mesh.sites[spot.site].router,
            self._values(spot, event, given),
            parent=parent,
            entry=spot.row,
            base_ns=delay_ns[0],
            spread_ns=delay_ns[1],
            bridge_number=bridge_number,
        )

    def _values(self, spot: Visit, event: str, given: dict[str, Value]) -> dict[str, Value]:
        values: dict[str, Value] = {
            "vpn": self._mesh.sites[spot.site].vpn,
            "event": event,
            "mode": self._feed.mode,
            "hops": spot.hops,
            "path": spot.path,
        }
        if spot.path is not None:
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
    """The normal way of a message of `feed` on `item`: to all who want it. Returns the template.

    `partition` is where partitioned queues put it. Over the bridges `stalled` it is sent and never arrives.
    """
    journey = Journey(templates, mesh, feed)
    spots = [journey.ingress()]
    while spots:
        spot = spots.pop()
        for receiver in feed.receivers.get(spot.site, ()):
            if receiver.item is None or receiver.item == item:
                journey.deliver(spot, receiver, partition if receiver.partitions else None)
        for number in feed.onward.get(spot.site, ()):
            sent = journey.send(spot, number, acknowledged=number not in stalled)
            if number not in stalled:
                spots.append(journey.arrive(spot, sent, number))
    return journey.template


def partitions_of(feed: Feed) -> int:
    """Partitions of the feed's partitioned queue; 0 where it has none."""
    if feed.mode == DIRECT:
        return 0
    return max((one.partitions for each in feed.receivers.values() for one in each), default=0)


def key_of(feed: Feed, item: int) -> tuple[int, ...]:
    """What tells the ways of two items of a feed apart: equal keys, equal templates."""
    wanted = {one.item for each in feed.receivers.values() for one in each}
    return (item,) if item in wanted else ()
