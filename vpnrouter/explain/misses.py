"""Where the message does not come in a message VPN, and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from vpnrouter import limits
from vpnrouter.core import losses
from vpnrouter.core.guaranteed import reasons
from vpnrouter.core.guaranteed.terms import QUEUE, TOPIC_ENDPOINT
from vpnrouter.core.mqtt.session import MqttSession
from vpnrouter.explain.access_rules import LEFT_OUT, delivery_rule, username_rule
from vpnrouter.explain.explanation import BRIDGE, CLIENT, ENDPOINT, NO, REMARK, Rule, Step
from vpnrouter.explain.rules import attribute
from vpnrouter.explain.visits import KEPT
from vpnrouter.explain.why_bridge import why_not as why_not_bridge
from vpnrouter.explain.why_endpoint import shown_name
from vpnrouter.explain.why_endpoint import why_not as why_not_endpoint
from vpnrouter.explain.wording import counted, in_words

if TYPE_CHECKING:
    from vpnrouter.explain.scene import Scene
    from vpnrouter.explain.visits import Visit

LOST: Final = frozenset({"discard", "reject", "expire"})
NEVER_ROUTED: Final = frozenset(
    {
        losses.PUBLISH_TOPIC_ACL,
        reasons.ACL_DENIED,
        reasons.PERMISSION_DENIED,
        reasons.TOO_MANY_INGRESS_FLOWS,
        losses.TOPIC_PARSE_ERROR,
        losses.MSG_TOO_BIG,
        losses.TTL_EXCEEDED,
        losses.LOOP_DETECTED,
        losses.DUPLICATE,
    }
)
"""Reasons for which a message does not come to be routed in the message VPN that it entered."""


def misses(scene: Scene, visit: Visit) -> list[Step]:
    """A step for each queue, topic endpoint, bridge and client that does not get the message here.

    None where the message did not come to be routed: the step that says so says it for all.
    """
    if scene.twin is None or _ended(visit):
        return []
    groups = (_bridges(scene, visit), _endpoints(scene, visit), _clients(scene, visit))
    found: list[Step] = []
    for what, steps in zip(("bridge", "queue or topic endpoint", "client"), groups, strict=True):
        most = len(steps) if scene.all_misses else limits.EXPLAIN_MISSES
        found += steps[:most]
        if len(steps) > most:
            text = f"{counted(len(steps) - most, what)} more without it"
            found.append(Step(REMARK, NO, text, visit.router, visit.msg_vpn))
    return found


def _ended(visit: Visit) -> bool:
    entered = visit.entered
    came_by = None if entered is None else entered.bridge
    return any(
        event.event in LOST
        and event.reason in NEVER_ROUTED
        and not event.endpoint
        and event.bridge in {"", came_by}
        for event in visit.events
    )


def _rejected(visit: Visit) -> str:
    """Why nobody keeps the message, "" where somebody may."""
    for event in visit.events:
        if event.event == "reject":
            by = f" by {event.endpoint}" if event.endpoint else ""
            return f"it was refused{by}, and then no endpoint keeps it: {in_words(event.reason)}"
    return ""


def _bridges(scene: Scene, visit: Visit) -> list[Step]:
    told = {(event.peer_router, event.peer_vpn, event.bridge) for event, _ in visit.sends}
    told |= {
        (event.peer_router, event.peer_vpn, event.bridge)
        for event in visit.events
        if event.event in LOST and event.bridge
    }
    queues = [event.endpoint for event in visit.events if event.event in KEPT]
    rejected = _rejected(visit)
    steps = []
    for bridge in scene.bridges_out_of(visit):
        if (bridge.node.name, bridge.vpn_name, bridge.name) in told:
            continue
        why, rules = why_not_bridge(scene, visit, bridge, queues)
        if rejected and bridge.up and rules:
            why = rejected
        text = f"bridge {bridge.name} to {bridge.place} does not take it: {why}"
        steps.append(Step(BRIDGE, NO, text, visit.router, visit.msg_vpn, bridge.name, rules=rules))
    return steps


def _endpoints(scene: Scene, visit: Visit) -> list[Step]:
    vpn = scene.vpn(visit)
    loaded = scene.loaded(visit.router)
    if vpn is None or loaded is None:
        return []
    if vpn.plane.spool is None:
        written = loaded.config.msg_vpns[visit.msg_vpn]
        if not written.queues and not written.topic_endpoints:
            return []
        rules = [attribute(loaded, ("guaranteed_msging", "enabled"))]
        text = "no queue or topic endpoint gets it: the router serves none"
        return [Step(ENDPOINT, NO, text, visit.router, visit.msg_vpn, rules=rules)]
    told = {event.endpoint for event in visit.events if event.endpoint}
    rejected = _rejected(visit)
    steps = []
    for (kind, name), endpoint in vpn.endpoints.items():
        if kind not in (QUEUE, TOPIC_ENDPOINT) or name in told:
            continue
        why, rules = why_not_endpoint(scene, visit, endpoint, rejected)
        text = f"{shown_name(endpoint, name)} does not get it: {why}"
        steps.append(Step(ENDPOINT, NO, text, visit.router, visit.msg_vpn, name, rules=rules))
    return steps


def _left_out(scene: Scene, visit: Visit, session: MqttSession, topic: str) -> list[Rule]:
    """The rule of the client's ACL profile that denies it a topic."""
    loaded = scene.loaded(visit.router)
    connection = session.connection
    admission = None if connection is None else connection.admission
    if loaded is None or admission is None:
        return []
    username = admission.username
    return [
        delivery_rule(loaded, visit.msg_vpn, username, session.client_name, topic),
        username_rule(loaded, visit.msg_vpn, username),
    ]


def _clients(scene: Scene, visit: Visit) -> list[Step]:
    vpn = scene.vpn(visit)
    route = scene.route(visit)
    if vpn is None or scene.twin is None:
        return []
    told = {event.client for event in visit.events}
    rejected = _rejected(visit)
    steps = []
    for session in scene.twin.sessions:
        name = session.client_id
        if session.node.name != visit.router or session.vpn != visit.msg_vpn or name in told:
            continue
        client = vpn.clients.get(name)
        if not isinstance(client, MqttSession) or not (client.subscriptions or session.denied):
            continue
        rules: list[Rule] = []
        matching = [] if route is None else scene.matching(route.topic, client)
        if session.denied:
            text, why = next(iter(session.denied.items()))
            said = f"its subscription {text} was not granted: {why}"
        elif not matching:
            said = "no subscription of it matches"
        elif route is not None and client.rule and not client.rule.allows_topic(route.topic):
            said = LEFT_OUT
            rules = _left_out(scene, visit, client, route.topic)
        else:
            said = rejected or "another receiver got it"
            rules = [Rule(f"subscription {one.key}, QoS {one.qos}") for one in matching]
        text = f"client {name} does not get it: {said}"
        steps.append(Step(CLIENT, NO, text, visit.router, visit.msg_vpn, name, rules=rules))
    return steps
