"""Checks that each half of a bridge fits the router that it leads to, and the half that comes back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from vpnrouter.bridges.remote_settings import BridgeEnds, incompatible
from vpnrouter.config.mesh.queues import check_bound_queue
from vpnrouter.config.mesh.remotes import ConfiguredRemote, Routers, link_listeners, listener_at
from vpnrouter.config.mesh.topics import account_of, login, scheme
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.config.problem import Path
from vpnrouter.config.problem_list import MeshProblems
from vpnrouter.config.router import Loaded
from vpnrouter.core.login import SCRYPT
from vpnrouter.settings.client_username import ClientUsername
from vpnrouter.settings.schema import Secret


def check_half(
    problems: MeshProblems, configured: ConfiguredRemote, peer: Loaded, routers: Routers
) -> bool:
    """Report what keeps a remote from the router that it means. Returns whether nothing does."""
    before = problems.errors()
    loaded, remote, path = configured.loaded, configured.remote, configured.path
    router = peer.config.router.name
    listeners = link_listeners(peer.config)
    if not listeners:
        at = peer.positions.key_at(("listeners",))
        problems.add("error", loaded, path, f"router {router} has no link listener ({at})")
    _check_location(problems, configured, peer, routers)
    vpn = peer.config.msg_vpns.get(remote.name)
    at = peer.positions.key_at(("msg_vpns", remote.name))
    if vpn is None:
        near = [name for name in peer.config.msg_vpns if name.casefold() == remote.name.casefold()]
        hint = f", but {near[0]}" if near else ""
        if near:
            at = peer.positions.key_at(("msg_vpns", near[0]))
        message = f"router {router} has no message VPN {remote.name}{hint} ({at})"
        problems.add("error", loaded, (*path, "name"), message)
        return False
    where = f"message VPN {remote.name} of router {router}"
    if not vpn.enabled:
        problems.add("error", loaded, (*path, "name"), f"{where} is disabled ({at})")
    vpn_path = ("msg_vpns", remote.name)
    _check_login(problems, configured, peer, vpn, where, vpn_path)
    check_bound_queue(problems, configured, peer, vpn, where)
    return problems.errors() == before


def _check_location(
    problems: MeshProblems, configured: ConfiguredRemote, peer: Loaded, routers: Routers
) -> None:
    path, loaded = (*configured.path, "location"), configured.loaded
    router = peer.config.router.name
    other = routers.listening_instead(configured)
    if other is not None:
        report_wrong_router(problems, configured, other)
        return
    listener = listener_at(peer.config, configured.remote.address)
    if listener is None:
        return
    at = peer.positions.value_at(("listeners", peer.config.listeners.index(listener)))
    if (listener.protocol == "links") != configured.remote.tls_enabled:
        speaks = "TLS" if listener.protocol == "links" else "no TLS"
        problems.add("error", loaded, path, f"router {router} speaks {speaks} there ({at})")
    elif (
        scheme(configured) == "client-certificate"
        and listener.tls is not None
        and listener.tls.client_ca is None
    ):
        problems.add(
            "error",
            loaded,
            path,
            f"router {router} asks for no client certificate there, it has no tls.client_ca ({at})",
        )


def report_wrong_router(
    problems: MeshProblems, configured: ConfiguredRemote, other: Loaded
) -> None:
    """Report a remote that names one router and leads to another."""
    router = other.config.router.name
    at = other.positions.key_at(("router", "name"))
    problems.add(
        "error",
        configured.loaded,
        configured.path,
        f"names router {configured.router_name}, but router {router} listens at {configured.remote.address} ({at})",
    )


def _check_login(
    problems: MeshProblems,
    configured: ConfiguredRemote,
    peer: Loaded,
    vpn: MsgVpn,
    where: str,
    vpn_path: Path,
) -> None:
    loaded = configured.loaded
    if scheme(configured) == "client-certificate":
        if not vpn.authentication.client_cert.enabled:
            at = peer.positions.key_at((*vpn_path, "authentication", "client_cert", "enabled"))
            message = f"{where} takes no client certificates ({at})"
            problems.add("error", loaded, configured.path, message)
        return
    path, username, password = login(configured)
    if username is None:
        return
    account = account_of(vpn, username)
    if account is None:
        at = peer.positions.key_at((*vpn_path, "client_usernames"))
        problems.add("error", loaded, path, f"{where} has no client username {username} ({at})")
        return
    at = peer.positions.key_at((*vpn_path, "client_usernames", username))
    if not account.enabled:
        message = f"client username {username} of {where} is disabled ({at})"
        problems.add("error", loaded, path, message)
    profile = vpn.client_profiles.get(account.client_profile)
    if profile is not None and not profile.allow_bridge_connections_enabled:
        there = peer.positions.key_at((*vpn_path, "client_profiles", account.client_profile))
        problems.add(
            "error",
            loaded,
            path,
            f"client username {username} of {where} may not open bridges: client profile"
            f" {account.client_profile} lacks allow_bridge_connections_enabled: true ({there})",
        )
        return
    subject = f"client username {username} of {where}"
    why = _misfit(vpn, account, password)
    if why:
        problems.add("error", loaded, path, f"{why.format(subject=subject)} ({at})")


def _misfit(vpn: MsgVpn, account: ClientUsername, password: Secret | None) -> str:
    """Return why a login of a bridge would be refused for its password, "" where it would not.

    A bridge that has a password proves it, and has it proved to it, also where basic authentication is off.
    """
    basic = vpn.authentication.basic.enabled
    if not basic and vpn.authentication.client_cert.enabled:
        return "{subject} logs in by client certificate only"
    stored = account.password
    if password is None:
        if not (basic and account.password_required):
            return ""
        return "{subject} has no password" if stored is None else "{subject} needs a password"
    if stored is None:
        return "{subject} has no password"
    if stored.reveal().startswith(SCRYPT):
        return "the password of {subject} is an scrypt hash, by which no bridge can prove its own: use --scram"
    # Hashes are left alone: a mesh of hundreds would take minutes.
    wrong = not stored.is_hash and not stored.verify(password.reveal().encode())
    return "the password is not that of {subject}" if wrong else ""


def check_pairs(problems: MeshProblems, fitting: Sequence[tuple[ConfiguredRemote, Loaded]]) -> None:
    """Report two message VPNs with a bridge each way that cannot share one connection."""
    ways: dict[tuple[str, str, str, str], list[tuple[ConfiguredRemote, BridgeEnds]]] = defaultdict(
        list
    )
    for place, peer in fitting:
        router, remote_router = place.loaded.config.router.name, peer.config.router.name
        tls = place.remote.tls_enabled
        # A router that the remote does not name is learned when the connection first stands.
        half = BridgeEnds(router, place.msg_vpn, remote_router, place.remote.name, tls)
        ways[router, place.msg_vpn, remote_router, place.remote.name].append((place, half))
    for (router, vpn, remote_router, remote_vpn), there in ways.items():
        if (router, vpn) > (remote_router, remote_vpn):
            continue
        back = ways.get((remote_router, remote_vpn, router, vpn))
        if not back or any(not incompatible(a, b) for _, a in there for _, b in back):
            continue
        (place, half), (other, other_half) = there[0], back[0]
        at = other.loaded.positions.key_at(other.bridge_path)
        why = "; ".join(incompatible(half, other_half))
        problems.add_key(
            "error",
            place.loaded,
            place.bridge_path,
            f"cannot share one connection with the bridge {other.bridge_name} that leads back"
            f" ({at}): {why}; two message VPNs have one connection between them",
        )
