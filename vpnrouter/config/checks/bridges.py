"""Checks the bridges of one message VPN, as far as one router's configuration shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.config.bridge import Bridge
from vpnrouter.config.checks.failures import check_failures
from vpnrouter.config.checks.message_vpns import (
    DIALECTS,
    FilterRules,
    check_exceptions,
    check_filters,
    clause_of,
)
from vpnrouter.config.problem import Path
from vpnrouter.config.problem_list import ProblemList
from vpnrouter.config.router import RouterConfig
from vpnrouter.errors import SelectorError, TopicError
from vpnrouter.settings.address import router_of
from vpnrouter.settings.bridge import (
    ClientCertRemoteAuthentication,
    RemoteMsgVpn,
    RemoteSubscription,
    TopicMapping,
)
from vpnrouter.settings.listener import server_certificate
from vpnrouter.settings.message_vpn import TlsServerCert
from vpnrouter.topics.grammar import Filter

if TYPE_CHECKING:
    from vpnrouter.topics.mapping import MappingRule


_ATTRACTING: Final = ("remote_subscriptions", "remote_msg_vpns")
_OTHER_DELIVERY: Final = "the other deliver_always_enabled"


def check_attraction(problems: ProblemList, path: Path, bridge: Bridge, rules: FilterRules) -> None:
    """Check the subscriptions and topic mappings of the bridge at `path`."""
    _check_subscriptions(problems, (*path, "remote_subscriptions"), bridge, rules)
    if bridge.topic_mapping:
        _check_mapping(problems, (*path, "topic_mapping"), bridge)
    attracts = bridge.remote_subscriptions or any(
        remote.queue_binding for remote in bridge.remote_msg_vpns
    )
    whole = problems.is_whole(path) and all(
        problems.is_whole((*path, key))
        for key in _ATTRACTING
        if problems.document.has((*path, key))
    )
    if attracts or not whole:
        return
    problems.key_warning(
        path, "attracts nothing: it has neither remote_subscriptions nor a queue_binding"
    )


def _is_exception(subscription: RemoteSubscription) -> bool:
    return subscription.topic.startswith("!")


def _check_subscriptions(
    problems: ProblemList, place: Path, bridge: Bridge, rules: FilterRules
) -> None:
    groups: dict[tuple[bool, str | None], list[tuple[Path, str]]] = {(False, None): []}
    for index, each in enumerate(bridge.remote_subscriptions):
        at = (*place, index)
        if _is_exception(each):
            _check_exception(problems, at, each)
        elif each.selector is not None:
            _check_selector(problems, (*at, "selector"), each.selector)
        # What one receiver gets is not covered by what all get, nor the other way round.
        key = (each.deliver_always_enabled, each.selector)
        groups.setdefault(key, []).append((_topic_path(problems, at), each.topic))
    seen: dict[Filter, tuple[Path, bool]] = {}
    for (always, _), texts in sorted(groups.items(), key=lambda group: group[0][0]):
        parsed = {filter_: at for at, filter_ in check_filters(problems, texts, rules)}
        for filter_, at in parsed.items():
            if filter_ not in seen:
                seen[filter_] = (at, always)
                continue
            other = problems.document.value_at(seen[filter_][0])
            with_ = "another selector" if seen[filter_][1] is always else _OTHER_DELIVERY
            problems.error(at, f"the filter stands at {other} with {with_}")
    check_exceptions(problems, [(at, filter_) for filter_, (at, _) in seen.items()])
    if problems.is_whole(place) and all(
        _is_exception(remote_subscription) for remote_subscription in bridge.remote_subscriptions
    ):
        for index in range(len(bridge.remote_subscriptions)):
            at = _topic_path(problems, (*place, index))
            problems.error(at, "an exception needs a filter beside it that attracts")


def _topic_path(problems: ProblemList, path: Path) -> Path:
    """Return where the filter is in the file: in the short form the item is the filter."""
    return (*path, "topic") if problems.document.has((*path, "topic")) else path


def _check_exception(problems: ProblemList, place: Path, subscription: RemoteSubscription) -> None:
    if subscription.deliver_always_enabled:
        problems.error((*place, "deliver_always_enabled"), "an exception (!) has no delivery")
    if subscription.selector is not None:
        problems.error((*place, "selector"), "an exception (!) has no selector")


def _check_selector(problems: ProblemList, place: Path, selector: str) -> None:
    # Imported late: most configurations hold no selector, and start-up time counts.
    from vpnrouter.selectors import parse_selector

    try:
        parse_selector(selector)
    except SelectorError as error:
        problems.error(place, str(error))


def _check_mapping(problems: ProblemList, place: Path, bridge: Bridge) -> None:
    # Imported late: most configurations hold no mapping, and start-up time counts.
    from vpnrouter.topics.mapping import directed

    dialect = DIALECTS[bridge.topic_syntax]
    rules: list[MappingRule] = []
    for index, configured in enumerate(bridge.topic_mapping):
        try:
            rule = _rule(configured, dialect)
            if configured.direction == "both":
                rule.inverse()
        except TopicError as error:
            problems.error((*place, index), f"{error}{clause_of(error)}")
            continue
        rules.append(rule)
    if len(rules) < len(bridge.topic_mapping):
        return
    try:
        directed(rules, [configured.direction for configured in bridge.topic_mapping])
    except TopicError as error:
        problems.error(place, f"{error}{clause_of(error)}")


def _rule(configured: TopicMapping, dialect: int) -> MappingRule:
    from vpnrouter.topics.mapping import add_prefix, parse_rule, strip_prefix

    if configured.add_prefix is not None:
        return add_prefix(configured.add_prefix, dialect)
    if configured.strip_prefix is not None:
        return strip_prefix(configured.strip_prefix, dialect)
    return parse_rule(configured.from_ or "", configured.to or "", dialect)


_BASIC: Final = "basic"


def check_bridges(problems: ProblemList, config: RouterConfig, msg_vpn: str) -> None:
    """Check all bridges of one message VPN."""
    vpn = config.msg_vpns[msg_vpn]
    problems.readable(
        ("msg_vpns", msg_vpn, "bridging", "tls_server_cert", "ca"), vpn.bridging.tls_server_cert.ca
    )
    sources: dict[tuple[str, str], Path] = {}
    for name, bridge in vpn.bridges.items():
        path = ("msg_vpns", msg_vpn, "bridges", name)
        rules = FilterRules(
            bridge.topic_syntax, vpn.max_topic_levels, vpn.max_topic_bytes, exceptions=True
        )
        check_attraction(problems, path, bridge, rules)
        _check_remotes(problems, path, bridge)
        _check_parking(problems, path, bridge)
        check_failures(problems, path, bridge, None)
        for index, entry in enumerate(bridge.dead_msg_queues):
            if entry.address is not None:
                problems.error(
                    (*path, "dead_msg_queues", index, "address"),
                    "is at a provider, which a connector has: a bridge has queues and topics here",
                )
        _check_authentication(
            problems, path, bridge, server_certificate(config.listeners) is not None
        )
        _check_proof(problems, path, bridge, vpn.bridging.tls_server_cert, config.router.name)
        for index, remote in enumerate(bridge.remote_msg_vpns):
            place = (*path, "remote_msg_vpns", index)
            if _is_itself(config, msg_vpn, remote):
                problems.error(place, f"leads back to message VPN {msg_vpn} of this router")
        for source in {
            (remote.router or remote.location, remote.name) for remote in bridge.remote_msg_vpns
        }:
            if source in sources:
                at = problems.document.key_at(sources[source])
                problems.key_warning(
                    path, f"the bridge at {at} takes from message VPN {source[1]} there as well"
                )
            sources[source] = path


def _check_remotes(problems: ProblemList, path: Path, bridge: Bridge) -> None:
    place = (*path, "remote_msg_vpns")
    if not bridge.remote_msg_vpns:
        if problems.is_whole(path) and (
            not problems.document.has(place) or problems.is_whole(place)
        ):
            _report_no_remotes(problems, path, bridge)
        return
    seen: dict[tuple[str, str], Path] = {}
    for index, remote in enumerate(bridge.remote_msg_vpns):
        key = (remote.name, remote.location)
        if key in seen:
            at = problems.document.value_at(seen[key])
            problems.error((*place, index), f"the same remote message VPN stands at {at}")
        seen.setdefault(key, (*place, index))
        if remote.password is not None and remote.client_username is None:
            _report_nameless(problems, (*place, index))
    if bridge.enabled and not any(remote.enabled for remote in bridge.remote_msg_vpns):
        problems.warning(place, "none is enabled, so the bridge stays down")


def _report_no_remotes(problems: ProblemList, path: Path, bridge: Bridge) -> None:
    """Warn of a bridge without remotes: it is created before them where both are created one by one, as the field's
    scripts do: it stays down, and says why in the field's words.
    """
    if bridge.enabled:
        problems.key_warning(
            path, "No remote message-vpns configured (remote_msg_vpns), so the bridge stays down"
        )


def _check_parking(problems: ProblemList, path: Path, bridge: Bridge) -> None:
    """Warn of keys for guaranteed messages that have no effect."""
    quota = (*path, "max_parked_msg_spool_usage")
    default = Bridge.model_fields["max_parked_msg_spool_usage"].default
    if bridge.on_reject == "park" or (bridge.reject_attempts and bridge.then == "park"):
        if not bridge.max_parked_msg_spool_usage:
            problems.warning(
                quota, "leaves no room to set anything aside: on_reject: park is block"
            )
    elif bridge.max_parked_msg_spool_usage != default:
        problems.warning(quota, "has no effect without on_reject: park")


def _check_authentication(
    problems: ProblemList, path: Path, bridge: Bridge, has_server: bool
) -> None:
    """Refuse what the field finds when the bridge starts."""
    schemes = {_scheme(bridge, remote) for remote in bridge.remote_msg_vpns}
    if _BASIC in schemes or bridge.remote_authentication.scheme == _BASIC:
        _check_basic(problems, path, bridge)
    own = bridge.remote_authentication.client_cert
    place = (*path, "remote_authentication")
    reported = False
    for index, remote in enumerate(bridge.remote_msg_vpns):
        at = (*path, "remote_msg_vpns", index)
        if _scheme(bridge, remote) == _BASIC:
            if remote.client_cert is not None:
                problems.warning((*at, "client_cert"), "has no effect with scheme basic")
            continue
        if remote.client_cert is not None:
            _check_certificate(problems, at, (*at, "client_cert"), remote.client_cert, has_server)
        elif not reported:
            reported = True
            from_bridge = remote.authentication_scheme is None
            report_at = place if from_bridge else at
            _check_certificate(problems, report_at, (*place, "client_cert"), own, has_server)
        if not remote.tls_enabled:
            problems.error(
                at,
                "Client-Certificate Authentication Scheme used but not all Remote Message VPNs use"
                " SSL (tls_enabled: true)",
            )


def _check_proof(
    problems: ProblemList, path: Path, bridge: Bridge, server_cert: TlsServerCert, own: str
) -> None:
    """Check that passwords go to verified names only, and that a remote known by name has to prove itself."""
    named = server_cert.validate_name_enabled or bool(server_cert.trusted_common_names)
    basic = bridge.remote_authentication.basic
    for index, remote in enumerate(bridge.remote_msg_vpns):
        at = (*path, "remote_msg_vpns", index)
        password = basic.password if remote.client_username is None else remote.password
        has_password = _scheme(bridge, remote) == _BASIC and password is not None
        if has_password and basic.mechanism == "plain" and not (remote.tls_enabled and named):
            problems.error(
                at,
                "mechanism plain shows the password, which needs tls_enabled here, and in"
                " tls_server_cert validate_name_enabled or trusted_common_names",
            )
        proves = has_password and basic.mechanism != "plain"
        if router_of(remote.location) not in {None, own} and not (
            proves or (remote.tls_enabled and named)
        ):
            problems.warning(
                (*at, "location"),
                "names a router that nothing would prove: it is not dialled without a password, or"
                " tls_enabled and a verified name",
            )


def _scheme(bridge: Bridge, remote: RemoteMsgVpn) -> str:
    """Return how the bridge logs in to the remote."""
    return remote.authentication_scheme or bridge.remote_authentication.scheme


def _check_basic(problems: ProblemList, path: Path, bridge: Bridge) -> None:
    place = (*path, "remote_authentication")
    basic = bridge.remote_authentication.basic
    # Only where it would be dialled: until then the name may be on its way.
    nameless = bridge.enabled and any(
        remote.enabled
        and remote.client_username is None
        and _scheme(bridge, remote) == _BASIC
        and problems.is_unwritten((*path, "remote_msg_vpns", index, "client_username"))
        for index, remote in enumerate(bridge.remote_msg_vpns)
    )
    parts = [path, place, (*place, "basic")]
    configured = [part for part in parts if problems.document.has(part)]
    if basic.client_username is None and nameless:
        if all(problems.is_whole(part) for part in configured):
            problems.key_error(
                configured[-1],
                "Basic Authentication Scheme used but Basic Client Username not configured",
            )
    elif basic.client_username is None and basic.password is not None:
        _report_nameless(problems, (*place, "basic"))


def _report_nameless(problems: ProblemList, place: Path) -> None:
    """Add an error about the password of the login at `place`, unless its username was told as wrong."""
    if problems.is_unwritten((*place, "client_username")):
        problems.error((*place, "password"), "needs client_username beside it")


def _check_certificate(
    problems: ProblemList,
    report_at: Path,
    place: Path,
    certificate: ClientCertRemoteAuthentication,
    has_server: bool,
) -> None:
    if has_server and certificate.certificate is None and certificate.key is None:
        # The bridge shows the router's own certificate.
        return
    whole = problems.is_whole(place) or not problems.document.has(place)
    if whole and (certificate.certificate is None or certificate.key is None):
        problems.error(
            report_at,
            "Authentication Scheme is Client-Certificate but no certificate is configured"
            " (client_cert: {certificate: …, key: …})",
        )
    problems.readable((*place, "certificate"), certificate.certificate)
    problems.readable((*place, "key"), certificate.key)


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
