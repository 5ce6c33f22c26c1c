"""Faults of bridges and what they lead to: flapping, stalled and hot ones, endpoints that block."""

from typing import Final

import numpy as np

from vpnrouter.simulation.faults.ground import Ground
from vpnrouter.simulation.feeds import DIRECT, PERSISTENT, Feed, lead, receive
from vpnrouter.simulation.journey import Journey, walk

_DOWNS: Final = (8, 16)
_DOWN_SHARE: Final = 0.25
_REASONS: Final = ("keep-alive timeout", "connection reset by peer", "no route to host")
_LOST_SHARE: Final = 0.35
_QUEUEING_NS: Final = 250_000_000.0
_TRIES: Final = 3
_OFTEN_S: Final = 3_400.0
_LEAST_SPAN_S: Final = 15.0
_BLOCKED_MOST_S: Final = 600.0


def flapping_link(ground: Ground) -> None:
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


def stalled_bridge(ground: Ground) -> None:
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


def hot_bridge(ground: Ground) -> None:
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


def head_of_line(ground: Ground) -> None:
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
    ground: Ground, low: float, high: float, most_s: float = float("inf")
) -> tuple[float, float]:
    """A span of between these shares of the busy time, in the middle of it, and long enough to be told from
    a pause.
    """
    first, last = ground.plan.busy_s
    length = (last - first) * float(ground.rng.uniform(low, high))
    begin = first + (last - first) * float(ground.rng.uniform(0.2, 0.6))
    return begin, begin + min(max(length, _LEAST_SPAN_S), most_s)


def _feed(ground: Ground, kind: str, mode: str, way: list[int]) -> Feed:
    """A feed that the plan lays out as any other, with messages enough to see what happens to them."""
    feed = ground.feed(kind, mode, way[0])
    receive(ground.plan.mesh, feed, way[-1], ground.rng, plain=True)
    lead(ground.plan.mesh, feed, way)
    feed.messages = ground.messages()
    return feed
