"""Checks of one message VPN: its names refer to something, its filters parse, its rules can
hold.
"""

from vpnrouter.config.acl_profile import AclProfile
from vpnrouter.config.check_endpoints import check_endpoints
from vpnrouter.config.client_profile import ClientProfile
from vpnrouter.config.filters import DIALECTS, FilterRules, check_filters
from vpnrouter.config.findings import Findings
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.config.problem import Path
from vpnrouter.errors import TopicError
from vpnrouter.topics.algebra import matches
from vpnrouter.topics.grammar import parse_filter

BUILT_IN = "default"


def check_msg_vpn(found: Findings, path: Path, vpn: MsgVpn) -> None:
    """Check one message VPN, its bridges left out."""
    found.readable((*path, "bridging", "tls_server_cert", "crl"), vpn.bridging.tls_server_cert.crl)
    for name, account in vpn.client_usernames.items():
        place = (*path, "client_usernames", name)
        for kind, wanted in (
            ("client_profile", account.client_profile),
            ("acl_profile", account.acl_profile),
        ):
            if wanted != BUILT_IN and not found.is_written((*path, f"{kind}s", wanted)):
                what = "client profile" if kind == "client_profile" else "ACL profile"
                found.error((*place, kind), f"there is no {what} {wanted}")
    for name, profile in vpn.acl_profiles.items():
        _check_acl_profile(found, (*path, "acl_profiles", name), profile, vpn)
    _check_queue_names(found, path, vpn)
    for name, client_profile in vpn.client_profiles.items():
        _check_client_profile(found, (*path, "client_profiles", name), client_profile)
    check_endpoints(found, path, vpn)


def _check_client_profile(found: Findings, path: Path, profile: ClientProfile) -> None:
    if profile.end_to_end_bridge is not None and not profile.allow_guaranteed_msg_send_enabled:
        found.warning(
            (*path, "end_to_end_bridge"),
            "has no effect with allow_guaranteed_msg_send_enabled: false",
        )


def _check_acl_profile(found: Findings, path: Path, profile: AclProfile, vpn: MsgVpn) -> None:
    _check_networks(
        found, (*path, "client_connect", "exceptions"), profile.client_connect.exceptions
    )
    for group, rule in (
        ("publish_topic", profile.publish_topic),
        ("subscribe_topic", profile.subscribe_topic),
        ("subscribe_share_name", profile.subscribe_share_name),
    ):
        place = (*path, group, "exceptions")
        rules = FilterRules(rule.topic_syntax, vpn.max_topic_levels, vpn.max_topic_bytes)
        check_filters(
            found, [((*place, index), text) for index, text in enumerate(rule.exceptions)], rules
        )


def _check_queue_names(found: Findings, path: Path, vpn: MsgVpn) -> None:
    """Warn of wildcards behind `$queue/` that let clients publish to queues that are closed to them."""
    closed = {
        name: queue
        for name, queue in vpn.queues.items()
        if queue.permission in ("no-access", "read-only")
    }
    for name, profile in vpn.acl_profiles.items():
        rule = profile.publish_topic
        if not closed or rule.default_action == "allow":
            continue
        users = [key for key, one in vpn.client_usernames.items() if one.acl_profile == name]
        for index, text in enumerate(rule.exceptions):
            try:
                filter_ = parse_filter(text, DIALECTS[rule.topic_syntax])
            except TopicError:
                continue
            if filter_.literal or filter_.levels[0] != "$queue":
                continue
            for queue_name, queue in closed.items():
                strangers = [user for user in users if user != queue.owner]
                if strangers and matches(filter_, f"$queue/{queue_name}"):
                    found.warning(
                        (*path, "acl_profiles", name, "publish_topic", "exceptions", index),
                        f"lets client username {strangers[0]} fill queue {queue_name}, which is"
                        f" {queue.permission} to it; name the queues that are meant",
                    )
                    break


def _check_networks(found: Findings, path: Path, networks: tuple[str, ...]) -> None:
    if not networks:
        return
    # Imported late: most configurations name no network, and start-up time counts.
    import ipaddress

    seen: dict[object, Path] = {}
    for index, text in enumerate(networks):
        place = (*path, index)
        try:
            network = ipaddress.ip_network(text)
        except ValueError:
            found.error(place, _network_reason(text))
            continue
        if network in seen:
            found.warning(
                place, f"the same network stands at {found.document.value_at(seen[network])}"
            )
        seen.setdefault(network, place)


def _network_reason(text: str) -> str:
    import ipaddress

    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return "must be an IPv4 or IPv6 network (CIDR), for example 192.0.2.0/24 or 2001:db8::/32"
    return f"has bits set behind its prefix; the network is {network}"
