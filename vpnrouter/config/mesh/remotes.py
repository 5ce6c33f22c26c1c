"""Finds the router that each remote means, and names that are used twice or misspelt.

A remote means the router that it names, by `router` or by a location `v:ROUTER`; else the router whose
link listener is bound to its address, letter by letter. No name is looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Final, NamedTuple

from vpnrouter.config.bridge import Bridge
from vpnrouter.config.problem import Path
from vpnrouter.config.problem_list import MeshProblems
from vpnrouter.config.router import Loaded, RouterConfig
from vpnrouter.settings.address import Address, router_of
from vpnrouter.settings.bridge import RemoteMsgVpn
from vpnrouter.settings.listener import Listener

LINK_PROTOCOLS: Final = frozenset({"link", "links"})
_ANYWHERE: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - read, not bound


class ConfiguredRemote(NamedTuple):
    """One enabled remote of one enabled bridge. `path` leads to it in `loaded`."""

    loaded: Loaded
    path: Path
    bridge: Bridge
    remote: RemoteMsgVpn

    @property
    def msg_vpn(self) -> str:
        """The message VPN that the bridge brings messages into."""
        return str(self.path[1])

    @property
    def bridge_name(self) -> str:
        """The bridge's name."""
        return str(self.path[3])

    @property
    def bridge_path(self) -> Path:
        """The path of the bridge."""
        return self.path[:4]

    @property
    def router_name(self) -> str | None:
        """The router that the remote names, if it names one."""
        return self.remote.router or router_of(self.remote.location)


class RemoteRouter(NamedTuple):
    """What a remote means: a router of the mesh, or why none is known."""

    peer: Loaded | None
    unknown: str = ""


def remotes(loaded: Loaded) -> list[ConfiguredRemote]:
    """Return every enabled remote of every enabled bridge of every enabled message VPN of one router."""
    return [
        ConfiguredRemote(
            loaded,
            ("msg_vpns", vpn_name, "bridges", name, "remote_msg_vpns", index),
            bridge,
            remote,
        )
        for vpn_name, vpn in loaded.config.msg_vpns.items()
        for name, bridge in vpn.bridges.items()
        for index, remote in enumerate(bridge.remote_msg_vpns)
        if vpn.enabled and bridge.enabled and remote.enabled
    ]


class Routers:
    """The routers of a mesh, by name and by where they listen for bridges."""

    __slots__ = ("by_address", "by_name")

    def __init__(self, mesh: Sequence[Loaded]) -> None:
        self.by_name: dict[str, Loaded] = {}
        self.by_address: dict[Address, list[Loaded]] = {}
        for loaded in mesh:
            self.by_name.setdefault(loaded.config.router.name, loaded)
            for address in {
                listener.address
                for listener in link_listeners(loaded.config)
                if listener.address.port
            }:
                self.by_address.setdefault(address, []).append(loaded)

    def resolve(self, configured: ConfiguredRemote) -> RemoteRouter:
        """Return the router that a remote means."""
        router_name, address = configured.router_name, configured.remote.address
        if router_name is not None:
            peer = self.by_name.get(router_name)
            return RemoteRouter(
                peer, "" if peer else f"no given file describes router {router_name}"
            )
        listening = self.by_address.get(address, []) if address else []
        if len(listening) == 1:
            return RemoteRouter(listening[0])
        if listening:
            # One loopback address may be meant on several machines: the files do not tell which.
            names = ", ".join(each.config.router.name for each in listening)
            return RemoteRouter(
                None, f"routers {names} all listen at {address}; router: NAME tells which"
            )
        return RemoteRouter(
            None, f"no given file describes a router with a link listener at {address}"
        )

    def listening_instead(self, configured: ConfiguredRemote) -> Loaded | None:
        """Return the one router that listens where the remote leads, when the remote names another one.

        A loopback address is another one on each machine: there it counts only if the router named
        is described and does not listen there itself.
        """
        router_name, address = configured.router_name, configured.remote.address
        listening = self.by_address.get(address, []) if address else []
        if router_name is None or address is None or len(listening) != 1:
            return None
        other = listening[0]
        if other.config.router.name == router_name:
            return None
        named = self.by_name.get(router_name)
        if named is None:
            return None if is_loopback(address.host) else other
        return None if listener_at(named.config, address) is not None else other


def link_listeners(config: RouterConfig) -> list[Listener]:
    """Return the listeners that bridges are let in by."""
    return [
        listener
        for listener in config.listeners
        if listener.enabled and listener.protocol in LINK_PROTOCOLS
    ]


def listener_at(config: RouterConfig, address: Address | None) -> Listener | None:
    """Return the link listener that answers at `address`, bound to it or to all addresses of the machine."""
    if address is None:
        return None
    listeners = link_listeners(config)
    for listener in listeners:
        if listener.address == address:
            return listener
    for listener in listeners:
        if listener.address.port == address.port and listener.address.host in _ANYWHERE:
            return listener
    return None


def is_loopback(host: str) -> bool:
    """Return whether a host is the machine itself, whichever that is."""
    return host in {"localhost", "::1"} or host.startswith("127.")


def check_names(problems: MeshProblems, mesh: Sequence[Loaded]) -> None:
    """Report routers with one name, routers with one data directory, and message VPNs whose names
    differ only by case.
    """
    names: dict[str, Loaded] = {}
    spellings: dict[str, tuple[Loaded, str]] = {}
    reported: set[str] = set()
    for loaded in mesh:
        name = loaded.config.router.name
        if name in names:
            at = names[name].positions.value_at(("router", "name"))
            message = f"another router has the name {name} at {at}"
            problems.add("error", loaded, ("router", "name"), message)
        names.setdefault(name, loaded)
        for vpn in loaded.config.msg_vpns:
            first, spelling = spellings.setdefault(vpn.casefold(), (loaded, vpn))
            if spelling == vpn or vpn in reported:
                continue
            reported.add(vpn)
            at = first.positions.key_at(("msg_vpns", spelling))
            problems.add_key(
                "warning",
                loaded,
                ("msg_vpns", vpn),
                f"differs only by case from message VPN {spelling} at {at}",
            )
    _check_directories(problems, mesh)


def _check_directories(problems: MeshProblems, mesh: Sequence[Loaded]) -> None:
    users: dict[PurePath, list[Loaded]] = {}
    for loaded in mesh:
        directory = PurePath(loaded.config.router.data_dir)
        others = users.setdefault(directory, [])
        neighbour = next((one for one in others if _may_be_neighbours(one, loaded)), None)
        if neighbour is not None:
            at = neighbour.positions.value_at(("router", "data_dir"))
            problems.add(
                "warning",
                loaded,
                ("router", "data_dir"),
                f"router {neighbour.config.router.name} has the directory {directory} too ({at});"
                " on one machine each router needs its own",
            )
        others.append(loaded)


def _may_be_neighbours(first: Loaded, other: Loaded) -> bool:
    """Return whether two routers can run on one machine: no port is bound by both."""
    theirs = {listener.address for listener in other.config.listeners if listener.enabled}
    for mine in (listener.address for listener in first.config.listeners if listener.enabled):
        for address in theirs:
            if mine.port and mine.port == address.port and _overlap(mine.host, address.host):
                return False
    hosts = _machines(first), _machines(other)
    return not (hosts[0] and hosts[1] and hosts[0].isdisjoint(hosts[1]))


def _overlap(host: str, other: str) -> bool:
    return host == other or {host, other} & _OF_ALL_ROUTERS != set()


def _machines(loaded: Loaded) -> set[str]:
    """Return the hosts that a router binds and that belong to one machine only."""
    return {
        listener.address.host
        for listener in loaded.config.listeners
        if listener.enabled
        and listener.address.host not in _OF_ALL_ROUTERS
        and not is_loopback(listener.address.host)
    }


_OF_ALL_ROUTERS = frozenset({"0.0.0.0", "::"})  # noqa: S104 - read, not bound
