"""Checks of the bridges of one message VPN, as far as one router's configuration can tell."""

from typing import Final

from vpnrouter.config.bridge import Bridge, RemoteMsgVpn
from vpnrouter.config.filters import FilterRules, check_filters
from vpnrouter.config.findings import Findings
from vpnrouter.config.problem import Path
from vpnrouter.config.router import RouterConfig

_ATTRACTING: Final = ("remote_subscriptions", "remote_msg_vpns")


def check_bridges(found: Findings, config: RouterConfig, msg_vpn: str) -> None:
    """Check all bridges of one message VPN."""
    vpn = config.msg_vpns[msg_vpn]
    found.readable(
        ("msg_vpns", msg_vpn, "bridging", "tls_server_cert", "ca"), vpn.bridging.tls_server_cert.ca
    )
    sources: dict[tuple[str, str], Path] = {}
    for name, bridge in vpn.bridges.items():
        path = ("msg_vpns", msg_vpn, "bridges", name)
        rules = FilterRules(bridge.topic_syntax, vpn.max_topic_levels, vpn.max_topic_bytes)
        _check_subscriptions(found, path, bridge, rules)
        _check_remotes(found, path, bridge)
        _check_authentication(found, path, bridge)
        for index, remote in enumerate(bridge.remote_msg_vpns):
            place = (*path, "remote_msg_vpns", index)
            if _is_itself(config, msg_vpn, remote):
                found.error(place, f"leads back to message VPN {msg_vpn} of this router")
        for source in {
            (remote.router or remote.location, remote.name) for remote in bridge.remote_msg_vpns
        }:
            if source in sources:
                at = found.document.key_at(sources[source])
                found.key_warning(
                    path, f"the bridge at {at} takes from message VPN {source[1]} there as well"
                )
            sources[source] = path


def _check_subscriptions(found: Findings, path: Path, bridge: Bridge, rules: FilterRules) -> None:
    place = (*path, "remote_subscriptions")
    parsed = []
    for always in (False, True):
        # What one receiver gets is not covered by what all get, nor the other way round.
        texts = [
            (_topic_path(found, (*place, index)), subscription.topic)
            for index, subscription in enumerate(bridge.remote_subscriptions)
            if subscription.deliver_always_enabled is always
        ]
        parsed.append({filter_: at for at, filter_ in check_filters(found, texts, rules)})
    to_one, to_all = parsed
    for filter_, at in to_all.items():
        if filter_ in to_one:
            other = found.document.value_at(to_one[filter_])
            found.error(at, f"the filter stands at {other} with the other deliver_always_enabled")
    attracts = bridge.remote_subscriptions or any(
        remote.queue_binding for remote in bridge.remote_msg_vpns
    )
    if (
        not attracts
        and found.is_whole(path)
        and all(
            found.is_whole((*path, key)) for key in _ATTRACTING if found.document.has((*path, key))
        )
    ):
        found.key_warning(
            path, "attracts nothing: it has neither remote_subscriptions nor a queue_binding"
        )


def _topic_path(found: Findings, path: Path) -> Path:
    """Where the filter stands: in the short form the item is the filter."""
    return (*path, "topic") if found.document.has((*path, "topic")) else path


def _check_remotes(found: Findings, path: Path, bridge: Bridge) -> None:
    place = (*path, "remote_msg_vpns")
    if not bridge.remote_msg_vpns:
        if found.is_whole(path) and (not found.document.has(place) or found.is_whole(place)):
            found.key_error(path, "needs at least one remote message VPN (remote_msg_vpns)")
        return
    seen: dict[tuple[str, str], Path] = {}
    for index, remote in enumerate(bridge.remote_msg_vpns):
        key = (remote.name, remote.location)
        if key in seen:
            at = found.document.value_at(seen[key])
            found.error((*place, index), f"the same remote message VPN stands at {at}")
        seen.setdefault(key, (*place, index))
        if remote.password is not None and remote.client_username is None:
            found.error((*place, index, "password"), "needs client_username beside it")
    if bridge.enabled and not any(remote.enabled for remote in bridge.remote_msg_vpns):
        found.warning(place, "none is enabled, so the bridge stays down")


def _check_authentication(found: Findings, path: Path, bridge: Bridge) -> None:
    """The field finds these when the bridge starts; here the configuration is refused."""
    place = (*path, "remote_authentication")
    authentication = bridge.remote_authentication
    if authentication.scheme == "basic":
        nameless = any(remote.client_username is None for remote in bridge.remote_msg_vpns)
        parts = [path, place, (*place, "basic")]
        written = [part for part in parts if found.document.has(part)]
        if authentication.basic.client_username is None and nameless:
            if all(found.is_whole(part) for part in written):
                found.key_error(
                    written[-1],
                    "Basic Authentication Scheme used but Basic Client Username not configured",
                )
        elif (
            authentication.basic.client_username is None
            and authentication.basic.password is not None
        ):
            found.error((*place, "basic", "password"), "needs client_username beside it")
        return
    certificate = authentication.client_cert
    if certificate.certificate is None or certificate.key is None:
        found.error(
            place,
            "Authentication Scheme is Client-Certificate but no certificate is configured"
            " (client_cert: {certificate: …, key: …})",
        )
    found.readable((*place, "client_cert", "certificate"), certificate.certificate)
    found.readable((*place, "client_cert", "key"), certificate.key)
    for index, remote in enumerate(bridge.remote_msg_vpns):
        if not remote.tls_enabled:
            found.error(
                (*path, "remote_msg_vpns", index),
                "Client-Certificate Authentication Scheme used but not all Remote Message VPNs use"
                " SSL (tls_enabled: true)",
            )


def _is_itself(config: RouterConfig, msg_vpn: str, remote: RemoteMsgVpn) -> bool:
    if remote.name != msg_vpn:
        return False
    if remote.router is not None:
        return remote.router == config.router.name
    address = remote.address
    if address is None:
        return remote.location == f"v:{config.router.name}"
    return any(
        listener.protocol in ("link", "links") and listener.address == address
        for listener in config.listeners
    )
