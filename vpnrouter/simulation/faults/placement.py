"""Places faults: each in a part of the mesh of its own, with its streams and its entry in the truth."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from vpnrouter.errors import OperationError
from vpnrouter.simulation.mesh import Bridge
from vpnrouter.simulation.plan import Plan
from vpnrouter.simulation.templates import Stream
from vpnrouter.simulation.traffic import Feed, new_feed

SHARE: Final = 0.002
"""Share of the trace rows that a fault takes as messages of its own, and at least LEAST_MESSAGES."""

LEAST_MESSAGES: Final = 48

Fault = dict[str, str | float | int | None]


@dataclass
class Placement:
    """A plan to place faults in.

    `rows` is the total wanted. `faults` must be found, with the field names of findings; `consequences` are true as
    well and need not be found.
    """

    plan: Plan
    rows: int
    rng: np.random.Generator
    faults: list[Fault] = field(default_factory=list)
    consequences: list[Fault] = field(default_factory=list)
    _free: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._free = [int(at) for at in self.rng.permutation(len(self.plan.mesh.domains))]

    def messages(self, times: float = 1.0) -> int:
        """Return how many messages a fault has, `times` as many as is usual."""
        return max(LEAST_MESSAGES, round(SHARE * self.rows * times))

    def planted(self, kind: str) -> int:
        """Return how many faults of `kind` are planted already."""
        return sum(fault["kind"] == kind for fault in self.faults)

    def way(self, sites: int) -> list[int]:
        """Return so many sites in a row, in a domain without a fault.

        Raises:
            OperationError: there is no such domain left.
        """
        for place, domain in enumerate(self._free):
            chain = self._way_in(domain, sites)
            if chain:
                del self._free[place]
                return chain
        raise OperationError("too few message VPNs for these faults: more --vpns, or fewer --fault")

    def _way_in(self, domain: int, sites: int) -> list[int]:
        mesh = self.plan.mesh
        inside = set(mesh.domains[domain])
        for start in self.rng.permutation(mesh.domains[domain]).tolist():
            ways = [[start]]
            while ways:
                way = ways.pop()
                if len(way) == sites:
                    return way
                ways += [
                    [*way, other]
                    for other in mesh.near[way[-1]]
                    if other in inside and other not in way
                ]
        return []

    def feed(self, kind: str, mode: str, origin: int, items: int = 1) -> Feed:
        """Return a feed whose templates the fault writes itself."""
        feed = new_feed(self.plan.mesh, kind, mode, origin, self.rng)
        feed.items = items
        self.plan.scripted.append(feed)
        return feed

    def stream(
        self, feed: Feed, item: int, template: int, messages: int, profile: int | None = None
    ) -> None:
        """Add messages of `feed` on one item."""
        topic = self.plan.topics.number(feed.topic(item))
        at = int(self.rng.integers(3)) if profile is None else profile
        self.plan.streams.append(
            Stream(template, topic, at, feed.mean_bytes, messages=max(1, messages))
        )

    def window(self, begin: float, end: float) -> tuple[float, float]:
        """Return shares of the busy time as seconds."""
        first, last = self.plan.busy_s
        return first + begin * (last - first), first + end * (last - first)

    def profile(self, *windows: tuple[float, float]) -> int:
        """Return the number of a steady profile with traffic in these windows (seconds) only."""
        self.plan.profiles.append(self.plan.profiles[0].within(windows))
        return len(self.plan.profiles) - 1

    def at(self, site: int) -> Fault:
        """Return a site in the fields of findings."""
        place = self.plan.mesh.sites[site]
        return {"router": place.router_name, "vpn": place.vpn}

    def edge(self, number: int) -> Fault:
        """Return a bridge in the fields of findings: its local end, and its remote end as the peer."""
        return self.ends(self.plan.mesh.bridges[number])

    def ends(self, bridge: Bridge) -> Fault:
        """Return the ends of a bridge in the fields of findings; it need not be one of the mesh."""
        remote = self.plan.mesh.sites[bridge.source]
        return {
            **self.at(bridge.target),
            "peer_router": remote.router_name,
            "peer_vpn": remote.vpn,
            "bridge": bridge.name,
        }
