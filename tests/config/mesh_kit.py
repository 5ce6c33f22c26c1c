"""Meshes in a few words, for the tests of the checks over several configurations."""

import json
from collections.abc import Sequence
from typing import Any, Final

from vpnrouter.config.mesh.bridge_pairs import check_half
from vpnrouter.config.mesh.check import check_mesh
from vpnrouter.config.mesh.graph import Graph
from vpnrouter.config.mesh.remotes import Routers, remotes
from vpnrouter.config.parse import parse
from vpnrouter.config.problem import Problem
from vpnrouter.config.problem_list import MeshProblems
from vpnrouter.config.router import Loaded, RouterConfig

PASSWORD: Final = "x"


def bridge(
    *sources: str, filters: Sequence[str] = (), queue: str | None = None, **more: Any
) -> dict[str, Any]:
    """A bridge from `router/vpn`, with fail-over to the further ones. `remote_…` keys go to the remotes."""
    remote_keys = {key[7:]: more.pop(key) for key in list(more) if key.startswith("remote_")}
    found = []
    for order, source in enumerate(sources, 1):
        router, _, vpn = source.partition("/")
        remote = {
            "name": vpn,
            "router": router,
            "location": f"{router}.example",
            "connect_order": order,
        }
        if queue is not None:
            remote["queue_binding"] = queue
        found.append(remote | remote_keys)
    return {
        "remote_authentication": {"basic": {"client_username": "bridge", "password": PASSWORD}},
        "remote_msg_vpns": found,
        "remote_subscriptions": list(filters),
        **more,
    }


def vpn(bridges: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A message VPN that bridges can log in to as `bridge`."""
    return {
        "client_profiles": {"bridging": {"allow_bridge_connections_enabled": True}},
        "client_usernames": {"bridge": {"password": PASSWORD, "client_profile": "bridging"}},
        "bridges": bridges or {},
        **more,
    }


def router(name: str, msg_vpns: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A router with a link listener at NAME.example:55555."""
    return {
        "router": {"name": name, "data_dir": f"./data/{name}"},
        "listeners": [{"protocol": "link", "bind": f"{name}.example:55555"}],
        "msg_vpns": msg_vpns,
        **more,
    }


def load_all(routers: Sequence[dict[str, Any]]) -> list[Loaded]:
    """The routers as if loaded from files NAME.yaml."""
    found = []
    for data in routers:
        problems: list[Problem] = []
        text = json.dumps(data, indent=1)
        document = parse(text.encode(), f"{data['router']['name']}.yaml", problems)
        assert document is not None, problems
        found.append(Loaded(RouterConfig.model_validate(document.data), document, ()))
    return found


def mesh(vpns: dict[str, dict[str, Any]]) -> list[Loaded]:
    """Routers from message VPNs by "router/vpn"."""
    routers: dict[str, dict[str, Any]] = {}
    for key, value in vpns.items():
        name, _, msg_vpn = key.partition("/")
        routers.setdefault(name, {})[msg_vpn] = value
    return load_all([router(name, value) for name, value in routers.items()])


def told(loaded: Sequence[Loaded], *, about: str = "", **more: Any) -> list[str]:
    """What the check finds, as lines; with `about` those that hold this text."""
    return [line for each in check_mesh(loaded, **more) if about in (line := str(each))]


def graph_of(loaded: Sequence[Loaded]) -> Graph:
    """The graph of a mesh in which all remotes fit."""
    found, routers = MeshProblems(), Routers(loaded)
    fitting = []
    for each in loaded:
        for place in remotes(each):
            peer = routers.resolve(place).peer
            assert peer is not None
            assert check_half(found, place, peer, routers), found.problems
            fitting.append((place, peer))
    graph = Graph(loaded)
    graph.connect(fitting)
    return graph
