"""The mesh: message VPNs spread over the routers of a network, and the bridges between them.

A domain is a message VPN of one name on several routers, joined along links of the network so that there
is one way only between any two of them: normal meshes have neither loops nor second ways. Some domains are
joined to an earlier one by a bridge within a router.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from vpnrouter.simulation.network import Network

_TRADES: Final = (
    *("retail", "freight", "energy", "weather", "banking", "rail", "airport", "health"),
    *("mobility", "factory", "media", "telecom", "water", "farming", "insurance", "logistics"),
)
_SPAN: Final = (4, 10)
_JOINED_SHARE: Final = 0.3


@dataclass(frozen=True)
class Site:
    """A message VPN on a router; `router` is the router's number, `domain` the domain's."""

    router: int
    router_name: str
    vpn: str
    domain: int

    @property
    def name(self) -> str:
        """As trace rows name it in a path: router/vpn."""
        return f"{self.router_name}/{self.vpn}"


@dataclass
class Bridge:
    """A bridge in site `target`, which attracts from site `source`.

    `filters` are its remote subscriptions; `queue` the queue at the source that it is bound to, empty
    for none, and `queue_filters` what the queue attracts. All are SMF filters, in order, without doubles.
    """

    name: str
    source: int
    target: int
    km: float
    filters: dict[str, None] = field(default_factory=dict)
    queue: str = ""
    queue_filters: dict[str, None] = field(default_factory=dict)


@dataclass
class Mesh:
    """Sites, the tree links between them, and the bridges made so far."""

    network: Network
    sites: list[Site] = field(default_factory=list)
    domains: list[list[int]] = field(default_factory=list)
    near: list[dict[int, float]] = field(default_factory=list)
    bridges: list[Bridge] = field(default_factory=list)
    _between: dict[tuple[int, int], int] = field(default_factory=dict)
    _names: set[tuple[int, str]] = field(default_factory=set)

    def add_site(self, router: int, vpn: str, domain: int) -> int:
        """A new message VPN; returns its number."""
        self.sites.append(Site(router, self.network.routers[router], vpn, domain))
        self.near.append({})
        return len(self.sites) - 1

    def join(self, one: int, other: int, km: float) -> None:
        """Let messages go between two sites."""
        self.near[one][other] = self.near[other][one] = km

    def bridge(self, source: int, target: int) -> int:
        """The bridge from `source` into `target` along a tree link; made when it is missing."""
        number = self._between.get((source, target))
        if number is None:
            number = self.new_bridge(source, target, self.near[source][target])
            self._between[source, target] = number
        return number

    def both_ways(self, source: int, target: int) -> list[int]:
        """The bridges that share the connection between two sites."""
        pairs = ((source, target), (target, source))
        return [self._between[pair] for pair in pairs if pair in self._between]

    def new_bridge(self, source: int, target: int, km: float) -> int:
        """One more bridge from `source` into `target`, of a name that its message VPN has not yet."""
        remote, local = self.sites[source], self.sites[target]
        base = remote.router_name if remote.router != local.router else remote.vpn
        name, number = f"from-{base}", 1
        while (target, name) in self._names:
            number += 1
            name = f"from-{base}-{number}"
        self._names.add((target, name))
        self.bridges.append(Bridge(name, source, target, km))
        return len(self.bridges) - 1

    def client_of(self, bridge: Bridge) -> str:
        """The name of the client as which a bridge logs in at its remote."""
        local = self.sites[bridge.target]
        return f"#bridge/{local.router_name}/{local.vpn}/{bridge.name}"


def build(network: Network, vpns: int, least_domains: int, rng: np.random.Generator) -> Mesh:
    """A mesh of `vpns` message VPNs (2 or more) in at least `least_domains` domains where they suffice."""
    mesh = Mesh(network)
    weights = np.array(network.weights)
    weights /= weights.sum()
    most = min(_SPAN[1], len(network.routers), max(_SPAN[0], vpns // max(1, least_domains)))
    least = min(_SPAN[0], most)
    while len(mesh.sites) < vpns:
        left = vpns - len(mesh.sites)
        size = min(left, int(rng.integers(least, most + 1)))
        if 0 < left - size < least:
            size = left if left <= most else left - least
        _add_domain(mesh, max(1, size), weights, rng)
    return mesh


def _add_domain(mesh: Mesh, size: int, weights: np.ndarray, rng: np.random.Generator) -> None:
    domain = len(mesh.domains)
    vpn = f"{_TRADES[domain % len(_TRADES)]}-{domain + 1}"
    joined = -1
    if domain and rng.random() < _JOINED_SHARE:
        joined = int(rng.integers(len(mesh.sites)))
        start = mesh.sites[joined].router
    else:
        start = int(rng.choice(len(weights), p=weights))
    links = mesh.network.links
    site_of = {start: mesh.add_site(start, vpn, domain)}
    if joined >= 0:
        mesh.join(joined, site_of[start], 0.0)
    edges = [(start, other) for other in links[start]]
    while len(site_of) < size and edges:
        one, other = edges.pop(int(rng.integers(len(edges))))
        if other not in site_of:
            site_of[other] = mesh.add_site(other, vpn, domain)
            mesh.join(site_of[one], site_of[other], links[one][other])
            edges += [(other, more) for more in links[other] if more not in site_of]
    mesh.domains.append(list(site_of.values()))
