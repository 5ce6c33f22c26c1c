"""Checks of one message VPN: its names refer to something, its filters parse, its rules can
hold.
"""

from vpnrouter.config.acl_profile import AclProfile
from vpnrouter.config.endpoint import Endpoint
from vpnrouter.config.filters import FilterRules, check_filters
from vpnrouter.config.findings import Findings
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.config.problem import Path
from vpnrouter.config.queue import Queue

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
    for name, queue in vpn.queues.items():
        _check_queue(found, (*path, "queues", name), queue, vpn)
        _check_endpoint(found, path, (*path, "queues", name), queue)
    for name, endpoint in vpn.topic_endpoints.items():
        _check_endpoint(found, path, (*path, "topic_endpoints", name), endpoint)


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


def _check_endpoint(found: Findings, vpn_path: Path, path: Path, endpoint: Endpoint) -> None:
    """What holds for queues and topic endpoints alike."""
    delay = endpoint.redelivery.delay
    if delay.initial_interval > delay.max_interval:
        found.error(
            (*path, "redelivery", "delay"),
            f"initial_interval {delay.initial_interval} is above max_interval {delay.max_interval}",
        )
    if endpoint.owner is not None and not found.is_written(
        (*vpn_path, "client_usernames", endpoint.owner)
    ):
        found.warning((*path, "owner"), f"there is no client username {endpoint.owner}")
    if endpoint.max_ttl and not endpoint.respect_ttl_enabled:
        found.warning((*path, "max_ttl"), "has no effect without respect_ttl_enabled: true")


def _check_queue(found: Findings, path: Path, queue: Queue, vpn: MsgVpn) -> None:
    rules = FilterRules(
        queue.topic_syntax, vpn.max_topic_levels, vpn.max_topic_bytes, exceptions=True
    )
    texts = [
        ((*path, "subscriptions", index), text) for index, text in enumerate(queue.subscriptions)
    ]
    check_filters(found, texts, rules)
    if queue.partition.count and queue.access_type == "exclusive":
        found.error((*path, "partition", "count"), "partitions need access_type: non-exclusive")
    if queue.reject_low_priority_msg.enabled and (
        queue.reject_msg_to_sender_on_discard_behavior == "never"
    ):
        found.error(
            (*path, "reject_low_priority_msg", "enabled"),
            "needs reject_msg_to_sender_on_discard_behavior other than never",
        )
    spool = (*path, "max_msg_spool_usage")
    if queue.max_msg_spool_usage > vpn.max_msg_spool_usage and found.is_written(spool):
        found.warning(
            spool,
            f"{queue.max_msg_spool_usage} MB is more than the message VPN's"
            f" {vpn.max_msg_spool_usage} MB",
        )
