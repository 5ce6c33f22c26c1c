"""Faults of routers and bridges: wrong clocks, configurations that say something else, links that flap or stall.

Faults of the configurations alone: they say something else than what the traces show.

Only a report that is given the configurations can find them.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from vpnrouter.errors import OperationError
from vpnrouter.simulation.faults.placement import Placement
from vpnrouter.simulation.journey import Journey, walk
from vpnrouter.simulation.mesh import Bridge
from vpnrouter.simulation.plan import Plan
from vpnrouter.simulation.traffic import DIRECT, PERSISTENT, Feed, lead, receive
from vpnrouter.units import SECOND_NS

_SKEW_S: Final = (0.05, 5.0)
_LEAST_ROUTERS: Final = 4


def clock_skew(ground: Placement) -> None:
    """The clock of one router is tens of milliseconds to seconds off; never of the one with most links.

    Raises:
        OperationError: too few routers exchange messages to say whose clock is wrong.
    """
    mesh = ground.plan.mesh
    near = _comparable(ground.plan)
    skewed = {fault["router"] for fault in ground.faults if fault["kind"] == "clock_skew"}
    largest = max(_components(near), key=len, default=set[int]())
    if len(largest) < _LEAST_ROUTERS * (len(skewed) + 1):
        raise OperationError("too few routers for a skewed clock: more --vpns")
    busiest = max(largest, key=lambda router: (len(near[router]), router))
    free = [
        router
        for router in sorted(largest)
        if router != busiest and mesh.network.routers[router] not in skewed
    ]
    chosen = int(ground.rng.choice(free))
    low, high = np.log(_SKEW_S)
    offset_s = float(np.exp(ground.rng.uniform(low, high)))
    if ground.rng.random() < 0.5:
        offset_s = -offset_s
    ground.plan.clocks_ns[chosen] = round(offset_s * SECOND_NS)
    ground.faults.append(
        {"kind": "clock_skew", "router": mesh.network.routers[chosen], "value": offset_s}
    )


def _comparable(plan: Plan) -> dict[int, set[int]]:
    """Routers whose messages reach each other, both ways: only of these can traces show how their clocks differ."""
    sites = plan.mesh.sites
    heard: dict[int, set[int]] = {}
    for feed in plan.feeds:
        origin = sites[feed.origin].router
        for bridges in feed.onward.values():
            for number in bridges:
                target = sites[plan.mesh.bridges[number].target].router
                heard.setdefault(target, set()).add(origin)
    return {
        router: both
        for router, origins in heard.items()
        if (both := {one for one in origins if one != router and router in heard.get(one, ())})
    }


def _components(near: dict[int, set[int]]) -> list[set[int]]:
    left = set(near)
    found = []
    while left:
        reached: set[int] = set()
        edge = [min(left)]
        while edge:
            router = edge.pop()
            if router not in reached:
                reached.add(router)
                edge += near[router]
        left -= reached
        found.append(reached)
    return found


def missing_vpn(ground: Placement) -> None:
    """A message VPN is configured, and nothing happens in it."""
    (site,) = ground.way(1)
    place = ground.plan.mesh.sites[site]
    vpn = f"{place.vpn}-next"
    ground.plan.drift.vpns.append((site, vpn))
    ground.faults.append({"kind": "missing_vpn", "router": place.router_name, "vpn": vpn})


def missing_bridge(ground: Placement) -> None:
    """A bridge is configured, and its link never comes up."""
    source, target = ground.way(2)
    name = f"from-{ground.plan.mesh.sites[source].router_name}-next"
    topic = f"{ground.plan.mesh.sites[source].vpn}/planned/>"
    planned = Bridge(name, source, target, 0.0, filters={topic: None})
    ground.plan.drift.bridges.append(planned)
    ground.faults.append({"kind": "missing_bridge", **ground.ends(planned)})


def unknown_bridge(ground: Placement) -> None:
    """A bridge carries messages and is not configured."""
    number = ground.plan.mesh.bridge(*ground.way(2))
    ground.plan.drift.without.add(number)
    ground.faults.append({"kind": "unknown_bridge", **ground.edge(number)})


def missing_subscription(ground: Placement) -> None:
    """A bridge has a remote subscription in its configuration that it never asked for."""
    number, _ = _filtered(ground, 1)
    source = ground.plan.mesh.sites[ground.plan.mesh.bridges[number].source]
    topic = f"{source.vpn}/planned/{source.router_name}/>"
    ground.plan.drift.more.append((number, topic))
    ground.faults.append({"kind": "missing_subscription", **ground.edge(number), "topic": topic})


def unknown_subscription(ground: Placement) -> None:
    """A bridge asks for more than its configuration says."""
    number, topic = _filtered(ground, 2)
    ground.plan.drift.less.append((number, topic))
    ground.faults.append({"kind": "unknown_subscription", **ground.edge(number), "topic": topic})


def _filtered(ground: Placement, least: int) -> tuple[int, str]:
    """A bridge with so many filters, and one of them."""
    mesh = ground.plan.mesh
    for _ in mesh.domains:
        way = ground.way(2)
        for number in mesh.both_ways(*way):
            if len(mesh.bridges[number].filters) >= least:
                return number, next(iter(mesh.bridges[number].filters))
    raise OperationError("no bridge has filters enough: more --vpns")


_DOWNS: Final = (8, 16)
_DOWN_SHARE: Final = 0.25
_REASONS: Final = ("keep-alive timeout", "connection reset by peer", "no route to host")
_LOST_SHARE: Final = 0.35
_QUEUEING_NS: Final = 250_000_000.0
_TRIES: Final = 3
_OFTEN_S: Final = 3_400.0
_LEAST_SPAN_S: Final = 15.0
_BLOCKED_MOST_S: Final = 600.0


def flapping_link(ground: Placement) -> None:
    """The connection between two message VPNs is lost again and again; no message comes meanwhile."""
    plan = ground.plan
    way = ground.way(2)
    feed = _feed(ground, "sensors", DIRECT, way)
    downs = int(ground.rng.integers(*_DOWNS))
    first, last = plan.busy_s
    # Often is what happens within an hour: of a long simulation they take a part only.
    edges = np.linspace(0.05, 0.05 + min(0.9, _OFTEN_S / (last - first)), downs + 1)
    width = edges[1] - edges[0]
    spans = []
    for begin in edges[:-1]:
        at = begin + float(ground.rng.uniform(0.1, 0.6)) * width
        long = float(ground.rng.uniform(0.3, 1.0)) * _DOWN_SHARE * width
        spans.append((*ground.window(at, at + long), str(ground.rng.choice(_REASONS))))
    plan.scripted.remove(feed)
    plan.feeds.append(feed)
    for bridge in plan.mesh.both_ways(*way):
        plan.downs[bridge] = spans
        ground.faults.append({"kind": "flapping_link", **ground.edge(bridge), "value": downs})


def stalled_bridge(ground: Placement) -> None:
    """For a while what is sent over a bridge does not arrive, though its link is up."""
    way = ground.way(2)
    feed = _feed(ground, "tickets", DIRECT, way)
    feed.messages = ground.messages(4)
    span = _span(ground, 0.12, 0.25)
    bridge = ground.plan.mesh.bridge(*way)
    ground.plan.scripted.remove(feed)
    ground.plan.feeds.append(feed)
    ground.plan.stalls[bridge] = span
    ground.faults.append(
        {
            "kind": "stalled_bridge",
            **ground.edge(bridge),
            "value": span[1] - span[0],
            "begin_s": span[0],
            "end_s": span[1],
        }
    )


def hot_bridge(ground: Placement) -> None:
    """More is published than a bridge can take: messages wait ever longer, and many are discarded."""
    plan, mesh = ground.plan, ground.plan.mesh
    way = ground.way(2)
    feed = ground.feed("video", DIRECT, way[0])
    receive(mesh, feed, way[1], ground.rng, plain=True)
    lead(mesh, feed, way)
    bridge = mesh.bridge(*way)
    taken = Journey(plan.templates, mesh, feed)
    spot = taken.cross(taken.ingress(), bridge, ramp_ns=_QUEUEING_NS)
    taken.deliver(spot, feed.receivers[way[1]][0])
    lost = Journey(plan.templates, mesh, feed)
    client = mesh.client_of(mesh.bridges[bridge])
    lost.discard(lost.ingress(), "transmit-congestion", client)
    many = ground.messages(3)
    ground.stream(feed, 0, taken.template, round(many * (1 - _LOST_SHARE)), 0)
    profile = ground.profile(ground.window(0.3, 1.0))
    ground.stream(feed, 0, lost.template, round(many * _LOST_SHARE), profile)
    ground.faults.append({"kind": "hot_bridge", **ground.edge(bridge), "value": _LOST_SHARE})


def head_of_line(ground: Placement) -> None:
    """For a while an endpoint refuses what a bridge brings."""
    plan, mesh = ground.plan, ground.plan.mesh
    way = ground.way(2)
    feed = ground.feed("claims", PERSISTENT, way[0])
    receive(mesh, feed, way[1], ground.rng, plain=True)
    lead(mesh, feed, way)
    bridge = mesh.bridge(*way)
    (receiver,) = feed.receivers[way[1]]
    blocked = Journey(plan.templates, mesh, feed)
    spot = blocked.ingress()
    spot = blocked.arrive(spot, blocked.send(spot, bridge, acknowledged=False), bridge)
    for _ in range(_TRIES):
        blocked.reject(spot, receiver.endpoint, "503 Spool Over Quota", mesh.bridges[bridge])
    span = _span(ground, 0.1, 0.2, _BLOCKED_MOST_S)
    first, last = plan.busy_s
    many = ground.messages()
    ground.stream(feed, 0, blocked.template, many // 2, ground.profile(span))
    usual = walk(plan.templates, mesh, feed, 0)
    outside = ground.profile((first, span[0]), (span[1], last))
    ground.stream(feed, 0, usual, many, outside)
    ground.faults.append(
        {
            "kind": "head_of_line",
            **ground.at(way[1]),
            "endpoint": receiver.endpoint,
            "value": span[1] - span[0],
            "begin_s": span[0],
            "end_s": span[1],
        }
    )


def _span(
    ground: Placement, low: float, high: float, most_s: float = float("inf")
) -> tuple[float, float]:
    """A span of between these shares of the busy time, in the middle of it, and long enough to be told from
    a pause.
    """
    first, last = ground.plan.busy_s
    length = (last - first) * float(ground.rng.uniform(low, high))
    begin = first + (last - first) * float(ground.rng.uniform(0.2, 0.6))
    return begin, begin + min(max(length, _LEAST_SPAN_S), most_s)


def _feed(ground: Placement, kind: str, mode: str, way: list[int]) -> Feed:
    """A feed that the plan lays out as any other, with messages enough to see what happens to them."""
    feed = ground.feed(kind, mode, way[0])
    receive(ground.plan.mesh, feed, way[-1], ground.rng, plain=True)
    lead(ground.plan.mesh, feed, way)
    feed.messages = ground.messages()
    return feed
