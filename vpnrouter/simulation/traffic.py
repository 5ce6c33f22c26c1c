"""Draws the traffic: feeds, their publishers and receivers, the bridges on the way, and shares of messages over time.

A feed is a group of topics `vpn/class/origin/item` of one publisher. Receivers are drawn by gravity: more at places of
more demand and near by. Bridges on the way attract what somebody behind them wants and nothing else.

A profile is a curve of the share of messages (0 to 1) by seconds since the start. It is flat where traffic pauses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from vpnrouter.simulation.mesh import Mesh
from vpnrouter.units import DAY_S

_CELLS: Final = 720
_SWING: Final = 0.7
_BURSTS: Final = 0.6

SHAPES: Final = ("flat", "day", "evening", "night", "bursts", "waves")
"""The normal profiles, by number."""


@dataclass(frozen=True)
class Profile:
    """`share` (rising from 0 to 1) of the messages that come before each of `times_s` (rising)."""

    times_s: NDArray[np.float64]
    share: NDArray[np.float64]

    def before(self, at_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the share of the messages that come before each of these times."""
        return np.interp(at_s, self.times_s, self.share)

    def times(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the times at which those shares have come, in seconds."""
        return np.interp(shares, self.share, self.times_s)

    def within(self, windows: Sequence[tuple[float, float]]) -> Profile:
        """Return the profile with all its traffic in these windows (seconds, in order, apart).

        The curve keeps its shape inside them.
        """
        edges = np.array([edge for window in windows for edge in window])
        times = np.unique(np.concatenate([self.times_s, edges]))
        middle = (times[1:] + times[:-1]) / 2
        inside = np.zeros(len(middle), dtype=bool)
        for begin, end in windows:
            inside |= (middle > begin) & (middle < end)
        return _curve(times, np.where(inside, np.diff(self.before(times)), 0.0))

    def share_within(self, windows: Sequence[tuple[float, float]]) -> float:
        """Return the share of the messages that come in these windows."""
        return float(sum(np.diff(self.before(np.array(window)))[0] for window in windows))


def normal(begin_s: float, end_s: float, rng: np.random.Generator) -> list[Profile]:
    """Return the profiles of SHAPES for traffic from `begin_s` to `end_s`.

    A day is as long as a day is, or as the simulation where that is shorter.
    """
    times = np.linspace(begin_s, end_s, _CELLS + 1)
    middle = (times[1:] + times[:-1]) / 2
    period = min(DAY_S, end_s - begin_s)
    cells = [np.ones(_CELLS)]
    cells += [1 + _SWING * np.sin(2 * np.pi * (middle / period + at / 3)) for at in range(3)]
    cells.append(rng.gamma(_BURSTS, 1 / _BURSTS, _CELLS) + 0.05)
    cells.append(1 + _SWING * np.sin(2 * np.pi * 12 * middle / period))
    return [_curve(times, cell) for cell in cells]


def _curve(times: NDArray[np.float64], weights: NDArray[np.float64]) -> Profile:
    share = np.concatenate([[0.0], np.cumsum(weights)])
    share /= share[-1]
    # Without the flat ends, share 0 and share 1 are at the first and the last message.
    first = int(np.searchsorted(share, 0.0, "right")) - 1
    last = int(np.searchsorted(share, 1.0, "left")) + 1
    return Profile(times[first:last], share[first:last])


DIRECT: Final = "direct"
PERSISTENT: Final = "persistent"

CLASSES: Final = {
    "prices": DIRECT,
    "telemetry": DIRECT,
    "positions": DIRECT,
    "alerts": DIRECT,
    "status": DIRECT,
    "forecasts": DIRECT,
    "meters": DIRECT,
    "orders": PERSISTENT,
    "bookings": PERSISTENT,
    "invoices": PERSISTENT,
}
"""What is published, and how it is delivered. Faults use classes that are not among these."""

_FARTHEST: Final = 4
_PARTITIONED_SHARE: Final = 0.3
_PARTITIONS: Final = (4, 8)
_MEAN_BYTES: Final = (64, 2_000)


@dataclass(frozen=True)
class Receiver:
    """A client that wants a feed, by itself or as consumer of a queue (`endpoint`).

    `item` is the one item that it wants, None for all. A queue of `partitions` has as many consumers.
    """

    client: str
    endpoint: str = ""
    partitions: int = 0
    item: int | None = None


@dataclass
class Feed:
    """A group of topics and its way: `onward[site]` are the bridges that take it on from there. `messages`
    are spoken for whatever its `weight`.
    """

    prefix: str
    mode: str
    origin: int
    publisher: str
    items: int
    weight: float
    mean_bytes: int
    messages: int = 0
    receivers: dict[int, list[Receiver]] = field(default_factory=dict)
    onward: dict[int, list[int]] = field(default_factory=dict)

    @property
    def filter(self) -> str:
        """All its topics, as an SMF filter."""
        return f"{self.prefix}/>"

    def topic(self, item: int) -> str:
        """Return the topic of one item."""
        return f"{self.prefix}/i{item:02d}"


def new_feed(mesh: Mesh, kind: str, mode: str, origin: int, rng: np.random.Generator) -> Feed:
    """Return a feed without receivers; `kind` is the second level of its topics."""
    site = mesh.sites[origin]
    low, high = np.log(_MEAN_BYTES)
    return Feed(
        prefix=f"{site.vpn}/{kind}/{site.router_name}",
        mode=mode,
        origin=origin,
        publisher=f"{kind}-source",
        items=1,
        weight=mesh.network.weights[site.router],
        mean_bytes=int(np.exp(rng.uniform(low, high))),
    )


def route(mesh: Mesh, feed: Feed, way: Sequence[int], wanted: str | None = None) -> None:
    """Let `feed` travel along `way`, sites from its origin on; bridges subscribe to `wanted`, an SMF filter,
    by default all of the feed.
    """
    for source, target in pairwise(way):
        attract(mesh, feed, mesh.bridge(source, target), wanted)


def attract(mesh: Mesh, feed: Feed, number: int, wanted: str | None = None) -> None:
    """Let bridge `number` attract `feed`."""
    bridge = mesh.bridges[number]
    onward = feed.onward.setdefault(bridge.source, [])
    if number not in onward:
        onward.append(number)
    if feed.mode == PERSISTENT:
        local = mesh.sites[bridge.target]
        bridge.queue = bridge.queue or f"to-{local.router_name}-{local.vpn}-{bridge.name}"
        bridge.queue_filters[wanted or feed.filter] = None
    else:
        bridge.filters[wanted or feed.filter] = None


def receive(
    mesh: Mesh, feed: Feed, site: int, rng: np.random.Generator, *, plain: bool = False
) -> None:
    """Add a receiver of all of `feed` at `site`; `plain`: exactly one, without partitions."""
    kind = feed.prefix.split("/")[1]
    place = mesh.sites[feed.origin].router_name
    here = feed.receivers.setdefault(site, [])
    if feed.mode == PERSISTENT:
        queue = f"{kind}-{place}"
        partitions = 0
        already = any(one.partitions for each in feed.receivers.values() for one in each)
        if not plain and not already and rng.random() < _PARTITIONED_SHARE:
            partitions = int(rng.choice(_PARTITIONS))
        here.append(Receiver(f"{queue}-worker", queue, partitions))
        return
    number = 1 if plain else 1 + int(rng.poisson(0.6))
    here += [Receiver(f"{kind}-{place}-{at + 1}") for at in range(number)]
    if not plain and feed.items > 1 and rng.random() < 0.2:
        item = int(rng.integers(feed.items))
        here.append(Receiver(f"{kind}-{place}-i{item:02d}", item=item))


def build(mesh: Mesh, feeds_per_vpn: float, items: int, rng: np.random.Generator) -> list[Feed]:
    """Return the normal feeds of the whole mesh: each site has some, and each tree link is used both ways."""
    feeds: list[Feed] = []
    used: set[tuple[int, int]] = set()
    names: set[str] = set()
    kinds = list(CLASSES)
    for sites in mesh.domains:
        weights = np.array([mesh.network.weights[mesh.sites[site].router] for site in sites])
        for _ in range(max(1, round(feeds_per_vpn * len(sites)))):
            origin = sites[int(rng.choice(len(sites), p=weights / weights.sum()))]
            feed = _draw(mesh, origin, str(rng.choice(kinds)), items, rng)
            if feed.prefix not in names:
                names.add(feed.prefix)
                _draw_receivers(mesh, feed, used, rng)
                feeds.append(feed)
    for one, near in enumerate(mesh.near):
        for other in near:
            if (one, other) not in used:
                feed = _draw(
                    mesh, one, f"news-{mesh.sites[other].name.replace('/', '-')}", items, rng
                )
                feed.weight *= 0.3
                receive(mesh, feed, other, rng)
                _go(mesh, feed, [one, other], used)
                feeds.append(feed)
    return feeds


def _draw(mesh: Mesh, origin: int, kind: str, items: int, rng: np.random.Generator) -> Feed:
    feed = new_feed(mesh, kind, CLASSES.get(kind, DIRECT), origin, rng)
    feed.items = int(rng.integers(1, items + 1))
    feed.weight *= float(rng.pareto(1.5)) + 0.2
    return feed


def _draw_receivers(
    mesh: Mesh, feed: Feed, used: set[tuple[int, int]], rng: np.random.Generator
) -> None:
    ways = _ways(mesh, feed.origin)
    others = [site for site in ways if site != feed.origin]
    if not others or rng.random() < 0.4:
        receive(mesh, feed, feed.origin, rng)
    if not others:
        return
    pull = np.array(
        [mesh.network.weights[mesh.sites[site].router] / (100.0 + ways[site][1]) for site in others]
    )
    number = min(len(others), 1 + int(rng.geometric(0.5)))
    for at in rng.choice(len(others), size=number, replace=False, p=pull / pull.sum()):
        site = others[int(at)]
        receive(mesh, feed, site, rng)
        _go(mesh, feed, ways[site][0], used)


def _go(mesh: Mesh, feed: Feed, way: list[int], used: set[tuple[int, int]]) -> None:
    route(mesh, feed, way)
    used.update(pairwise(way))


def _ways(mesh: Mesh, origin: int) -> dict[int, tuple[list[int], float]]:
    """Return the sites within reach, each with the path to it and its length in kilometres."""
    paths = {origin: ([origin], 0.0)}
    edge = [origin]
    for _ in range(_FARTHEST):
        after = []
        for site in edge:
            way, length = paths[site]
            for other, km in mesh.near[site].items():
                if other not in paths:
                    paths[other] = ([*way, other], length + km)
                    after.append(other)
        edge = after
    return paths
