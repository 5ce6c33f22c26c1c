"""Checks over several routers' configurations: do the two halves of each bridge fit?

A remote that none of the files describes is left alone.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from vpnrouter.config.bridge import Bridge, RemoteMsgVpn
from vpnrouter.config.findings import Findings
from vpnrouter.config.load import Loaded
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.config.problem import Path, Problem
from vpnrouter.config.router import RouterConfig
from vpnrouter.config.secret import Secret

_LINK: Final = frozenset({"link", "links"})


class _Place(NamedTuple):
    """One remote of one bridge: the configuration that holds it, its path, and what it is."""

    config: RouterConfig
    path: Path
    bridge: Bridge
    remote: RemoteMsgVpn


def check_mesh(mesh: Sequence[Loaded]) -> list[Problem]:
    """All problems that only show when the configurations are seen together."""
    problems: list[Problem] = []
    by_name: dict[str, Loaded] = {}
    for loaded in mesh:
        found = Findings(loaded.positions, loaded.positions)
        name = loaded.config.router.name
        if name in by_name:
            other = by_name[name].positions.value_at(("router", "name"))
            found.error(("router", "name"), f"another router has the name {name} at {other}")
        by_name.setdefault(name, loaded)
        problems.extend(found.problems)
    for loaded in mesh:
        found = Findings(loaded.positions, loaded.positions)
        for place in _remotes(loaded.config):
            peer = _peer(place, by_name, mesh)
            if peer is not None:
                _check_halves(found, place, peer)
        problems.extend(found.problems)
    return problems


def _remotes(config: RouterConfig) -> list[_Place]:
    """Every enabled remote of every enabled bridge."""
    return [
        _Place(
            config,
            ("msg_vpns", vpn_name, "bridges", name, "remote_msg_vpns", index),
            bridge,
            remote,
        )
        for vpn_name, vpn in config.msg_vpns.items()
        for name, bridge in vpn.bridges.items()
        for index, remote in enumerate(bridge.remote_msg_vpns)
        if bridge.enabled and remote.enabled
    ]


def _peer(place: _Place, by_name: dict[str, Loaded], mesh: Sequence[Loaded]) -> RouterConfig | None:
    """The router that a remote means: by its name, by `v:ROUTER`, else by where it listens."""
    remote = place.remote
    name = remote.router
    if name is None and remote.address is None:
        name = remote.location.removeprefix("v:")
    if name is not None:
        return by_name[name].config if name in by_name else None
    found = [loaded.config for loaded in mesh if _listens(loaded.config, remote) is not None]
    # One loopback address may be meant on several machines: then the files do not tell which.
    return found[0] if len(found) == 1 else None


def _listens(config: RouterConfig, remote: RemoteMsgVpn) -> str | None:
    """The protocol of the link listener that is bound to exactly the remote's address."""
    for listener in config.listeners:
        if listener.enabled and listener.protocol in _LINK and listener.address == remote.address:
            return listener.protocol
    return None


def _check_halves(found: Findings, place: _Place, peer: RouterConfig) -> None:
    remote, path = place.remote, place.path
    router = peer.router.name
    if not any(one.enabled and one.protocol in _LINK for one in peer.listeners):
        found.error(path, f"router {router} has no link listener")
    protocol = _listens(peer, remote)
    if protocol is not None and (protocol == "links") != remote.tls_enabled:
        speaks = "TLS" if protocol == "links" else "no TLS"
        found.error((*path, "location"), f"router {router} speaks {speaks} there")
    vpn = peer.msg_vpns.get(remote.name)
    if vpn is None:
        found.error((*path, "name"), f"router {router} has no message VPN {remote.name}")
        return
    if not vpn.enabled:
        found.warning((*path, "name"), f"message VPN {remote.name} of router {router} is disabled")
    _check_login(found, place, vpn, f"message VPN {remote.name} of router {router}")
    _check_queue(found, place, vpn, f"message VPN {remote.name} of router {router}")


def _check_login(found: Findings, place: _Place, vpn: MsgVpn, where: str) -> None:
    if place.bridge.remote_authentication.scheme != "basic":
        return
    path, username, password = _login(place)
    if username is None:
        return
    account = vpn.client_usernames.get(username)
    if account is None:
        if vpn.authentication.basic.enabled:
            found.error(path, f"{where} has no client username {username}")
            return
        account = vpn.client_usernames["default"]
    if not account.enabled:
        found.error(path, f"client username {username} of {where} is disabled")
    profile = vpn.client_profiles.get(account.client_profile)
    if profile is not None and not profile.allow_bridge_connections_enabled:
        found.error(
            path,
            f"client username {username} of {where} may not open bridges: client profile"
            f" {account.client_profile} lacks allow_bridge_connections_enabled: true",
        )
    if not vpn.authentication.basic.enabled:
        return
    if account.password is None:
        found.error(path, f"client username {username} of {where} has no password")
    elif password is None:
        found.error(path, f"client username {username} of {where} needs a password")
    elif not account.password.is_hash and not account.password.verify(password.reveal().encode()):
        # Hashes are left alone: a mesh of hundreds would take minutes.
        found.error(path, f"the password is not that of client username {username} of {where}")


def _login(place: _Place) -> tuple[Path, str | None, Secret | None]:
    """What the bridge logs in with, and where that stands."""
    remote = place.remote
    if remote.client_username is not None:
        return (*place.path, "client_username"), remote.client_username, remote.password
    basic = place.bridge.remote_authentication.basic
    path = (*place.path[:-2], "remote_authentication", "basic", "client_username")
    return path, basic.client_username, basic.password


def _check_queue(found: Findings, place: _Place, vpn: MsgVpn, where: str) -> None:
    name = place.remote.queue_binding
    if name is None:
        return
    path = (*place.path, "queue_binding")
    queue = vpn.queues.get(name)
    if queue is None:
        found.error(path, f"{where} has no queue {name}")
    elif queue.access_type != "exclusive":
        found.error(path, f"queue {name} of {where} is not exclusive")
    elif queue.permission in ("no-access", "read-only") and queue.owner != _login(place)[1]:
        found.error(path, f"queue {name} of {where} does not let the bridge consume")
