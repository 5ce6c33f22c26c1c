"""Faults of topics, subscriptions and ways: nobody wants it, nobody publishes it, loops, double delivery."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from vpnrouter.simulation.faults.placement import Placement
from vpnrouter.simulation.journey import Journey, walk
from vpnrouter.simulation.traffic import DIRECT, PERSISTENT, Receiver, attract, lead, receive

_UNMATCHED: Final = "no-subscription-match"
_TRAFFIC: Final = 200
_WIDE_ITEMS: Final = 8
_WANTED_SHARE: Final = 0.2
_PARTITIONS: Final = 4
_SKEW: Final = 0.8


def black_hole(ground: Placement) -> None:
    """A client publishes what nobody has subscribed to."""
    (site,) = ground.way(1)
    feed = ground.feed("heartbeats", DIRECT, site)
    journey = Journey(ground.plan.templates, ground.plan.mesh, feed)
    journey.discard(journey.ingress(), _UNMATCHED)
    ground.stream(feed, 0, journey.template, ground.messages())
    ground.faults.append({"kind": "black_hole", **ground.at(site), "topic": feed.topic(0)})


def never_matched(ground: Placement) -> None:
    """A client subscribes to what nobody publishes, besides what it gets."""
    plan = ground.plan
    (site,) = ground.way(1)
    place = plan.mesh.sites[site]
    feed = ground.feed("journal", DIRECT, site)
    client = "archive-reader"
    feed.receivers[site] = [Receiver(client)]
    # Silence proves something only where there is traffic.
    many = max(_TRAFFIC, ground.messages())
    ground.stream(feed, 0, walk(plan.templates, plan.mesh, feed, 0), many)
    topic = f"{place.vpn}/archive/{place.router_name}/#"
    plan.extra_subscriptions.append((site, client, topic))
    ground.faults.append(
        {"kind": "never_matched", **ground.at(site), "client": client, "topic": topic}
    )


def over_broad(ground: Placement) -> None:
    """A bridge attracts a whole feed, of which one topic alone is wanted behind it."""
    plan, mesh = ground.plan, ground.plan.mesh
    source, target = way = ground.way(2)
    feed = ground.feed("catalog", DIRECT, source, _WIDE_ITEMS)
    feed.receivers[source] = [Receiver("catalog-all")]
    feed.receivers[target] = [Receiver("catalog-one", item=0)]
    lead(mesh, feed, way)
    bridge = mesh.bridge(source, target)
    many = ground.messages()
    wanted = walk(plan.templates, mesh, feed, 0)
    ground.stream(feed, 0, wanted, round(many * _WANTED_SHARE))
    wasted = Journey(plan.templates, mesh, feed)
    spot = wasted.ingress()
    wasted.deliver(spot, feed.receivers[source][0])
    wasted.discard(wasted.cross(spot, bridge), _UNMATCHED)
    each = round(many * (1 - _WANTED_SHARE) / (_WIDE_ITEMS - 1))
    for item in range(1, _WIDE_ITEMS):
        ground.stream(feed, item, wasted.template, each)
    ground.faults.append(
        {
            "kind": "over_broad",
            **ground.edge(bridge),
            "topic": feed.filter,
            "value": 1 - _WANTED_SHARE,
        }
    )
    ground.consequences.append({"kind": "wasted_crossing", **ground.edge(bridge)})


def skewed_partition(ground: Placement) -> None:
    """Nearly all messages of a partitioned queue have keys of one partition."""
    plan, mesh = ground.plan, ground.plan.mesh
    (site,) = ground.way(1)
    feed = ground.feed("sessions", PERSISTENT, site)
    place = mesh.sites[site].router_name
    receiver = Receiver(f"sessions-{place}-worker", f"sessions-{place}", _PARTITIONS)
    feed.receivers[site] = [receiver]
    many = ground.messages(2)
    full = int(ground.rng.integers(_PARTITIONS))
    for partition in range(_PARTITIONS):
        share = _SKEW if partition == full else (1 - _SKEW) / (_PARTITIONS - 1)
        template = walk(plan.templates, mesh, feed, 0, partition=partition)
        ground.stream(feed, 0, template, round(many * share))
    ground.faults.append(
        {
            "kind": "skewed_partition",
            **ground.at(site),
            "endpoint": receiver.endpoint,
            "value": _SKEW * _PARTITIONS,
        }
    )


def loop(ground: Placement) -> None:
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


def two_ways(ground: Placement) -> None:
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


def duplicate(ground: Placement) -> None:
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


def _shortcut_km(ground: Placement, way: list[int]) -> float:
    near = ground.plan.mesh.near
    return 0.8 * sum(near[one][other] for one, other in pairwise(way))
