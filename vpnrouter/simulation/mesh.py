"""Builds a mesh: message VPNs spread over the routers of a real network graph, and the bridges between them.

A domain is a message VPN of one name on several routers, joined along links of the network so that there is exactly one
path between any two of them: normal meshes have neither loops nor second paths. Some domains are joined to an earlier
one by a bridge within a router.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final

import numpy as np

from vpnrouter.errors import OperationError

_NAME_MOST: Final = 32
_SHORTEST_KM: Final = 1.0


@dataclass(frozen=True)
class Network:
    """An undirected graph of routers.

    `routers` are their names, unique; `positions` longitude and latitude or kilometres on a plane;
    `links[a][b]` the length of the link from router a to b in kilometres; `weights` how much traffic
    begins at each, on average 1.
    """

    name: str
    routers: tuple[str, ...]
    positions: tuple[tuple[float, float], ...]
    links: tuple[Mapping[int, float], ...]
    weights: tuple[float, ...]


def names() -> list[str]:
    """Return the names of all networks that the package has, in order.

    Raises:
        OperationError: the package is not installed.
    """
    root = _data()
    return sorted(_walk(root, ""))


def load(name: str) -> Network:
    """Return the network `name`, such as "sndlib/germany50".

    Raises:
        OperationError: the package is not installed, or has no network of that name.
    """
    if name not in names():
        raise OperationError(f"no network {name}: see vpnrouter simulate --networks")
    text = _data().joinpath(*f"{name}.json".split("/")).read_text(encoding="utf-8")
    graph: dict[str, Any] = json.loads(text)
    nodes = sorted(graph["nodes"], key=lambda node: int(node["id"]))
    index = {node["id"]: at for at, node in enumerate(nodes)}
    links: list[dict[int, float]] = [{} for _ in nodes]
    for edge in graph["edges"]:
        one, other = index[edge["source"]], index[edge["target"]]
        if one != other:
            km = max(_SHORTEST_KM, float(edge.get("dist", 0.0)))
            links[one][other] = links[other][one] = min(km, links[one].get(other, km))
    return Network(
        name=name,
        routers=_router_names([str(node.get("name") or "") for node in nodes]),
        positions=tuple((float(node["pos"][0]), float(node["pos"][1])) for node in nodes),
        links=tuple(links),
        weights=_weights(graph["graph"].get("demands") or {}, index, links),
    )


def _data() -> Any:  # noqa: ANN401 - what importlib calls Traversable has moved between versions
    try:
        return resources.files("topohub") / "data"
    except ModuleNotFoundError as error:
        raise OperationError(
            "the simulator needs the package topohub: pip install '.[simulate]' in vpnrouter's source"
        ) from error


def _walk(folder: Any, prefix: str) -> list[str]:  # noqa: ANN401 - see above
    names: list[str] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            names += _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".json"):
            names.append(prefix + entry.name.removesuffix(".json"))
    return names


def _router_names(given: list[str]) -> tuple[str, ...]:
    """Return a name of letters, digits and hyphens; a number makes names unique."""
    names_in_use: set[str] = set()
    routers = []
    for at, name in enumerate(given):
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
        base = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:_NAME_MOST] or f"r{at}"
        unique, number = base, 1
        while unique in names_in_use:
            number += 1
            unique = f"{base}-{number}"
        names_in_use.add(unique)
        routers.append(unique)
    return tuple(routers)


def _weights(
    demands: Mapping[str, Mapping[str, float]],
    index: Mapping[int, int],
    links: list[dict[int, float]],
) -> tuple[float, ...]:
    """Return weights by the demands if there are any, else by the number of links; above 0."""
    weights = [0.0] * len(links)
    for source, demand in demands.items():
        for target, amount in demand.items():
            for end in (int(source), int(target)):
                if end in index:
                    weights[index[end]] += float(amount)
    if not any(weights):
        weights = [float(len(near)) for near in links]
    mean = sum(weights) / len(weights) or 1.0
    return tuple(0.1 + 0.9 * weight / mean for weight in weights)


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
        """Add a message VPN, and return its number."""
        self.sites.append(Site(router, self.network.routers[router], vpn, domain))
        self.near.append({})
        return len(self.sites) - 1

    def join(self, one: int, other: int, km: float) -> None:
        """Let messages go between two sites."""
        self.near[one][other] = self.near[other][one] = km

    def bridge(self, source: int, target: int) -> int:
        """Return the bridge from `source` into `target` along a tree link; made when it is missing."""
        number = self._between.get((source, target))
        if number is None:
            number = self.new_bridge(source, target, self.near[source][target])
            self._between[source, target] = number
        return number

    def both_ways(self, source: int, target: int) -> list[int]:
        """Return the bridges that share the connection between two sites."""
        pairs = ((source, target), (target, source))
        return [self._between[pair] for pair in pairs if pair in self._between]

    def new_bridge(self, source: int, target: int, km: float) -> int:
        """Return one more bridge from `source` into `target`, of a name that its message VPN has not yet."""
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
        """Return the name of the client as which a bridge logs in at its remote."""
        local = self.sites[bridge.target]
        return f"#bridge/{local.router_name}/{local.vpn}/{bridge.name}"


def build(network: Network, vpns: int, least_domains: int, rng: np.random.Generator) -> Mesh:
    """Return a mesh of `vpns` message VPNs (2 or more) in at least `least_domains` domains where they suffice."""
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
