"""Why a bridge takes the message across, or does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter.core.deliver import NAME as DELIVER_TO_ONE
from vpnrouter.errors import TopicError
from vpnrouter.explain.access_rules import (
    LEFT_OUT,
    delivery_rule,
    profile_rule,
    subscribe_rule,
    username_rule,
)
from vpnrouter.explain.explanation import Rule
from vpnrouter.explain.rules import attribute, rule
from vpnrouter.explain.why_endpoint import excludes, subscriptions_for
from vpnrouter.server.bridges.terms import mapping_of
from vpnrouter.topics.algebra import matches
from vpnrouter.topics.grammar import MQTT, SMF, parse_filter, to_smf

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vpnrouter.bridges.link import Link
    from vpnrouter.core.route import Route
    from vpnrouter.core.subscriber import Subscription
    from vpnrouter.explain.scene import Scene
    from vpnrouter.explain.twin_bridge import TwinBridge
    from vpnrouter.explain.visits import Visit

_DISABLED: Final = "the bridge is disabled"

Answer = tuple[str, list[Rule]]
"""Why not, and what decided."""


def state_rule(bridge: TwinBridge) -> Rule:
    """Where a bridge stands, or the switch that keeps it down."""
    loaded = bridge.node.loaded
    if bridge.why == _DISABLED:
        return attribute(loaded, (*bridge.path, "enabled"))
    if not bridge.approach.vpn.enabled:
        return attribute(loaded, ("msg_vpns", bridge.vpn_name, "enabled"))
    return rule(loaded, bridge.path, f"bridge {bridge.name}")


def hop_rule(bridge: TwinBridge, hops: int) -> Rule:
    """The hop limit that let the message in, or did not."""
    found = attribute(bridge.node.loaded, (*bridge.path, "max_ttl"))
    text = f"{found.text}, this is bridge {hops} on its way"
    return Rule(text, found.file, found.line, found.column, found.written)


def remote_subscription_rules(bridge: TwinBridge, texts: Iterable[str]) -> list[Rule]:
    """Those of a bridge's remote subscriptions that it asked for as `texts`, as they are written."""
    wanted = set(texts)
    dialect = MQTT if bridge.written.topic_syntax == "mqtt" else SMF
    found = []
    for index, written in enumerate(bridge.written.remote_subscriptions):
        if wanted & set(to_smf(parse_filter(written.topic, dialect, exceptions=True))):
            path = (*bridge.path, "remote_subscriptions", index)
            found.append(rule(bridge.node.loaded, path, f"remote subscription {written.topic}"))
    return found


def mapping_rules(bridge: TwinBridge, direction: str, topic: str) -> list[Rule]:
    """The rule of a bridge's topic mapping that renames `topic` on its way "in" or "out"."""
    mapping = mapping_of(bridge.written, direction)
    if mapping is None:
        return []
    other = "out" if direction == "in" else "in"
    indices = [
        index
        for index, written in enumerate(bridge.written.topic_mapping)
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


def out_mapping_rules(scene: Scene, visit: Visit, bridge: TwinBridge) -> list[Rule]:
    """The rule by which the sending message VPN renames what leaves towards a bridge of the other side."""
    for back in scene.bridges_into(visit):
        if back.written.enabled and bridge in scene.bridges_back(back):
            found = mapping_rules(back, "out", scene.topic(visit))
            if found:
                return found
    return []


def direct_rules(scene: Scene, visit: Visit, bridge: TwinBridge) -> list[Rule]:
    """Why a Direct message crosses: the remote subscriptions that attract it, and what renames it."""
    link = scene.serving(bridge)
    route = scene.route(visit)
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
    return [*rules, *out_mapping_rules(scene, visit, bridge)]


def flow_rules(bridge: TwinBridge) -> list[Rule]:
    """Why a guaranteed message crosses: the queue that the bridge is bound to."""
    if bridge.remote is None:
        return []
    path = (*bridge.remote_path(bridge.remote), "queue_binding")
    return [attribute(bridge.node.loaded, path)]


def entry_rules(bridge: TwinBridge, hops: int, topic: str) -> list[Rule]:
    """Why it may come in: hop limit, and what renames it."""
    return [hop_rule(bridge, hops), *mapping_rules(bridge, "in", topic)]


def _asked(link: Link, matched: list[Subscription]) -> list[str]:
    """The filters that the peer asked for behind these subscriptions."""
    outbound = link.outbound
    if outbound is None or outbound.attracted is None:
        return []
    originals = {subscription.filter.original for subscription in matched}
    return [
        text
        for text, sources in outbound.attracted.sources.items()
        if originals & {source.original for source in sources}
    ]


# -- why not ---------------------------------------------------------------------------------------


def why_not(scene: Scene, visit: Visit, bridge: TwinBridge, queues: list[str]) -> Answer:
    """Why a bridge whose remote is the message VPN of `visit` does not take the message.

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
    said, rules = _direct(scene, visit, bridge)
    queue = remote.queue_binding
    if queue:
        about, more = _flow(scene, visit, bridge, queue, queues)
        return f"{said}; {about}", [*rules, *more]
    return said, rules


def _direct(scene: Scene, visit: Visit, bridge: TwinBridge) -> Answer:
    link = scene.serving(bridge)
    route = scene.route(visit)
    if link is None or link.client is None:
        return "it is not logged in there", [state_rule(bridge)]
    if route is None:
        return "the message VPN takes no message of this topic", []
    client = link.client
    matched = subscriptions_for(route, client)
    asked = remote_subscription_rules(bridge, _asked(link, matched))
    refused = None if matched else _refused(scene, visit, bridge, link, route)
    if refused is not None:
        return refused
    wanted = scene.matching(route.topic, client)
    if wanted and client.rule is not None and not client.rule.allows_topic(route.topic):
        rules = remote_subscription_rules(bridge, _asked(link, wanted))
        return LEFT_OUT, [*rules, *_left_out(scene, visit, link, route)]
    if client in route.excluded:
        return "an exception takes this topic away", _exceptions(bridge, link, route)
    if matched:
        if visit.path and visit.path[-1] == client.vpn_id:
            return "it came over this link, and never goes back over it", asked
        message = scene.message(visit)
        target = next(one for one in route.links if one.subscriber is client)
        if not target.wanting(message):
            return _selector(matched, asked)
        renamed = out_mapping_rules(scene, visit, bridge)
        if renamed:
            return "renamed as it leaves, it matches no remote subscription", [*asked, *renamed]
        if message.deliver_to_one:
            said = f"the message has {DELIVER_TO_ONE}, and somebody else got it"
            return said, [*asked, *_priority(bridge)]
        return "it was not offered to it", asked
    if any(member.subscriber is client for group in route.groups for member in group.members):
        return "another member of its share group got it", asked
    if not bridge.written.remote_subscriptions:
        return "it has no remote subscription", [state_rule(bridge)]
    path = (*bridge.path, "remote_subscriptions")
    texts = [written.topic for written in bridge.written.remote_subscriptions]
    more = f" and {len(texts) - 3} more" if len(texts) > 3 else ""
    shown = f"remote subscriptions {', '.join(texts[:3])}{more}"
    return "no remote subscription of it matches", [rule(bridge.node.loaded, path, shown)]


def _selector(matched: list[Subscription], asked: list[Rule]) -> Answer:
    texts = [one.selector.text for one in matched if one.selector is not None]
    return f"the selector is not true of it: {'; '.join(dict.fromkeys(texts))}", asked


def _priority(bridge: TwinBridge) -> list[Rule]:
    return [attribute(bridge.node.loaded, (*bridge.path, "remote_deliver_to_one_priority"))]


def _left_out(scene: Scene, visit: Visit, link: Link, route: Route) -> list[Rule]:
    loaded = scene.loaded(visit.router)
    if loaded is None or link.admission is None or link.client is None:
        return []
    username = link.admission.username
    name = link.client.client_name
    return [
        delivery_rule(loaded, visit.msg_vpn, username, name, route.topic),
        username_rule(loaded, visit.msg_vpn, username),
    ]


def _exceptions(bridge: TwinBridge, link: Link, route: Route) -> list[Rule]:
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
    scene: Scene, visit: Visit, bridge: TwinBridge, link: Link, route: Route
) -> Answer | None:
    """A remote subscription that would match and was not granted."""
    outbound = link.outbound
    admission = link.admission
    loaded = scene.loaded(visit.router)
    if outbound is None or outbound.attracted is None or bridge.half is None or loaded is None:
        return None
    for _, text in bridge.half.terms.filters:
        if text in outbound.attracted.sources:
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


def _flow(scene: Scene, visit: Visit, bridge: TwinBridge, queue: str, queues: list[str]) -> Answer:
    """Why nothing comes through the queue that the bridge is bound to."""
    rules = flow_rules(bridge)
    if queue not in queues:
        return f"its queue {queue} did not get it", rules
    loaded = scene.loaded(visit.router)
    if bridge.stalled:
        return f"it waits in its queue {queue}: the bridge is stalled now: {bridge.stalled}", rules
    if bridge.unbound:
        return f"it is not bound to its queue {queue}: {bridge.unbound}", rules
    endpoint = scene.endpoint(visit, queue)
    path = ("msg_vpns", visit.msg_vpn, "queues", queue)
    if endpoint is not None and loaded is not None:
        if not endpoint.terms.egress_enabled:
            return f"its queue {queue} delivers nothing", [
                *rules,
                attribute(loaded, (*path, "egress_enabled")),
            ]
        if endpoint.terms.delivery_delay:
            return f"its queue {queue} delays it", [
                *rules,
                attribute(loaded, (*path, "delivery_delay")),
            ]
    return f"it waits in its queue {queue}", rules
