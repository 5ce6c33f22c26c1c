"""Faults of topics and subscriptions: nobody wants it, nobody publishes it, too much is attracted."""

from typing import Final

from vpnrouter.simulation.faults.ground import Ground
from vpnrouter.simulation.feeds import DIRECT, PERSISTENT, Receiver, lead
from vpnrouter.simulation.journey import Journey, walk

_UNMATCHED: Final = "no-subscription-match"
_TRAFFIC: Final = 200
_WIDE_ITEMS: Final = 8
_WANTED_SHARE: Final = 0.2
_PARTITIONS: Final = 4
_SKEW: Final = 0.8


def black_hole(ground: Ground) -> None:
    """A client publishes what nobody has subscribed to."""
    (site,) = ground.way(1)
    feed = ground.feed("heartbeats", DIRECT, site)
    journey = Journey(ground.plan.templates, ground.plan.mesh, feed)
    journey.discard(journey.ingress(), _UNMATCHED)
    ground.stream(feed, 0, journey.template, ground.messages())
    ground.faults.append({"kind": "black_hole", **ground.at(site), "topic": feed.topic(0)})


def never_matched(ground: Ground) -> None:
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


def over_broad(ground: Ground) -> None:
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


def skewed_partition(ground: Ground) -> None:
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
