"""Plants faults of routers and bridges: wrong clocks, differing configurations, links that flap or stall.

A difference between configuration and traces can only be found by a report that is given the configurations.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from vpnrouter.core.credentials import BAD_PASSWORD
from vpnrouter.errors import OperationError
from vpnrouter.simulation.faults.placement import Placement
from vpnrouter.simulation.mesh import Bridge
from vpnrouter.simulation.plan import Plan
from vpnrouter.simulation.templates import Journey, walk
from vpnrouter.simulation.traffic import DIRECT, PERSISTENT, Feed, receive, route
from vpnrouter.units import SECOND_NS

_SKEW_S: Final = (0.05, 5.0)
_DRIFTS_PPM: Final = (50.0, 450.0)
_LONG_S: Final = 1_800.0
"""Time in which the slowest drift is as much as the least clock that is off."""

_CLOCKS: Final = frozenset({"clock_skew", "clock_moved"})
_LEAST_ROUTERS: Final = 4


def clock_skew(placement: Placement) -> None:
    """Plant a clock of one router that is tens of milliseconds to seconds off; never of the one with most links.

    Raises:
        OperationError: too few routers exchange messages to say whose clock is wrong.
    """
    chosen, offset_s = _wrong_clock(placement, 1)
    placement.plan.clocks_ns[chosen] = round(offset_s * SECOND_NS)
    router = placement.plan.mesh.network.routers[chosen]
    placement.faults.append({"kind": "clock_skew", "router": router, "value": offset_s})
    _seen_one_way(placement, router)


def clock_moved(placement: Placement) -> None:
    """Plant a clock that is set in the middle of the time, by tens of milliseconds to seconds, of a router that
    exchanges messages with two others: of a pair nobody could say whose clock it was. Each second one drifts, where
    there is time for that.

    Raises:
        OperationError: there is no such router.
    """
    chosen, offset_s = _wrong_clock(placement, 2)
    plan = placement.plan
    first, last = plan.busy_s
    at_s = first + (last - first) * float(placement.rng.uniform(0.3, 0.7))
    if placement.planted("clock_moved") % 2 and plan.seconds >= _LONG_S:
        ppm = math.copysign(float(placement.rng.uniform(*_DRIFTS_PPM)), offset_s)
        at_s, offset_s = 0.0, ppm * plan.seconds / 1e6
        plan.clock_drifts_ppm[chosen] = ppm
    else:
        plan.clock_sets[chosen] = at_s, round(offset_s * SECOND_NS)
    router = plan.mesh.network.routers[chosen]
    placement.faults.append(
        {"kind": "clock_moved", "router": router, "value": offset_s, "begin_s": at_s}
    )
    _seen_one_way(placement, router)


def _seen_one_way(placement: Placement, router: str) -> None:
    """Note what follows from a wrong clock: messages that go one way only seem to arrive before they entered, at the
    router or from it.
    """
    placement.consequences.append({"kind": "clock_skew", "router": router})
    placement.consequences.append({"kind": "clock_skew", "peer_router": router})


def _wrong_clock(placement: Placement, partners: int) -> tuple[int, float]:
    """Return a router whose clock is right so far, with so many others to compare, and by how much to be off, seconds.

    Raises:
        OperationError: there is none.
    """
    mesh = placement.plan.mesh
    near = _comparable(placement.plan)
    wrong = {fault["router"] for fault in placement.faults if fault["kind"] in _CLOCKS}
    largest = max(_components(near), key=len, default=set[int]())
    busiest = max(largest, key=lambda router: (len(near[router]), router), default=None)
    free = [
        router
        for router in sorted(largest)
        if router != busiest
        and mesh.network.routers[router] not in wrong
        and len(near[router]) >= partners
    ]
    if len(largest) < _LEAST_ROUTERS * (len(wrong) + 1) or not free:
        raise OperationError("too few routers for a wrong clock: more --vpns")
    chosen = int(placement.rng.choice(free))
    low, high = np.log(_SKEW_S)
    offset_s = float(np.exp(placement.rng.uniform(low, high)))
    return chosen, offset_s if placement.rng.random() < 0.5 else -offset_s


def _comparable(plan: Plan) -> dict[int, set[int]]:
    """Return routers whose messages reach each other, both ways: traces show only their clock differences."""
    sites = plan.mesh.sites
    origins_at: dict[int, set[int]] = {}
    for feed in plan.feeds:
        origin = sites[feed.origin].router
        for bridges in feed.onward.values():
            for number in bridges:
                target = sites[plan.mesh.bridges[number].target].router
                origins_at.setdefault(target, set()).add(origin)
    return {
        router: both
        for router, origins in origins_at.items()
        if (both := {one for one in origins if one != router and router in origins_at.get(one, ())})
    }


def _components(near: dict[int, set[int]]) -> list[set[int]]:
    left = set(near)
    components = []
    while left:
        reached: set[int] = set()
        edge = [min(left)]
        while edge:
            router = edge.pop()
            if router not in reached:
                reached.add(router)
                edge += near[router]
        left -= reached
        components.append(reached)
    return components


def missing_vpn(placement: Placement) -> None:
    """Plant a message VPN that is configured and in which nothing happens."""
    (site,) = placement.way(1)
    place = placement.plan.mesh.sites[site]
    vpn = f"{place.vpn}-next"
    placement.plan.drift.vpns.append((site, vpn))
    placement.faults.append({"kind": "missing_vpn", "router": place.router_name, "vpn": vpn})


def missing_bridge(placement: Placement) -> None:
    """Plant a bridge that is configured and whose link never comes up."""
    source, target = placement.way(2)
    name = f"from-{placement.plan.mesh.sites[source].router_name}-next"
    topic = f"{placement.plan.mesh.sites[source].vpn}/planned/>"
    planned = Bridge(name, source, target, 0.0, filters={topic: None})
    placement.plan.drift.bridges.append(planned)
    placement.faults.append({"kind": "missing_bridge", **placement.ends(planned)})


def refused_bridge(placement: Placement) -> None:
    """Plant a bridge whose login the remote router refuses, from the begin to the end."""
    plan = placement.plan
    source, target = placement.way(2)
    name = f"from-{plan.mesh.sites[source].router_name}-new"
    bridge = Bridge(name, source, target, 0.0)
    first, last = plan.busy_s
    times = np.linspace(first, last, int(placement.rng.integers(*_REFUSED))).tolist()
    plan.drift.bridges.append(bridge)
    plan.refusals.append((bridge, times, BAD_PASSWORD))
    placement.faults.append(
        {"kind": "refused_bridge", **placement.ends(bridge), "value": len(times)}
    )
    placement.consequences.append({"kind": "missing_bridge", **placement.ends(bridge)})


def unknown_bridge(placement: Placement) -> None:
    """Plant a bridge that carries messages and is not configured."""
    number = placement.plan.mesh.bridge(*placement.way(2))
    placement.plan.drift.without.add(number)
    placement.faults.append({"kind": "unknown_bridge", **placement.edge(number)})


def missing_subscription(placement: Placement) -> None:
    """Plant a bridge with a remote subscription in its configuration that it never requested."""
    number, _ = _filtered(placement, 1)
    source = placement.plan.mesh.sites[placement.plan.mesh.bridges[number].source]
    topic = f"{source.vpn}/planned/{source.router_name}/>"
    placement.plan.drift.more.append((number, topic))
    placement.faults.append(
        {"kind": "missing_subscription", **placement.edge(number), "topic": topic}
    )


def unknown_subscription(placement: Placement) -> None:
    """Plant a bridge that requests more than is configured."""
    number, topic = _filtered(placement, 2)
    placement.plan.drift.less.append((number, topic))
    placement.faults.append(
        {"kind": "unknown_subscription", **placement.edge(number), "topic": topic}
    )


def _filtered(placement: Placement, least: int) -> tuple[int, str]:
    """Return a bridge with at least so many filters, and one of them."""
    mesh = placement.plan.mesh
    for _ in mesh.domains:
        way = placement.way(2)
        for number in mesh.both_ways(*way):
            if len(mesh.bridges[number].filters) >= least:
                return number, next(iter(mesh.bridges[number].filters))
    raise OperationError("no bridge has filters enough: more --vpns")


_REFUSED: Final = (5, 40)
_DOWNS: Final = (8, 16)
_DOWN_SHARE: Final = 0.25
_REASONS: Final = ("keep-alive timeout", "connection reset by peer", "no route to host")
_LOST_SHARE: Final = 0.35
_QUEUEING_NS: Final = 250_000_000.0
_TRIES: Final = 3
_OFTEN_S: Final = 3_400.0
_LEAST_SPAN_S: Final = 15.0
_BLOCKED_MOST_S: Final = 600.0


def flapping_link(placement: Placement) -> None:
    """Plant a connection between two message VPNs that is lost again and again; no message comes meanwhile."""
    plan = placement.plan
    way = placement.way(2)
    feed = _feed(placement, "sensors", DIRECT, way)
    downs = int(placement.rng.integers(*_DOWNS))
    first, last = plan.busy_s
    # Often is what happens within an hour: of a long simulation they take a part only.
    edges = np.linspace(0.05, 0.05 + min(0.9, _OFTEN_S / (last - first)), downs + 1)
    width = edges[1] - edges[0]
    spans = []
    for begin in edges[:-1]:
        at = begin + float(placement.rng.uniform(0.1, 0.6)) * width
        long = float(placement.rng.uniform(0.3, 1.0)) * _DOWN_SHARE * width
        spans.append((*placement.window(at, at + long), str(placement.rng.choice(_REASONS))))
    plan.scripted.remove(feed)
    plan.feeds.append(feed)
    for bridge in plan.mesh.both_ways(*way):
        plan.downs[bridge] = spans
        placement.faults.append({"kind": "flapping_link", **placement.edge(bridge), "value": downs})


def stalled_bridge(placement: Placement) -> None:
    """Plant a bridge over which nothing arrives for a while, though its link is up."""
    way = placement.way(2)
    feed = _feed(placement, "tickets", DIRECT, way)
    feed.messages = placement.messages(4)
    span = _span(placement, 0.12, 0.25)
    bridge = placement.plan.mesh.bridge(*way)
    placement.plan.scripted.remove(feed)
    placement.plan.feeds.append(feed)
    placement.plan.stalls[bridge] = span
    placement.faults.append(
        {
            "kind": "stalled_bridge",
            **placement.edge(bridge),
            "value": span[1] - span[0],
            "begin_s": span[0],
            "end_s": span[1],
        }
    )


def hot_bridge(placement: Placement) -> None:
    """Plant a bridge that is sent more than it can take: messages wait ever longer, and many are discarded."""
    plan, mesh = placement.plan, placement.plan.mesh
    way = placement.way(2)
    feed = placement.feed("video", DIRECT, way[0])
    receive(mesh, feed, way[1], placement.rng, plain=True)
    route(mesh, feed, way)
    bridge = mesh.bridge(*way)
    journey = Journey(plan.templates, mesh, feed)
    visit = journey.cross(journey.ingress(), bridge, ramp_ns=_QUEUEING_NS)
    journey.deliver(visit, feed.receivers[way[1]][0])
    lost = Journey(plan.templates, mesh, feed)
    client = mesh.client_of(mesh.bridges[bridge])
    lost.discard(lost.ingress(), "transmit-congestion", client)
    many = placement.messages(3)
    placement.stream(feed, 0, journey.template, round(many * (1 - _LOST_SHARE)), 0)
    profile = placement.profile(placement.window(0.3, 1.0))
    placement.stream(feed, 0, lost.template, round(many * _LOST_SHARE), profile)
    placement.faults.append({"kind": "hot_bridge", **placement.edge(bridge), "value": _LOST_SHARE})


def head_of_line(placement: Placement) -> None:
    """Plant an endpoint that for a while refuses what a bridge brings."""
    plan, mesh = placement.plan, placement.plan.mesh
    way = placement.way(2)
    feed = placement.feed("claims", PERSISTENT, way[0])
    receive(mesh, feed, way[1], placement.rng, plain=True)
    route(mesh, feed, way)
    bridge = mesh.bridge(*way)
    (receiver,) = feed.receivers[way[1]]
    blocked = Journey(plan.templates, mesh, feed)
    visit = blocked.ingress()
    visit = blocked.arrive(visit, blocked.send(visit, bridge, acknowledged=False), bridge)
    for _ in range(_TRIES):
        blocked.reject(visit, receiver.endpoint, "503 Spool Over Quota", mesh.bridges[bridge])
    span = _span(placement, 0.1, 0.2, _BLOCKED_MOST_S)
    first, last = plan.busy_s
    many = placement.messages()
    placement.stream(feed, 0, blocked.template, many // 2, placement.profile(span))
    usual = walk(plan.templates, mesh, feed, 0)
    outside = placement.profile((first, span[0]), (span[1], last))
    placement.stream(feed, 0, usual, many, outside)
    placement.faults.append(
        {
            "kind": "head_of_line",
            **placement.at(way[1]),
            "endpoint": receiver.endpoint,
            "value": span[1] - span[0],
            "begin_s": span[0],
            "end_s": span[1],
        }
    )


def _span(
    placement: Placement, low: float, high: float, most_s: float = float("inf")
) -> tuple[float, float]:
    """Return a span between these shares of the busy time, in its middle, longer than a pause."""
    first, last = placement.plan.busy_s
    length = (last - first) * float(placement.rng.uniform(low, high))
    begin = first + (last - first) * float(placement.rng.uniform(0.2, 0.6))
    return begin, begin + min(max(length, _LEAST_SPAN_S), most_s)


def _feed(placement: Placement, kind: str, mode: str, way: list[int]) -> Feed:
    """Return a feed with enough messages to show what happens to them."""
    feed = placement.feed(kind, mode, way[0])
    receive(placement.plan.mesh, feed, way[-1], placement.rng, plain=True)
    route(placement.plan.mesh, feed, way)
    feed.messages = placement.messages()
    return feed
