"""Faults of the ways: loops, second ways, double delivery."""

from itertools import pairwise

from vpnrouter.simulation.faults.ground import Ground
from vpnrouter.simulation.feeds import DIRECT, PERSISTENT, attract, lead, receive
from vpnrouter.simulation.journey import Journey


def loop(ground: Ground) -> None:
    """Three message VPNs in a ring attract one feed: it comes round, goes on, and is stopped only then."""
    mesh = ground.plan.mesh
    first, second, third = way = ground.way(3)
    feed = ground.feed("ledger", DIRECT, first)
    receive(mesh, feed, second, ground.rng, plain=True)
    receive(mesh, feed, third, ground.rng, plain=True)
    lead(mesh, feed, way)
    back = mesh.new_bridge(third, first, _shortcut_km(ground, way))
    attract(mesh, feed, back)
    journey = Journey(ground.plan.templates, mesh, feed)
    there = mesh.bridge(first, second)
    spot = journey.cross(journey.ingress(), there)
    journey.deliver(spot, feed.receivers[second][0])
    spot = journey.cross(spot, mesh.bridge(second, third))
    journey.deliver(spot, feed.receivers[third][0])
    spot = journey.cross(journey.cross(spot, back), there)
    journey.discard(spot, "loop-detected")
    ground.stream(feed, 0, journey.template, ground.messages())
    smallest = min(way, key=lambda site: mesh.sites[site].name)
    ground.faults.append({"kind": "loop", **ground.at(smallest)})
    ground.consequences += [
        {"kind": "duplicate", **ground.at(second)},
        {"kind": "over_broad", **ground.edge(back)},
        {"kind": "wasted_crossing", **ground.edge(back)},
    ]


def two_ways(ground: Ground) -> None:
    """A feed reaches a message VPN twice: by a shortcut, or by a second bridge beside the first."""
    mesh = ground.plan.mesh
    way = ground.way(3)
    first, second, third = way
    feed = ground.feed("quotes", DIRECT, first)
    receive(mesh, feed, second, ground.rng, plain=True)
    receive(mesh, feed, third, ground.rng, plain=True)
    lead(mesh, feed, way)
    beside = ground.planted("two_ways") % 2 == 1
    km = mesh.near[second][third] if beside else _shortcut_km(ground, way)
    other = mesh.new_bridge(second if beside else first, third, km)
    attract(mesh, feed, other)
    journey = Journey(ground.plan.templates, mesh, feed)
    begin = journey.ingress()
    middle = journey.cross(begin, mesh.bridge(first, second))
    journey.deliver(middle, feed.receivers[second][0])
    spots = [
        journey.cross(middle, mesh.bridge(second, third)),
        journey.cross(middle if beside else begin, other),
    ]
    came, again = spots if beside else reversed(spots)
    journey.deliver(came, feed.receivers[third][0])
    journey.discard(again, "duplicate")
    ground.stream(feed, 0, journey.template, ground.messages())
    ground.faults.append({"kind": "two_ways", **ground.at(third)})


def duplicate(ground: Ground) -> None:
    """Two bridges take the same guaranteed messages, each by a queue: the queue behind them has all twice."""
    mesh = ground.plan.mesh
    first, second = way = ground.way(2)
    feed = ground.feed("payments", PERSISTENT, first)
    receive(mesh, feed, second, ground.rng, plain=True)
    lead(mesh, feed, way)
    other = mesh.new_bridge(first, second, mesh.near[first][second])
    attract(mesh, feed, other)
    (receiver,) = feed.receivers[second]
    journey = Journey(ground.plan.templates, mesh, feed)
    begin = journey.ingress()
    for bridge in (mesh.bridge(first, second), other):
        journey.deliver(journey.cross(begin, bridge), receiver)
    ground.stream(feed, 0, journey.template, ground.messages())
    ground.faults.append({"kind": "duplicate", **ground.at(second), "endpoint": receiver.endpoint})
    ground.consequences.append({"kind": "two_ways", **ground.at(second)})


def _shortcut_km(ground: Ground, way: list[int]) -> float:
    near = ground.plan.mesh.near
    return 0.8 * sum(near[one][other] for one, other in pairwise(way))
