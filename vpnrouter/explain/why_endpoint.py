"""Finds the reasons why a queue or topic endpoint gets a message or does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.core.discard_reasons import MSG_TOO_BIG
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.dead_letters import CONSUMER
from vpnrouter.core.guaranteed.endpoint_settings import (
    CONNECTOR_LINK,
    PARKING,
    QUEUE,
    REPLAY_LOG,
    SESSION,
    SUBSCRIPTION,
    TOPIC_ENDPOINT,
)
from vpnrouter.core.guaranteed.spool import PROMOTION_CONGESTION
from vpnrouter.explain.mesh_index import attribute, client_of, rule
from vpnrouter.explain.request import Rule
from vpnrouter.topics.algebra import matches
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter

if TYPE_CHECKING:
    from vpnrouter.config.problem import Path
    from vpnrouter.config.router import Loaded
    from vpnrouter.core.guaranteed.endpoint import Endpoint
    from vpnrouter.core.route import Route
    from vpnrouter.core.subscriber import Subscriber, Subscription
    from vpnrouter.explain.mesh_index import MeshIndex
    from vpnrouter.explain.visits import Visit

KEYS: Final = {QUEUE: "queues", TOPIC_ENDPOINT: "topic_endpoints"}
NAMES: Final = {
    QUEUE: "queue",
    TOPIC_ENDPOINT: "topic endpoint",
    SESSION: "the queue of the session of client",
    SUBSCRIPTION: "the AMQP subscription",
    PARKING: "the parking lot of bridge",
    CONNECTOR_LINK: "the connector's link",
    REPLAY_LOG: "replay log",
}

_SHUT: Final = frozenset(
    {"destination-group-error", refusals.QUEUE_SHUTDOWN, refusals.TOPIC_ENDPOINT_SHUTDOWN}
)
_QUOTA: Final = frozenset(
    {"max-msg-spool-usage-exceeded", refusals.SPOOL_OVER_QUOTA, PROMOTION_CONGESTION}
)
_ATTRIBUTES: Final = {
    "max-msg-usage-exceeded": "max_spooled_msg_count",
    refusals.MAX_MESSAGE_USAGE: "max_spooled_msg_count",
    "low-priority-msg-congestion": "reject_low_priority_msg",
    refusals.LOW_PRIORITY: "reject_low_priority_msg",
    "max-msg-size-exceeded": "max_msg_size",
    refusals.TOO_LARGE: "max_msg_size",
    MSG_TOO_BIG: "max_msg_size",
    CONSUMER: "dead_msg_queue",
}


def shown_name(endpoint: Endpoint | None, name: str) -> str:
    """Return the name of an endpoint for people."""
    client = client_of(name)
    if client:
        return f"{NAMES[SESSION]} {client}"
    kind = "endpoint" if endpoint is None else NAMES[endpoint.kind]
    return f"{kind} {name}"


def path_of(vpn: str, endpoint: Endpoint) -> Path | None:
    """Return where an endpoint is in the configuration; None for one that is not."""
    key = KEYS.get(endpoint.kind)
    return None if key is None else ("msg_vpns", vpn, key, endpoint.name)


def subscription_rules(
    loaded: Loaded | None, endpoint: Endpoint, subscriptions: list[Subscription]
) -> list[Rule]:
    """Return the subscriptions of an endpoint that took part, as they are configured."""
    configured = None
    if loaded is not None and endpoint.kind == QUEUE:
        configured = loaded.config.msg_vpns[endpoint.vpn.name].queues.get(endpoint.name)
    rules: list[Rule] = []
    for subscription in subscriptions:
        text = f"subscription {subscription.key}"
        if configured is None:
            rules.append(Rule(text))
            continue
        dialect = MQTT if configured.topic_syntax == "mqtt" else SMF
        path = ("msg_vpns", endpoint.vpn.name, "queues", endpoint.name, "subscriptions")
        for index, filter_ in enumerate(configured.subscriptions):
            if parse_filter(filter_, dialect, exceptions=True) == subscription.filter:
                rules.append(rule(loaded, (*path, index), text))
                break
        else:
            # A topic that names the queue matches by the name alone.
            rules.append(rule(loaded, path[:-1], f"the topic names it: {subscription.filter.text}"))
    return rules


def taken_rules(index: MeshIndex, visit: Visit, endpoint: Endpoint) -> list[Rule]:
    """Return why an endpoint got the message."""
    route = index.route(visit)
    loaded = index.loaded(visit.router)
    if route is None:
        return []
    for target in route.endpoints:
        if target.subscriber is endpoint:
            return subscription_rules(loaded, endpoint, target.subscriptions)
    for target in route.sessions:
        if target.subscriber.endpoint is endpoint:
            return subscription_rules(loaded, endpoint, target.subscriptions)
    return []


def lost_rules(index: MeshIndex, visit: Visit, endpoint: Endpoint, reason: str) -> list[Rule]:
    """Return which attribute made an endpoint refuse the message."""
    loaded = index.loaded(visit.router)
    path = path_of(visit.msg_vpn, endpoint)
    if loaded is None:
        return []
    if path is None:
        return []
    if reason in _SHUT:
        return [attribute(loaded, (*path, "ingress_enabled"))]
    if reason in _QUOTA:
        return [_quota(index, visit, endpoint, loaded, path)]
    key = _ATTRIBUTES.get(reason)
    if key == "reject_low_priority_msg":
        return [attribute(loaded, (*path, key, "limit"))]
    return [] if key is None else [attribute(loaded, (*path, key))]


def _quota(index: MeshIndex, visit: Visit, endpoint: Endpoint, loaded: Loaded, path: Path) -> Rule:
    """Return whose megabytes are used up: the endpoint's, its message VPN's or the router's."""
    message = index.message(visit)
    size = message.size
    if endpoint.obstacle(message, size):
        key = "max_msg_spool_usage" if endpoint.kind == QUEUE else "max_spool_usage"
        return attribute(loaded, (*path, key))
    vpn = endpoint.vpn
    if vpn.spooled_bytes + size > vpn.limits.max_msg_spool_usage:
        return attribute(loaded, ("msg_vpns", vpn.name, "max_msg_spool_usage"))
    return attribute(loaded, ("guaranteed_msging", "max_msg_spool_usage"))


def behavior_rule(loaded: Loaded, vpn: str, endpoint: Endpoint) -> list[Rule]:
    """Return which attribute sends the refusal back to the publisher."""
    path = path_of(vpn, endpoint)
    if path is None:
        return []
    return [attribute(loaded, (*path, "reject_msg_to_sender_on_discard_behavior"))]


def why_not(
    index: MeshIndex, visit: Visit, endpoint: Endpoint, rejected: str
) -> tuple[str, list[Rule]]:
    """Return why an endpoint does not have the message though no row shows it; `rejected`: no endpoint has it."""
    route = index.route(visit)
    loaded = index.loaded(visit.router)
    if route is None:
        return "the message VPN takes no message of this topic", []
    if endpoint in route.excluded:
        return "an exception takes this topic away", _exceptions(loaded, route, endpoint)
    found = [target for target in route.endpoints if target.subscriber is endpoint]
    if found:
        properties = index.message(visit).properties()
        selectors = [one.selector for one in found[0].subscriptions]
        texts = [one.text for one in selectors if one is not None and not one.matches(properties)]
        if len(texts) == len(selectors):
            rules = taken_rules(index, visit, endpoint)
            return f"its selector does not match: {' | '.join(texts)}", rules
        reason = f"it would have taken it, but {rejected}" if rejected else "its turn did not come"
        return reason, taken_rules(index, visit, endpoint)
    path = path_of(visit.msg_vpn, endpoint)
    if not endpoint.subscriptions:
        rules = [] if path is None else [rule(loaded, path, "it has no subscription")]
        return "it has no subscription", rules
    rules = [] if path is None else [rule(loaded, (*path, "subscriptions"), _all(endpoint))]
    return "no subscription of it matches", rules


def _all(endpoint: Endpoint) -> str:
    keys = sorted(endpoint.subscriptions)
    more = f" and {len(keys) - 3} more" if len(keys) > 3 else ""
    return f"subscriptions {', '.join(keys[:3])}{more}"


def _exceptions(loaded: Loaded | None, route: Route, endpoint: Endpoint) -> list[Rule]:
    matched = [
        subscription
        for subscription in endpoint.subscriptions.values()
        if subscription.exception and excludes(subscription, route.topic)
    ]
    return subscription_rules(loaded, endpoint, matched)


def excludes(subscription: Subscription, topic: str) -> bool:
    """Return whether an exception is one for this topic: by the same test as the trie's."""
    return matches(subscription.filter, topic)


def subscriptions_for(route: Route, subscriber: Subscriber) -> list[Subscription]:
    """Return the subscriptions by which a subscriber is on a route."""
    for target in (*route.endpoints, *route.sessions, *route.links, *route.special):
        if target.subscriber is subscriber:
            return target.subscriptions
    return []
