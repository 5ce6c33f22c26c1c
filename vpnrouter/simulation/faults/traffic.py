"""Plants faults of topics, subscriptions and paths: no receiver, no publisher, loops, double delivery."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from vpnrouter.core.guaranteed.refusals import SPOOL_OVER_QUOTA
from vpnrouter.simulation.faults.placement import Placement
from vpnrouter.simulation.templates import Journey, walk
from vpnrouter.simulation.traffic import DIRECT, PERSISTENT, Receiver, attract, receive, route

_UNMATCHED: Final = "no-subscription-match"
_TRAFFIC: Final = 200
_WIDE_ITEMS: Final = 8
_WANTED_SHARE: Final = 0.2
_PARTITIONS: Final = 4
_SKEW: Final = 0.8


def black_hole(placement: Placement) -> None:
    """Plant a client that publishes what nobody has subscribed to."""
    (site,) = placement.way(1)
    feed = placement.feed("heartbeats", DIRECT, site)
    journey = Journey(placement.plan.templates, placement.plan.mesh, feed)
    journey.discard(journey.ingress(), _UNMATCHED)
    placement.stream(feed, 0, journey.template, placement.messages())
    placement.faults.append({"kind": "black_hole", **placement.at(site), "topic": feed.topic(0)})


def never_matched(placement: Placement) -> None:
    """Plant a client that subscribes to what nobody publishes, besides what it gets."""
    plan = placement.plan
    (site,) = placement.way(1)
    place = plan.mesh.sites[site]
    feed = placement.feed("journal", DIRECT, site)
    client = "archive-reader"
    feed.receivers[site] = [Receiver(client)]
    # Silence proves something only where there is traffic.
    many = max(_TRAFFIC, placement.messages())
    placement.stream(feed, 0, walk(plan.templates, plan.mesh, feed, 0), many)
    topic = f"{place.vpn}/archive/{place.router_name}/#"
    plan.extra_subscriptions.append((site, client, topic))
    placement.faults.append(
        {"kind": "never_matched", **placement.at(site), "client": client, "topic": topic}
    )


def over_broad(placement: Placement) -> None:
    """Plant a bridge that attracts a whole feed, of which only one topic has receivers behind it."""
    plan, mesh = placement.plan, placement.plan.mesh
    source, target = way = placement.way(2)
    feed = placement.feed("catalog", DIRECT, source, _WIDE_ITEMS)
    feed.receivers[source] = [Receiver("catalog-all")]
    feed.receivers[target] = [Receiver("catalog-one", item=0)]
    route(mesh, feed, way)
    bridge = mesh.bridge(source, target)
    many = placement.messages()
    wanted = walk(plan.templates, mesh, feed, 0)
    placement.stream(feed, 0, wanted, round(many * _WANTED_SHARE))
    wasted = Journey(plan.templates, mesh, feed)
    visit = wasted.ingress()
    wasted.deliver(visit, feed.receivers[source][0])
    wasted.discard(wasted.cross(visit, bridge), _UNMATCHED)
    each = round(many * (1 - _WANTED_SHARE) / (_WIDE_ITEMS - 1))
    for item in range(1, _WIDE_ITEMS):
        placement.stream(feed, item, wasted.template, each)
    placement.faults.append(
        {
            "kind": "over_broad",
            **placement.edge(bridge),
            "topic": feed.filter,
            "value": 1 - _WANTED_SHARE,
        }
    )
    placement.consequences.append({"kind": "wasted_crossing", **placement.edge(bridge)})


def skewed_partition(placement: Placement) -> None:
    """Plant a partitioned queue nearly all of whose messages have keys of one partition."""
    plan, mesh = placement.plan, placement.plan.mesh
    (site,) = placement.way(1)
    feed = placement.feed("sessions", PERSISTENT, site)
    place = mesh.sites[site].router_name
    receiver = Receiver(f"sessions-{place}-worker", f"sessions-{place}", _PARTITIONS)
    feed.receivers[site] = [receiver]
    many = placement.messages(2)
    full = int(placement.rng.integers(_PARTITIONS))
    for partition in range(_PARTITIONS):
        share = _SKEW if partition == full else (1 - _SKEW) / (_PARTITIONS - 1)
        template = walk(plan.templates, mesh, feed, 0, partition=partition)
        placement.stream(feed, 0, template, round(many * share))
    placement.faults.append(
        {
            "kind": "skewed_partition",
            **placement.at(site),
            "endpoint": receiver.endpoint,
            "value": _SKEW * _PARTITIONS,
        }
    )


def full_queue(placement: Placement) -> None:
    """Plant a queue that has no room for half of what clients publish to it."""
    plan, mesh = placement.plan, placement.plan.mesh
    (site,) = placement.way(1)
    feed = placement.feed("invoices", PERSISTENT, site)
    receive(mesh, feed, site, placement.rng, plain=True)
    (receiver,) = feed.receivers[site]
    refused = Journey(plan.templates, mesh, feed)
    refused.reject(refused.ingress(), receiver.endpoint, SPOOL_OVER_QUOTA)
    many = placement.messages()
    placement.stream(feed, 0, refused.template, many // 2)
    placement.stream(feed, 0, walk(plan.templates, mesh, feed, 0), many // 2)
    placement.faults.append(
        {"kind": "full_queue", **placement.at(site), "endpoint": receiver.endpoint}
    )


def growing_queue(placement: Placement) -> None:
    """Plant a queue from which nobody takes what comes."""
    plan, mesh = placement.plan, placement.plan.mesh
    (site,) = placement.way(1)
    feed = placement.feed("returns", PERSISTENT, site)
    receive(mesh, feed, site, placement.rng, plain=True)
    (receiver,) = feed.receivers[site]
    kept = Journey(plan.templates, mesh, feed)
    kept.enqueue(kept.ingress(), receiver.endpoint)
    placement.stream(feed, 0, kept.template, max(_TRAFFIC, placement.messages()))
    placement.faults.append(
        {"kind": "growing_queue", **placement.at(site), "endpoint": receiver.endpoint}
    )


def loop(placement: Placement) -> None:
    """Plant three message VPNs in a ring that attract one feed: it comes round, goes on, and is stopped only then."""
    mesh = placement.plan.mesh
    first, second, third = way = placement.way(3)
    feed = placement.feed("ledger", DIRECT, first)
    receive(mesh, feed, second, placement.rng, plain=True)
    receive(mesh, feed, third, placement.rng, plain=True)
    route(mesh, feed, way)
    back = mesh.new_bridge(third, first, _shortcut_km(placement, way))
    attract(mesh, feed, back)
    journey = Journey(placement.plan.templates, mesh, feed)
    bridge = mesh.bridge(first, second)
    visit = journey.cross(journey.ingress(), bridge)
    journey.deliver(visit, feed.receivers[second][0])
    visit = journey.cross(visit, mesh.bridge(second, third))
    journey.deliver(visit, feed.receivers[third][0])
    visit = journey.cross(journey.cross(visit, back), bridge)
    journey.discard(visit, "loop-detected")
    placement.stream(feed, 0, journey.template, placement.messages())
    smallest = min(way, key=lambda site: mesh.sites[site].name)
    placement.faults.append({"kind": "loop", **placement.at(smallest)})
    placement.consequences += [
        {"kind": "duplicate", **placement.at(second)},
        {"kind": "over_broad", **placement.edge(back)},
        {"kind": "wasted_crossing", **placement.edge(back)},
    ]


def two_ways(placement: Placement) -> None:
    """Plant a feed that reaches a message VPN twice: by a shortcut, or by a second bridge beside the first."""
    mesh = placement.plan.mesh
    way = placement.way(3)
    first, second, third = way
    feed = placement.feed("quotes", DIRECT, first)
    receive(mesh, feed, second, placement.rng, plain=True)
    receive(mesh, feed, third, placement.rng, plain=True)
    route(mesh, feed, way)
    beside = placement.planted("two_ways") % 2 == 1
    km = mesh.near[second][third] if beside else _shortcut_km(placement, way)
    other = mesh.new_bridge(second if beside else first, third, km)
    attract(mesh, feed, other)
    journey = Journey(placement.plan.templates, mesh, feed)
    begin = journey.ingress()
    middle = journey.cross(begin, mesh.bridge(first, second))
    journey.deliver(middle, feed.receivers[second][0])
    visits = [
        journey.cross(middle, mesh.bridge(second, third)),
        journey.cross(middle if beside else begin, other),
    ]
    first_visit, again = visits if beside else reversed(visits)
    journey.deliver(first_visit, feed.receivers[third][0])
    journey.discard(again, "duplicate")
    placement.stream(feed, 0, journey.template, placement.messages())
    placement.faults.append({"kind": "two_ways", **placement.at(third)})


def duplicate(placement: Placement) -> None:
    """Plant two bridges that take the same guaranteed messages, each by a queue: the queue behind has all twice."""
    mesh = placement.plan.mesh
    first, second = way = placement.way(2)
    feed = placement.feed("payments", PERSISTENT, first)
    receive(mesh, feed, second, placement.rng, plain=True)
    route(mesh, feed, way)
    other = mesh.new_bridge(first, second, mesh.near[first][second])
    attract(mesh, feed, other)
    (receiver,) = feed.receivers[second]
    journey = Journey(placement.plan.templates, mesh, feed)
    begin = journey.ingress()
    for bridge in (mesh.bridge(first, second), other):
        journey.deliver(journey.cross(begin, bridge), receiver)
    placement.stream(feed, 0, journey.template, placement.messages())
    placement.faults.append(
        {"kind": "duplicate", **placement.at(second), "endpoint": receiver.endpoint}
    )
    placement.consequences.append({"kind": "two_ways", **placement.at(second)})


def _shortcut_km(placement: Placement, way: list[int]) -> float:
    near = placement.plan.mesh.near
    return 0.8 * sum(near[one][other] for one, other in pairwise(way))
