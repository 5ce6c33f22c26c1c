"""Checks one message VPN: references to names, filters, ACL exceptions, endpoints and trace filters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from vpnrouter import limits
from vpnrouter.config.msg_vpn import MsgVpn
from vpnrouter.config.problem import Path
from vpnrouter.config.problem_list import ProblemList
from vpnrouter.config.router import RouterConfig
from vpnrouter.errors import TopicError
from vpnrouter.settings.acl_profile import AclProfile
from vpnrouter.settings.client_profile import ClientProfile
from vpnrouter.settings.client_username import ClientUsername
from vpnrouter.settings.endpoint import Endpoint, Queue, ReplayLog, SessionQueue, TopicEndpoint
from vpnrouter.settings.trace import TraceFilter, Upload
from vpnrouter.topics.algebra import covers, intersects, matches
from vpnrouter.topics.grammar import LITERAL, MQTT, SMF, Filter, parse_filter

DIALECTS: Final = {"smf": SMF, "mqtt": MQTT}


class FilterRules(NamedTuple):
    """What filters of one list may be; `exceptions` says that a leading `!` marks an exception
    here.
    """

    syntax: str
    max_levels: int = limits.TOPIC_LEVELS
    max_bytes: int = limits.TOPIC_BYTES
    exceptions: bool = False


def check_filters(
    problems: ProblemList, texts: Sequence[tuple[Path, str]], rules: FilterRules
) -> list[tuple[Path, Filter]]:
    """Parse each filter; report those that do not parse, are there twice or add nothing.

    Returns the filters that parse, each with its path.
    """
    parsed: list[tuple[Path, Filter]] = []
    for path, text in texts:
        try:
            parsed.append(
                (
                    path,
                    parse_filter(
                        text,
                        DIALECTS[rules.syntax],
                        max_levels=rules.max_levels,
                        max_bytes=rules.max_bytes,
                        exceptions=rules.exceptions,
                    ),
                )
            )
        except TopicError as error:
            problems.error(path, f"{error}{clause_of(error)}{_other_dialect(text, rules)}")
            continue
        if _is_plain_share(parsed[-1][1]) and rules.exceptions:
            problems.error(
                path,
                "$share is a plain level with topic_syntax: smf, and shares nothing:"
                " write #share/GROUP/FILTER, or topic_syntax: mqtt",
            )
        check_dialect(problems, path, parsed[-1][1])
        if text.startswith("!") and not rules.exceptions:
            problems.warning(
                path, "a leading ! is literal here; it marks an exception on queues and bridges"
            )
    _report_overlaps(problems, parsed)
    return parsed


def _is_plain_share(filter_: Filter) -> bool:
    """Return whether a filter in SMF begins as shared ones do in MQTT."""
    return filter_.dialect == SMF and len(filter_.levels) > 1 and filter_.levels[0] == "$share"


_WILDCARDS: Final = {SMF: ("smf", "* and >"), MQTT: ("mqtt", "+ and #")}


def check_dialect(problems: ProblemList, path: Path, filter_: Filter) -> None:
    """Warn of a level that is a wildcard in the other dialect, and text in this one."""
    one, rest = ("+", "#") if filter_.dialect == SMF else ("*", ">")
    last = len(filter_.levels) - 1
    for number, level in enumerate(filter_.levels):
        wild = level == one or (level == rest and number == last)
        if wild and filter_.kinds[number] == LITERAL:
            name, wildcards = _WILDCARDS[filter_.dialect]
            problems.warning(
                path,
                f"{level} is no wildcard here, only a topic with this very level matches:"
                f" {filter_.original} is read as topic_syntax: {name}, with {wildcards}",
            )
            return


def check_exceptions(problems: ProblemList, parsed: Sequence[tuple[Path, Filter]]) -> None:
    """Warn of exceptions that except nothing, and of filters of which an exception leaves nothing."""
    exceptions = [(path, filter_) for path, filter_ in parsed if filter_.exception]
    others = [(path, filter_) for path, filter_ in parsed if not filter_.exception]
    problems.filter_pairs -= len(exceptions) * len(others)
    if problems.filter_pairs < 0 or not others:
        return
    for path, exception in exceptions:
        if not any(intersects(exception, filter_) for _, filter_ in others):
            problems.warning(path, "excepts nothing: no filter beside it attracts such topics")
        for place, filter_ in others:
            if covers(exception, filter_):
                at = problems.document.value_at(path)
                problems.warning(
                    place, f"attracts nothing: {exception.original} at {at} excepts it"
                )


def clause_of(error: TopicError) -> str:
    """Return the rule of docs/topics.md that is broken, as it stands behind a message."""
    return f" ({error.clause})" if error.clause else ""


def _other_dialect(text: str, rules: FilterRules) -> str:
    """Return a hint where the other dialect takes the filter."""
    other = "mqtt" if rules.syntax == "smf" else "smf"
    try:
        parse_filter(text, DIALECTS[other], exceptions=rules.exceptions)
    except TopicError:
        return ""
    return f"; with topic_syntax: {other} it would be a filter"


def _report_overlaps(problems: ProblemList, parsed: Sequence[tuple[Path, Filter]]) -> None:
    first: dict[Filter, Path] = {}
    for path, filter_ in parsed:
        if filter_ in first:
            problems.warning(
                path, f"the same filter stands at {problems.document.value_at(first[filter_])}"
            )
        else:
            first[filter_] = path
    problems.filter_pairs -= len(first) * len(first)
    if problems.filter_pairs < 0:
        return
    for filter_, path in first.items():
        for other, place in first.items():
            if other is not filter_ and _same_purpose(other, filter_) and covers(other, filter_):
                at = problems.document.value_at(place)
                problems.warning(path, f"adds nothing: {other.original} at {at} covers it")
                break


def _same_purpose(a: Filter, b: Filter) -> bool:
    return a.share == b.share and a.noexport == b.noexport and a.exception == b.exception


def check_trace(problems: ProblemList, config: RouterConfig) -> None:
    """Report filters that do not parse, match nothing, or are never used, and half of a pair of keys."""
    trace = config.trace
    if trace is None:
        return
    names: dict[str, int] = {}
    whole = ""
    _check_upload(problems, trace.upload)
    for index, one in enumerate(trace.filters):
        path: Path = ("trace", "filters", index)
        name = one.trace_filter_name
        if name in names:
            problems.error(
                (*path, "trace_filter_name"),
                f"the filter at index {names[name]} is named {name} too",
            )
        names.setdefault(name, index)
        _check_filter(problems, path, one)
        if not one.enabled:
            continue
        if whole:
            problems.warning(
                (*path, "trace_filter_name"), f"never asked: {whole} before it fits every message"
            )
        elif not (one.subscriptions or one.msg_vpns or one.client_usernames or one.client_names):
            whole = name


def _check_upload(problems: ProblemList, upload: Upload | None) -> None:
    if upload is None or not upload.url.startswith("s3:"):
        return
    given = {"access_key": upload.access_key, "secret_key": upload.secret_key}
    missing = [name for name, secret in given.items() if secret is None]
    if len(missing) == 1:
        path: Path = ("trace", "upload", missing[0])
        problems.error(path, "access_key and secret_key belong together")


def _check_filter(problems: ProblemList, path: Path, trace_filter: TraceFilter) -> None:
    texts = [
        ((*path, "subscriptions", index), text)
        for index, text in enumerate(trace_filter.subscriptions)
    ]
    for place, filter_ in check_filters(problems, texts, FilterRules(trace_filter.topic_syntax)):
        if filter_.share:
            problems.error(place, "a trace filter looks at topics, which no share takes part in")
    for index, vpn in enumerate(trace_filter.msg_vpns):
        if not problems.is_configured(("msg_vpns", vpn)):
            problems.error((*path, "msg_vpns", index), f"there is no message VPN {vpn}")
    for index, text in enumerate(trace_filter.client_names):
        if "*" in text[:-1]:
            problems.warning(
                (*path, "client_names", index), "a * that is not at the end is a letter like others"
            )


DEAD_MSG_QUEUE: Final = "#DEAD_MSG_QUEUE"
"""The dead message queue of whoever names none; that it does not exist is nothing to tell."""


def check_endpoints(problems: ProblemList, path: Path, vpn: MsgVpn) -> None:
    """Check all endpoints of one message VPN."""
    for name, queue in vpn.queues.items():
        _check_queue(problems, (*path, "queues", name), queue, vpn)
        _check_endpoint(problems, path, (*path, "queues", name), queue)
        _check_quota(problems, (*path, "queues", name, "max_msg_spool_usage"), queue, vpn)
    _check_reserved_names(problems, path, vpn)
    for name, endpoint in vpn.topic_endpoints.items():
        place = (*path, "topic_endpoints", name)
        _check_endpoint(problems, path, place, endpoint)
        _check_low_priority(problems, place, endpoint)
        _check_quota(problems, (*place, "max_spool_usage"), endpoint, vpn)
    session = (*path, "mqtt", "session_queue")
    _check_low_priority(problems, session, vpn.mqtt.session_queue)
    _check_dead_msg_queue(problems, path, session, vpn.mqtt.session_queue)
    for name, log in vpn.replay_logs.items():
        _check_replay_log(problems, (*path, "replay_logs", name), log, vpn)
    for name in list(vpn.replay_logs)[1:]:
        first = problems.document.key_at((*path, "replay_logs", next(iter(vpn.replay_logs))))
        problems.key_error(
            (*path, "replay_logs", name),
            f"a message VPN has one replay log; the first is at {first}",
        )


def _check_reserved_names(problems: ProblemList, path: Path, vpn: MsgVpn) -> None:
    """Warn of queues that nothing comes into: to a name that begins with # only the router itself sends."""
    reserved = [name for name, queue in vpn.queues.items() if name.startswith("#")]
    if not reserved:
        return
    endpoints: tuple[Queue | TopicEndpoint | SessionQueue, ...] = (
        *vpn.queues.values(),
        *vpn.topic_endpoints.values(),
        vpn.mqtt.session_queue,
    )
    used: set[str | None] = {DEAD_MSG_QUEUE, *(one.dead_msg_queue for one in endpoints)}
    for connector in vpn.connectors.values():
        for link in connector.links.values():
            used.update(entry.queue for entry in link.dead_msg_queues)
    for bridge in vpn.bridges.values():
        used.update(entry.queue for entry in bridge.dead_msg_queues)
    for name in reserved:
        if name not in used and not vpn.queues[name].subscriptions:
            problems.key_warning(
                (*path, "queues", name),
                "gets no messages: clients cannot send to a name that begins with #, it has no"
                " subscriptions, and it is no dead message queue",
            )


def _check_endpoint(problems: ProblemList, vpn_path: Path, path: Path, endpoint: Endpoint) -> None:
    """Check what holds for queues and topic endpoints alike."""
    delay = endpoint.redelivery.delay
    if delay.initial_interval > delay.max_interval:
        problems.error(
            (*path, "redelivery", "delay"),
            f"initial_interval {delay.initial_interval} is above max_interval {delay.max_interval}",
        )
    if endpoint.owner is not None and not problems.is_configured(
        (*vpn_path, "client_usernames", endpoint.owner)
    ):
        problems.warning((*path, "owner"), f"there is no client username {endpoint.owner}")
    if endpoint.max_ttl and not endpoint.respect_ttl_enabled:
        problems.warning((*path, "max_ttl"), "has no effect without respect_ttl_enabled: true")
    _check_dead_msg_queue(problems, vpn_path, path, endpoint)


def _check_dead_msg_queue(
    problems: ProblemList, vpn_path: Path, path: Path, endpoint: Endpoint | SessionQueue
) -> None:
    name = endpoint.dead_msg_queue
    if name == DEAD_MSG_QUEUE:
        # Also of the queue of that name: what is dead there as well is discarded, as in the field.
        return
    if path == (*vpn_path, "queues", name):
        problems.error((*path, "dead_msg_queue"), "is the queue itself")
    elif not problems.is_configured((*vpn_path, "queues", name)):
        problems.warning(
            (*path, "dead_msg_queue"),
            f"there is no queue {name}; what expires or is redelivered too often is discarded",
        )


def _check_low_priority(
    problems: ProblemList, path: Path, endpoint: Queue | TopicEndpoint | SessionQueue
) -> None:
    if endpoint.reject_low_priority_msg.enabled and (
        endpoint.reject_msg_to_sender_on_discard_behavior == "never"
    ):
        problems.error(
            (*path, "reject_low_priority_msg", "enabled"),
            "needs reject_msg_to_sender_on_discard_behavior other than never",
        )


def _check_quota(
    problems: ProblemList, path: Path, endpoint: Queue | TopicEndpoint, vpn: MsgVpn
) -> None:
    usage = (
        endpoint.max_msg_spool_usage if isinstance(endpoint, Queue) else endpoint.max_spool_usage
    )
    if usage > vpn.max_msg_spool_usage and problems.is_configured(path):
        problems.warning(
            path, f"{usage} MB is more than the message VPN's {vpn.max_msg_spool_usage} MB"
        )


def _check_queue(problems: ProblemList, path: Path, queue: Queue, vpn: MsgVpn) -> None:
    rules = FilterRules(
        queue.topic_syntax, vpn.max_topic_levels, vpn.max_topic_bytes, exceptions=True
    )
    texts = [
        ((*path, "subscriptions", index), text) for index, text in enumerate(queue.subscriptions)
    ]
    check_filters(problems, texts, rules)
    if queue.partition.count and queue.access_type == "exclusive":
        # In the field the queue comes up and stands at invalid-exclusive.
        problems.error((*path, "partition", "count"), "partitions need access_type: non-exclusive")
    elif queue.partition.count and not queue.max_msg_spool_usage:
        problems.error(
            (*path, "partition", "count"),
            "a last value queue (max_msg_spool_usage: 0) keeps one message and has no partitions",
        )
    _check_low_priority(problems, path, queue)


def _check_replay_log(problems: ProblemList, path: Path, log: ReplayLog, vpn: MsgVpn) -> None:
    chosen = log.topic_filter
    rules = FilterRules(
        chosen.topic_syntax, vpn.max_topic_levels, vpn.max_topic_bytes, exceptions=True
    )
    place = (*path, "topic_filter", "subscriptions")
    texts = [((*place, index), text) for index, text in enumerate(chosen.subscriptions)]
    check_filters(problems, texts, rules)
    if chosen.subscriptions and not chosen.enabled:
        problems.warning(place, "has no effect with enabled: false; every message is logged")


BUILT_IN = "default"


def check_msg_vpn(problems: ProblemList, config: RouterConfig, msg_vpn: str) -> None:
    """Check one message VPN, what leads out of it left out."""
    path: Path = ("msg_vpns", msg_vpn)
    vpn = config.msg_vpns[msg_vpn]
    problems.readable(
        (*path, "bridging", "tls_server_cert", "crl"), vpn.bridging.tls_server_cert.crl
    )
    for name, account in vpn.client_usernames.items():
        place = (*path, "client_usernames", name)
        if problems.is_configured(place) and problems.is_whole(place):
            _check_password(problems, place, account, vpn)
        for kind, profile_name in (
            ("client_profile", account.client_profile),
            ("acl_profile", account.acl_profile),
        ):
            if profile_name != BUILT_IN and not problems.is_configured(
                (*path, f"{kind}s", profile_name)
            ):
                what = "client profile" if kind == "client_profile" else "ACL profile"
                problems.error((*place, kind), f"there is no {what} {profile_name}")
    for name, profile in vpn.acl_profiles.items():
        _check_acl_profile(problems, (*path, "acl_profiles", name), profile, vpn)
    _check_queue_names(problems, path, vpn)
    for name, client_profile in vpn.client_profiles.items():
        _check_client_profile(problems, (*path, "client_profiles", name), client_profile)
    check_endpoints(problems, path, vpn)


def _check_password(
    problems: ProblemList, place: Path, account: ClientUsername, vpn: MsgVpn
) -> None:
    """Warn of a client username that nobody can log in with."""
    ways = vpn.authentication
    if account.password is not None or not (account.enabled and account.password_required):
        return
    if ways.basic.enabled and not ways.client_cert.enabled:
        problems.warning(
            place,
            "nobody can log in with it, because it has no password: give it password: …, or the message VPN"
            " authentication: {basic: {enabled: false}}",
        )


def _check_client_profile(problems: ProblemList, path: Path, profile: ClientProfile) -> None:
    if profile.end_to_end_bridge is not None and not profile.allow_guaranteed_msg_send_enabled:
        problems.warning(
            (*path, "end_to_end_bridge"),
            "has no effect with allow_guaranteed_msg_send_enabled: false",
        )


def _check_acl_profile(problems: ProblemList, path: Path, profile: AclProfile, vpn: MsgVpn) -> None:
    _check_networks(
        problems, (*path, "client_connect", "exceptions"), profile.client_connect.exceptions
    )
    for group, rule in (
        ("publish_topic", profile.publish_topic),
        ("subscribe_topic", profile.subscribe_topic),
        ("subscribe_share_name", profile.subscribe_share_name),
    ):
        place = (*path, group, "exceptions")
        rules = FilterRules(rule.topic_syntax, vpn.max_topic_levels, vpn.max_topic_bytes)
        check_filters(
            problems, [((*place, index), text) for index, text in enumerate(rule.exceptions)], rules
        )


def _check_queue_names(problems: ProblemList, path: Path, vpn: MsgVpn) -> None:
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
                    problems.warning(
                        (*path, "acl_profiles", name, "publish_topic", "exceptions", index),
                        f"lets client username {strangers[0]} fill queue {queue_name}, which is"
                        f" {queue.permission} to it; name the queues that are meant",
                    )
                    break


def _check_networks(problems: ProblemList, path: Path, networks: tuple[str, ...]) -> None:
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
            problems.error(place, _network_reason(text))
            continue
        if network in seen:
            problems.warning(
                place, f"the same network stands at {problems.document.value_at(seen[network])}"
            )
        seen.setdefault(network, place)


def _network_reason(text: str) -> str:
    import ipaddress

    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        return "must be an IPv4 or IPv6 network (CIDR), for example 192.0.2.0/24 or 2001:db8::/32"
    return f"has bits set behind its prefix; the network is {network}"
