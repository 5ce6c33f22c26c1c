"""Real network graphs, from the package topohub: places, links with their lengths, demands."""

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

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
    """The names of all networks that the package has, in order.

    Raises:
        OperationError: the package is not installed.
    """
    root = _data()
    return sorted(_walk(root, ""))


def load(name: str) -> Network:
    """The network `name`, such as "sndlib/germany50".

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
    found: list[str] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            found += _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".json"):
            found.append(prefix + entry.name.removesuffix(".json"))
    return found


def _router_names(given: list[str]) -> tuple[str, ...]:
    """Letters, digits and hyphens; a number is added to what would stand twice."""
    taken: set[str] = set()
    routers = []
    for at, name in enumerate(given):
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
        base = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:_NAME_MOST] or f"r{at}"
        unique, number = base, 1
        while unique in taken:
            number += 1
            unique = f"{base}-{number}"
        taken.add(unique)
        routers.append(unique)
    return tuple(routers)


def _weights(
    demands: Mapping[str, Mapping[str, float]],
    index: Mapping[int, int],
    links: list[dict[int, float]],
) -> tuple[float, ...]:
    """By the demands where there are any, else by the number of links; never nothing."""
    weights = [0.0] * len(links)
    for source, wanted in demands.items():
        for target, amount in wanted.items():
            for end in (int(source), int(target)):
                if end in index:
                    weights[index[end]] += float(amount)
    if not any(weights):
        weights = [float(len(near)) for near in links]
    mean = sum(weights) / len(weights) or 1.0
    return tuple(0.1 + 0.9 * weight / mean for weight in weights)
