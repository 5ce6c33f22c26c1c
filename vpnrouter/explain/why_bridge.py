"""Finds the reasons why a bridge takes a message across or does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter import limits
from vpnrouter.config.configured_bridge import mapping_of
from vpnrouter.core import discard_reasons
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.endpoint import endpoints_of
from vpnrouter.core.guaranteed.endpoint_settings import QUEUE, SUBSCRIPTION, TOPIC_ENDPOINT
from vpnrouter.core.message import DELIVER_TO_ONE
from vpnrouter.core.mqtt.session import MqttSession
from vpnrouter.errors import TopicError
from vpnrouter.explain.mesh_index import (
    LEFT_OUT,
    attribute,
    delivery_rule,
    in_words,
    profile_rule,
    rule,
    subscribe_rule,
    username_rule,
)
from vpnrouter.explain.request import BRIDGE, CLIENT, CONNECTOR, ENDPOINT, NO, REMARK, Rule, Step
from vpnrouter.explain.visits import DELIVERED, KEPT, link_of
from vpnrouter.explain.why_connector import named
from vpnrouter.explain.why_connector import why_not as why_not_connector
from vpnrouter.explain.why_endpoint import excludes, shown_name, subscriptions_for
from vpnrouter.explain.why_endpoint import why_not as why_not_endpoint
from vpnrouter.text import counted
from vpnrouter.topics.algebra import matches
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter, to_smf

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vpnrouter.bridges.link import Link
    from vpnrouter.core.route import Route
    from vpnrouter.core.subscriber import Subscription
    from vpnrouter.explain.bridge import MemoryBridge
    from vpnrouter.explain.mesh_index import MeshIndex
    from vpnrouter.explain.visits import Visit


_DISABLED: Final = "the bridge is disabled"

Answer = tuple[str, list[Rule]]
"""Why not, and what decided."""


def state_rule(bridge: MemoryBridge) -> Rule:
    """Return where a bridge is configured, or the switch that keeps it down."""
    loaded = bridge.node.loaded
    if bridge.why == _DISABLED:
        return attribute(loaded, (*bridge.path, "enabled"))
    if not bridge.vpn.enabled:
        return attribute(loaded, ("msg_vpns", bridge.vpn_name, "enabled"))
    return rule(loaded, bridge.path, f"bridge {bridge.name}")


def hop_rule(bridge: MemoryBridge, hops: int) -> Rule:
    """Return the hop limit that let the message in or kept it out."""
    rule = attribute(bridge.node.loaded, (*bridge.path, "max_ttl"))
    text = f"{rule.text}, this is bridge {hops} on its way"
    return Rule(text, rule.file, rule.line, rule.column, rule.written)


def remote_subscription_rules(bridge: MemoryBridge, texts: Iterable[str]) -> list[Rule]:
    """Return those of a bridge's remote subscriptions that it requested as `texts`, as they are configured."""
    requested = set(texts)
    dialect = MQTT if bridge.configured.bridge.topic_syntax == "mqtt" else SMF
    rules = []
    for index, subscription in enumerate(bridge.configured.bridge.remote_subscriptions):
        if requested & set(to_smf(parse_filter(subscription.topic, dialect, exceptions=True))):
            path = (*bridge.path, "remote_subscriptions", index)
            rules.append(
                rule(bridge.node.loaded, path, f"remote subscription {subscription.topic}")
            )
    return rules


def mapping_rules(bridge: MemoryBridge, direction: str, topic: str) -> list[Rule]:
    """Return the rule of a bridge's topic mapping that renames `topic` on its way "in" or "out"."""
    mapping = mapping_of(bridge.configured.bridge, direction)
    if mapping is None:
        return []
    other = "out" if direction == "in" else "in"
    indices = [
        index
        for index, written in enumerate(bridge.configured.bridge.topic_mapping)
        if written.direction != other
    ]
    levels = topic.split("/")
    for index, one in zip(indices, mapping.rules, strict=True):
        try:
            image = one.apply(topic, levels)
        except TopicError as error:
            path = (*bridge.path, "topic_mapping", index)
            return [rule(bridge.node.loaded, path, f"topic mapping: {error}")]
        if image is not None:
            path = (*bridge.path, "topic_mapping", index)
            return [rule(bridge.node.loaded, path, f"topic mapping: {topic} becomes {image}")]
    return []


def out_mapping_rules(index: MeshIndex, visit: Visit, bridge: MemoryBridge) -> list[Rule]:
    """Return the rule by which the sending message VPN renames what leaves towards a bridge of the other side."""
    for back in index.bridges_into(visit):
        if back.configured.bridge.enabled and bridge in index.bridges_back(back):
            rules = mapping_rules(back, "out", index.topic(visit))
            if rules:
                return rules
    return []


def direct_rules(index: MeshIndex, visit: Visit, bridge: MemoryBridge) -> list[Rule]:
    """Return why a Direct message crosses: the remote subscriptions that attract it, and what renames it."""
    link = index.serving(bridge)
    route = index.route(visit)
    if link is None or link.client is None or route is None:
        return []
    matched = subscriptions_for(route, link.client)
    if not matched:
        matched = [
            member
            for group in route.groups
            for member in group.members
            if member.subscriber is link.client
        ]
    rules = remote_subscription_rules(bridge, _asked(link, matched))
    return [*rules, *out_mapping_rules(index, visit, bridge)]


def flow_rules(bridge: MemoryBridge) -> list[Rule]:
    """Return why a guaranteed message crosses: the queue that the bridge is bound to."""
    if bridge.remote is None:
        return []
    path = (*bridge.remote_path(bridge.remote), "queue_binding")
    return [attribute(bridge.node.loaded, path)]


def entry_rules(bridge: MemoryBridge, hops: int, topic: str) -> list[Rule]:
    """Return why it may come in: hop limit, and what renames it."""
    return [hop_rule(bridge, hops), *mapping_rules(bridge, "in", topic)]


def _asked(link: Link, matched: list[Subscription]) -> list[str]:
    """Return the filters that the peer requested, for these subscriptions."""
    peer = link.peer_half
    if peer is None or peer.attracted is None:
        return []
    originals = {subscription.filter.original for subscription in matched}
    return [
        text
        for text, sources in peer.attracted.sources.items()
        if originals & {source.original for source in sources}
    ]


# -- why not ---------------------------------------------------------------------------------------


def why_not(index: MeshIndex, visit: Visit, bridge: MemoryBridge, queues: list[str]) -> Answer:
    """Return why a bridge whose remote is the message VPN of `visit` does not take the message.

    `queues` are the endpoints that have it there.
    """
    if not bridge.up:
        return f"it is down: {bridge.why}", [state_rule(bridge)]
    half, remote = bridge.half, bridge.remote
    if half is None or remote is None:
        return "it is down", [state_rule(bridge)]
    now = f"{half.link.peer_router}/{remote.name}"
    if now != visit.place:
        path = (*bridge.remote_path(remote), "connect_order")
        rules = [attribute(bridge.node.loaded, path)]
        return f"it takes from {now} now", rules
    if bridge.configured.bridge.paused:
        switch = attribute(bridge.node.loaded, (*bridge.path, "paused"))
        if remote.queue_binding in queues:
            waits = f"it waits in its queue {remote.queue_binding}: the bridge is paused"
            return waits, [switch, *flow_rules(bridge)]
        return "the bridge is paused, and asks for no messages", [switch]
    reason, rules = _direct(index, visit, bridge)
    queue = remote.queue_binding
    if queue:
        about, more = _flow(index, visit, bridge, queue, queues)
        return f"{reason}; {about}", [*rules, *more]
    return reason, rules


def _direct(index: MeshIndex, visit: Visit, bridge: MemoryBridge) -> Answer:
    link = index.serving(bridge)
    route = index.route(visit)
    if link is None or link.client is None:
        return "it is not logged in there", [state_rule(bridge)]
    if route is None:
        return "the message VPN takes no message of this topic", []
    client = link.client
    matched = subscriptions_for(route, client)
    requested = remote_subscription_rules(bridge, _asked(link, matched))
    refused = None if matched else _refused(index, visit, bridge, link, route)
    if refused is not None:
        return refused
    matching = index.matching(route.topic, client)
    if matching and client.rule is not None and not client.rule.allows_topic(route.topic):
        rules = remote_subscription_rules(bridge, _asked(link, matching))
        return LEFT_OUT, [*rules, *_left_out(index, visit, link, route)]
    if client in route.excluded:
        return "an exception takes this topic away", _exceptions(bridge, link, route)
    if matched:
        if visit.path and visit.path[-1] == client.vpn_id:
            return "it came over this link, and never goes back over it", requested
        message = index.message(visit)
        target = next(one for one in route.links if one.subscriber is client)
        if not target.wanting(message):
            return _selector(matched, requested)
        renamed = out_mapping_rules(index, visit, bridge)
        if renamed:
            return "renamed as it leaves, it matches no remote subscription", [*requested, *renamed]
        if message.deliver_to_one:
            reason = f"the message has {DELIVER_TO_ONE}, and somebody else got it"
            return reason, [*requested, *_priority(bridge)]
        return "it was not offered to it", requested
    if any(member.subscriber is client for group in route.groups for member in group.members):
        return "another member of its share group got it", requested
    if not bridge.configured.bridge.remote_subscriptions:
        return "it has no remote subscription", [state_rule(bridge)]
    path = (*bridge.path, "remote_subscriptions")
    texts = [subscription.topic for subscription in bridge.configured.bridge.remote_subscriptions]
    more = f" and {len(texts) - 3} more" if len(texts) > 3 else ""
    shown = f"remote subscriptions {', '.join(texts[:3])}{more}"
    return "no remote subscription of it matches", [rule(bridge.node.loaded, path, shown)]


def _selector(matched: list[Subscription], asked: list[Rule]) -> Answer:
    texts = [one.selector.text for one in matched if one.selector is not None]
    return f"the selector is not true of it: {'; '.join(dict.fromkeys(texts))}", asked


def _priority(bridge: MemoryBridge) -> list[Rule]:
    return [attribute(bridge.node.loaded, (*bridge.path, "remote_deliver_to_one_priority"))]


def _left_out(index: MeshIndex, visit: Visit, link: Link, route: Route) -> list[Rule]:
    loaded = index.loaded(visit.router)
    if loaded is None or link.admission is None or link.client is None:
        return []
    username = link.admission.username
    name = link.client.client_name
    return [
        delivery_rule(loaded, visit.msg_vpn, username, name, route.topic),
        username_rule(loaded, visit.msg_vpn, username),
    ]


def _exceptions(bridge: MemoryBridge, link: Link, route: Route) -> list[Rule]:
    client = link.client
    if client is None:
        return []
    matched = [
        subscription
        for subscription in client.subscriptions.values()
        if subscription.exception and excludes(subscription, route.topic)
    ]
    return remote_subscription_rules(bridge, _asked(link, matched))


def _refused(
    index: MeshIndex, visit: Visit, bridge: MemoryBridge, link: Link, route: Route
) -> Answer | None:
    """Return a remote subscription that would match and was not granted."""
    peer = link.peer_half
    admission = link.admission
    loaded = index.loaded(visit.router)
    if peer is None or peer.attracted is None or bridge.half is None or loaded is None:
        return None
    for _, text in bridge.half.terms.filters:
        if text in peer.attracted.sources:
            continue
        filter_ = parse_filter(text, SMF, exceptions=True)
        if filter_.exception or not matches(filter_, route.topic):
            continue
        rules = remote_subscription_rules(bridge, [text])
        if admission is not None and link.client is not None:
            username = admission.username
            rules.append(
                subscribe_rule(loaded, visit.msg_vpn, username, link.client.client_name, filter_)
            )
            rules.append(username_rule(loaded, visit.msg_vpn, username))
            if "Max Num Subscriptions" in bridge.refused:
                key = "max_subscription_count"
                rules.append(profile_rule(loaded, visit.msg_vpn, username, key))
        why = bridge.refused.partition(":")[0] or "it was not granted"
        return f"its remote subscription was refused there: {why}", rules
    return None


def _flow(
    index: MeshIndex, visit: Visit, bridge: MemoryBridge, queue: str, queues: list[str]
) -> Answer:
    """Return why nothing comes through the queue that the bridge is bound to."""
    rules = flow_rules(bridge)
    if queue not in queues:
        return f"its queue {queue} did not get it", rules
    loaded = index.loaded(visit.router)
    if bridge.stalled:
        return f"it waits in its queue {queue}: the bridge is stalled now: {bridge.stalled}", rules
    if bridge.unbound:
        return f"it is not bound to its queue {queue}: {bridge.unbound}", rules
    endpoint = index.endpoint(visit, queue)
    path = ("msg_vpns", visit.msg_vpn, "queues", queue)
    if endpoint is not None and loaded is not None:
        if not endpoint.settings.egress_enabled:
            return f"its queue {queue} delivers nothing", [
                *rules,
                attribute(loaded, (*path, "egress_enabled")),
            ]
        if endpoint.settings.delivery_delay:
            return f"its queue {queue} delays it", [
                *rules,
                attribute(loaded, (*path, "delivery_delay")),
            ]
    return f"it waits in its queue {queue}", rules


LOST: Final = frozenset({"discard", "reject", "expire"})
NEVER_ROUTED: Final = frozenset(
    {
        discard_reasons.PUBLISH_TOPIC_ACL,
        refusals.ACL_DENIED,
        refusals.PERMISSION_DENIED,
        refusals.TOO_MANY_INGRESS_FLOWS,
        discard_reasons.TOPIC_PARSE_ERROR,
        discard_reasons.MSG_TOO_BIG,
        discard_reasons.TTL_EXCEEDED,
        discard_reasons.LOOP_DETECTED,
        discard_reasons.DUPLICATE,
    }
)
"""Reasons for which a message does not come to be routed in the message VPN that it entered."""


def misses(index: MeshIndex, visit: Visit) -> list[Step]:
    """Return a step for each queue, topic endpoint, bridge, connector's link and client without the message here.

    None where the message did not come to be routed: the step that says so says it for all.
    """
    if index.memory_mesh is None or _ended(visit):
        return []
    groups = {
        "bridge": _bridges(index, visit),
        "link": _links(index, visit),
        "queue or topic endpoint": _endpoints(index, visit),
        "client": _clients(index, visit),
    }
    misses: list[Step] = []
    for kind, steps in groups.items():
        most = len(steps) if index.all_misses else limits.EXPLAIN_MISSES
        misses += steps[:most]
        if len(steps) > most:
            text = f"{counted(len(steps) - most, kind)} more without it"
            misses.append(Step(REMARK, NO, text, visit.router, visit.msg_vpn))
    return misses


def _ended(visit: Visit) -> bool:
    entered = visit.entered
    came_by = None if entered is None else entered.bridge
    return any(
        event.event in LOST
        and event.reason in NEVER_ROUTED
        and not event.endpoint
        and not link_of(event)
        and event.bridge in {"", came_by}
        for event in visit.events
    )


def _rejected(visit: Visit) -> str:
    """Return why no endpoint keeps the message, "" where one may."""
    for event in visit.events:
        if event.event == "reject":
            by = f" by {event.endpoint}" if event.endpoint else ""
            return f"it was refused{by}, and then no endpoint keeps it: {in_words(event.reason)}"
    return ""


def _bridges(index: MeshIndex, visit: Visit) -> list[Step]:
    sent = {(event.peer_router, event.peer_vpn, event.bridge) for event, _ in visit.sends}
    sent |= {
        (event.peer_router, event.peer_vpn, event.bridge)
        for event in visit.events
        if event.event in LOST and event.bridge
    }
    queues = [event.endpoint for event in visit.events if event.event in KEPT]
    rejected = _rejected(visit)
    steps = []
    for bridge in index.bridges_out_of(visit):
        if (bridge.node.name, bridge.vpn_name, bridge.name) in sent:
            continue
        why, rules = why_not(index, visit, bridge, queues)
        if rejected and bridge.up and rules:
            why = rejected
        text = f"bridge {bridge.name} to {bridge.place} does not take it: {why}"
        steps.append(Step(BRIDGE, NO, text, visit.router, visit.msg_vpn, bridge.name, rules=rules))
    return steps


def _links(index: MeshIndex, visit: Visit) -> list[Step]:
    passed = {passage.link for passage, _ in visit.passed}
    for event in visit.events:
        found = index.link_of(visit, event) if event.event in DELIVERED else None
        if found is not None:
            passed.add(found[1])
    rejected = _rejected(visit)
    steps = []
    for connector in index.connectors_of(visit):
        for link in connector.links.outward:
            if link in passed:
                continue
            why, rules = why_not_connector(index, visit, connector, link)
            if rejected and not link.terms.direct and why.endswith("did not get it"):
                why = rejected
            name = link.terms.name
            text = f"{named(connector, name)} does not take it: {why}"
            name = f"{connector.name}/{name}"
            steps.append(Step(CONNECTOR, NO, text, visit.router, visit.msg_vpn, name, rules=rules))
    return steps


def _endpoints(index: MeshIndex, visit: Visit) -> list[Step]:
    vpn = index.vpn(visit)
    loaded = index.loaded(visit.router)
    if vpn is None or loaded is None:
        return []
    if vpn.context.spool is None:
        msg_vpn = loaded.config.msg_vpns[visit.msg_vpn]
        if not msg_vpn.queues and not msg_vpn.topic_endpoints:
            return []
        rules = [attribute(loaded, ("guaranteed_msging", "enabled"))]
        text = "no queue or topic endpoint gets it: the router serves none"
        return [Step(ENDPOINT, NO, text, visit.router, visit.msg_vpn, rules=rules)]
    sent = {event.endpoint for event in visit.events if event.endpoint}
    rejected = _rejected(visit)
    steps = []
    for (kind, name), endpoint in endpoints_of(vpn).items():
        if kind not in (QUEUE, TOPIC_ENDPOINT, SUBSCRIPTION) or name in sent:
            continue
        why, rules = why_not_endpoint(index, visit, endpoint, rejected)
        text = f"{shown_name(endpoint, name)} does not get it: {why}"
        steps.append(Step(ENDPOINT, NO, text, visit.router, visit.msg_vpn, name, rules=rules))
    return steps


def _not_taken(index: MeshIndex, visit: Visit, session: MqttSession, topic: str) -> list[Rule]:
    """Return the rule of the client's ACL profile that denies it a topic."""
    loaded = index.loaded(visit.router)
    connection = session.connection
    admission = None if connection is None else connection.admission
    if loaded is None or admission is None:
        return []
    username = admission.username
    return [
        delivery_rule(loaded, visit.msg_vpn, username, session.client_name, topic),
        username_rule(loaded, visit.msg_vpn, username),
    ]


def _clients(index: MeshIndex, visit: Visit) -> list[Step]:
    vpn = index.vpn(visit)
    route = index.route(visit)
    if vpn is None or index.memory_mesh is None:
        return []
    sent = {event.client for event in visit.events}
    rejected = _rejected(visit)
    steps = []
    for session in index.memory_mesh.sessions:
        name = session.client_id
        if session.node.name != visit.router or session.vpn != visit.msg_vpn or name in sent:
            continue
        client = vpn.clients.get(name)
        if not isinstance(client, MqttSession) or not (client.subscriptions or session.denied):
            continue
        rules: list[Rule] = []
        matching = [] if route is None else index.matching(route.topic, client)
        if session.denied:
            text, why = next(iter(session.denied.items()))
            reason = f"its subscription {text} was not granted: {why}"
        elif not matching:
            reason = "no subscription of it matches"
        elif route is not None and client.rule and not client.rule.allows_topic(route.topic):
            reason = LEFT_OUT
            rules = _not_taken(index, visit, client, route.topic)
        else:
            reason = rejected or "another receiver got it"
            rules = [Rule(f"subscription {one.key}, QoS {one.qos}") for one in matching]
        text = f"client {name} does not get it: {reason}"
        steps.append(Step(CLIENT, NO, text, visit.router, visit.msg_vpn, name, rules=rules))
    return steps
