"""Makes the steps of the answer from the trace events of a message.

A message that is traced has an id from the beginning, by which later copies are known; one that is not gets an id
only where it leaves over two links. Where that makes a difference, what is not traced is the rule.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final, final

from vpnrouter.connectors.connector_links import own_queue
from vpnrouter.core import discard_reasons
from vpnrouter.core.discard_reasons import REASONS
from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.dead_letters import CONSUMER
from vpnrouter.core.guaranteed.endpoint import endpoints_of
from vpnrouter.core.guaranteed.endpoint_settings import (
    CONNECTOR_LINK,
    QUEUE,
    SESSION,
    SUBSCRIPTION,
    TOPIC_ENDPOINT,
)
from vpnrouter.explain.mesh_index import attribute, client_of, in_words, publish_rule, username_rule
from vpnrouter.explain.request import (
    BRIDGE,
    CLIENT,
    CONNECTOR,
    ENDPOINT,
    LOSS,
    NO,
    NOTE,
    REMARK,
    YES,
    Arrival,
    Loss,
    Rule,
    Step,
)
from vpnrouter.explain.visits import DELIVERED, DIRECT, KEPT, connector_of, link_of
from vpnrouter.explain.why_bridge import (
    LOST,
    direct_rules,
    entry_rules,
    flow_rules,
    hop_rule,
    misses,
)
from vpnrouter.explain.why_connector import came as came_in
from vpnrouter.explain.why_connector import link_rules, named, taken
from vpnrouter.explain.why_endpoint import (
    behavior_rule,
    lost_rules,
    shown_name,
    subscriptions_for,
    taken_rules,
)
from vpnrouter.topics.grammar import QUEUE_PREFIX

if TYPE_CHECKING:
    from vpnrouter.core.credentials import ClientUsername
    from vpnrouter.explain.mesh import MemoryMesh
    from vpnrouter.explain.mesh_index import MeshIndex
    from vpnrouter.explain.probe import Probe
    from vpnrouter.explain.providers import Entry, Passage
    from vpnrouter.explain.request import Event, Explanation
    from vpnrouter.explain.visits import Visit


Key = tuple[str, str, str, str]
"""Router, message VPN, kind and name of who gets the message."""


def compare(answer: Explanation, memory_mesh: MemoryMesh, probe: Probe, topic: bytes) -> None:
    """Send the message through the mesh, and correct the arrivals of `answer` where it comes more or less often."""
    before = _counted(memory_mesh)
    lost = _lost(memory_mesh)
    probe.send(topic)
    counted = _counted(memory_mesh)
    counted.subtract(before)
    traced: Counter[Key] = Counter()
    known: dict[Key, Arrival] = {}
    for arrival in answer.arrivals:
        key = (arrival.router, arrival.msg_vpn, arrival.kind, arrival.name)
        traced[key] += arrival.count
        known.setdefault(key, arrival)
    for key in sorted(set(traced) | set(counted)):
        if traced[key] == counted[key]:
            continue
        router, msg_vpn, kind, name = key
        answer.arrivals = [
            one for one in answer.arrivals if (one.router, one.msg_vpn, one.kind, one.name) != key
        ]
        first = known.get(key) or Arrival(router, msg_vpn, kind, name, answer.mode, answer.topic)
        if counted[key]:
            answer.arrivals.append(replace(first, count=counted[key]))
        answer.notes.append(
            f"{router}/{msg_vpn}: a message that is not traced comes to {kind} {name}"
            f" {counted[key]} times, a traced one {traced[key]} times: only what is traced has an id there"
        )
    answer.arrivals.sort()
    _compare_losses(answer, lost, _lost(memory_mesh))


def _compare_losses(
    answer: Explanation, before: Counter[tuple[str, str, str]], after: Counter[tuple[str, str, str]]
) -> None:
    after.subtract(before)
    traced: Counter[tuple[str, str, str]] = Counter()
    for loss in answer.losses:
        if loss.event == "discard" and not loss.endpoint and loss.reason in REASONS:
            traced[loss.router, loss.msg_vpn, loss.reason] += loss.count
    for key in sorted(set(traced) | set(after)):
        if traced[key] != after[key]:
            router, msg_vpn, reason = key
            answer.notes.append(
                f"{router}/{msg_vpn}: a message that is not traced is discarded {after[key]} times"
                f" ({reason}), a traced one {traced[key]} times"
            )


def _lost(memory_mesh: MemoryMesh) -> Counter[tuple[str, str, str]]:
    return Counter(
        {
            (router, name, reason): count
            for router, node in memory_mesh.nodes.items()
            for name, vpn in node.router.vpns.items()
            for reason, count in vpn.totals().discards.items()
            if reason in REASONS
        }
    )


def _counted(memory_mesh: MemoryMesh) -> Counter[Key]:
    counts: Counter[Key] = Counter()
    for session in memory_mesh.sessions:
        count = len(session.messages)
        if count:
            counts[session.node.name, session.vpn, CLIENT, session.client_id] = count
    for router, node in memory_mesh.nodes.items():
        for vpn_name, vpn in node.router.vpns.items():
            for (kind, name), endpoint in endpoints_of(vpn).items():
                if kind == CONNECTOR_LINK and endpoint.spooled_count:
                    # What its provider has counts for the provider.
                    counts[router, vpn_name, ENDPOINT, name] = endpoint.spooled_count
                if kind not in (QUEUE, TOPIC_ENDPOINT, SESSION, SUBSCRIPTION):
                    continue
                if kind == SESSION and vpn.clients[client_of(name)].connected:
                    continue
                if endpoint.counters.spooled:
                    counts[router, vpn_name, ENDPOINT, name] = endpoint.counters.spooled
    for passage in memory_mesh.providers.passages:
        if not passage.event.reason:
            event = passage.event
            counts[event.router, event.vpn, CONNECTOR, _link_name(passage)] += 1
    return counts


def _link_name(passage: Passage) -> str:
    return own_queue(passage.connector.name, passage.link.terms.name)


_DENIED: Final = frozenset({discard_reasons.PUBLISH_TOPIC_ACL, refusals.ACL_DENIED})
_SHOWN: Final = {
    "acknowledge": "acknowledged by {client}",
    "redeliver": "delivered again to {client}",
    "dead_letter": "put into the dead message queue",
}


@final
class StepBuilder:
    """Makes the steps of one message. `arrivals` and `losses` fill as it goes.

    `username` is who published, None where that is not known.
    """

    def __init__(self, index: MeshIndex, username: ClientUsername | None = None) -> None:
        self.arrivals: list[Arrival] = []
        self.losses: list[Loss] = []
        self._scene = index
        self._username = username

    def inside(self, visit: Visit) -> list[Step]:
        """Return what happens in one message VPN, and beyond the bridges that lead out of it."""
        steps = self._endpoints(visit)
        steps += self._clients(visit)
        steps += [self._bridge(visit, event, came) for event, came in visit.sends]
        steps += [self._passage(visit, passage, behind) for passage, behind in visit.passed]
        steps += self._sent(visit)
        steps += [self._unsent(visit, came) for came in visit.unsent]
        steps += self._losses(visit)
        return [*steps, *misses(self._scene, visit)]

    # -- endpoints and clients -------------------------------------------------------------------

    def _endpoints(self, visit: Visit) -> list[Step]:
        steps: dict[str, Step] = {}
        through = {_link_name(passage) for passage, _ in visit.passed}
        for event in visit.events:
            if event.event in DELIVERED and (name := self._of_link(visit, event)):
                through.add(name)
        promoted = {event.endpoint for event in visit.events if event.event == "promote"}
        reached = {
            event.client for event in visit.events if event.event in ("deliver", "redeliver")
        }
        for event in visit.events:
            name = event.endpoint
            if event.event in KEPT and name in steps:
                if event.event == "enqueue":
                    steps[name].event = event.event
                continue
            if event.event in KEPT:
                if client_of(name) in reached or name in through:
                    # That the client gets it is reported for the client, and so it is for the provider.
                    continue
                steps[name] = self._kept(visit, event, name in promoted)
                self._arrive(visit, ENDPOINT, name, event)
            elif event.event in _SHOWN and name in steps:
                text = _SHOWN[event.event].format(client=event.client)
                if client_of(name) or event.client.startswith("#bridge") or link_of(event):
                    continue
                steps[name].steps.append(self._step(visit, REMARK, NOTE, text, event))
        return list(steps.values())

    def _kept(self, visit: Visit, event: Event, promoted: bool) -> Step:
        endpoint = self._scene.endpoint(visit, event.endpoint)
        text = f"{shown_name(endpoint, event.endpoint)} keeps it"
        if promoted:
            text += ", as a guaranteed message from here on"
        step = self._step(visit, ENDPOINT, YES, text, event)
        step.name = event.endpoint
        if endpoint is not None:
            step.rules = taken_rules(self._scene, visit, endpoint)
        return step

    def _clients(self, visit: Visit) -> list[Step]:
        steps: dict[tuple[str, str], Step] = {}
        for event in visit.events:
            if event.event != "deliver" or self._of_link(visit, event):
                continue
            key = (event.client, event.endpoint)
            through = event.endpoint and not client_of(event.endpoint)
            how = f" from {event.endpoint}" if through else ""
            if not through:
                self._arrive(visit, CLIENT, event.client, event)
            if key in steps:
                steps[key].count += 1
                continue
            text = f"client {event.client} gets it{how}"
            step = self._step(visit, CLIENT, YES, text, event)
            step.name = event.client
            step.rules = self._client_rules(visit, event.client)
            steps[key] = step
        return list(steps.values())

    def _client_rules(self, visit: Visit, client: str) -> list[Rule]:
        vpn, route = self._scene.vpn(visit), self._scene.route(visit)
        subscriber = None if vpn is None else vpn.clients.get(client)
        if route is None or subscriber is None:
            return []
        matched = subscriptions_for(route, subscriber)
        matched = matched or self._scene.matching(route.topic, subscriber)
        return [Rule(f"subscription {one.key}, QoS {one.qos}") for one in matched]

    def _arrive(self, visit: Visit, kind: str, name: str, event: Event) -> None:
        self.arrivals.append(
            Arrival(visit.router, visit.msg_vpn, kind, name, event.mode, self._scene.topic(visit))
        )

    # -- bridges ---------------------------------------------------------------------------------

    def _bridge(self, visit: Visit, event: Event, came: Visit | None) -> Step:
        index = self._scene
        bridge = index.bridge(event.peer_router, event.peer_vpn, event.bridge)
        step = self._step(
            visit, BRIDGE, YES, f"bridge {event.bridge} takes it to {event.peer}", event
        )
        step.name = event.bridge
        if bridge is not None:
            if event.mode == DIRECT:
                step.rules = direct_rules(index, visit, bridge)
            else:
                step.rules = flow_rules(bridge)
        if came is None:
            text = "no row tells of its arrival there"
            step.steps.append(self._step(visit, REMARK, NOTE, text, event))
            return step
        if bridge is not None and came.entered is not None:
            step.rules += entry_rules(bridge, came.entered.hops, came.entered.topic)
        if event.ts_ns >= 0 and came.entered is not None and came.entered.ts_ns >= 0:
            step.link_ns = came.entered.ts_ns - event.ts_ns
        topic = index.topic(came)
        if topic != index.topic(visit):
            step.text += f", where it is {topic}"
        step.steps = self.inside(came)
        return step

    def _unsent(self, visit: Visit, came: Visit) -> Step:
        text = f"it came to {came.place}, though no row here tells that it was sent"
        step = Step(BRIDGE, YES, text, visit.router, visit.msg_vpn)
        step.steps = self.inside(came)
        return step

    # -- connectors ------------------------------------------------------------------------------

    def _passage(self, visit: Visit, passage: Passage, behind: list[Visit | None]) -> Step:
        event = passage.event
        step = self._step(visit, CONNECTOR, NO if event.reason else YES, taken(passage), event)
        step.name = _link_name(passage)
        step.reason = event.reason
        step.rules = link_rules(passage.connector, passage.link.terms)
        if event.reason == discard_reasons.LOOP_DETECTED:
            # It is counted, and has no row. What can have no topic is a dead letter, which has one.
            loss = Loss(visit.router, visit.msg_vpn, "discard", event.reason, step.name)
            self.losses.append(loss)
        step.steps = [self._step(visit, REMARK, NOTE, text, event) for text in passage.changes]
        if event.reason:
            return step
        self.arrivals.append(
            Arrival(visit.router, visit.msg_vpn, CONNECTOR, step.name, event.mode, event.topic)
        )
        for entry, came in zip(passage.entries, behind, strict=True):
            step.steps.append(self._entry(entry, came))
        return step

    def _of_link(self, visit: Visit, event: Event) -> str:
        """Return the connector's link, "connector/link", to which the row of a delivery belongs; "" for none."""
        found = self._scene.link_of(visit, event)
        if found is not None:
            return own_queue(found[0].name, found[1].terms.name)
        return connector_of(event) if link_of(event) else ""

    def _sent(self, visit: Visit) -> list[Step]:
        """Return what connectors took out in fact, by the rows of a trace."""
        known = {_link_name(passage) for passage, _ in visit.passed}
        steps = []
        for event in visit.events:
            name = self._of_link(visit, event) if event.event == "deliver" else ""
            if not name or name in known:
                continue
            found = self._scene.link_of(visit, event)
            step = self._step(visit, CONNECTOR, YES, f"{link_of(event)} takes it", event)
            step.name = name
            if found is not None:
                connector, link = found
                step.text = f"{named(connector, link.terms.name)} takes it to {connector.address}"
                step.rules = link_rules(connector, link.terms)
            self._arrive(visit, CONNECTOR, name, event)
            steps.append(step)
        return steps

    def _entry(self, entry: Entry, came: Visit | None) -> Step:
        connector = entry.connector
        router, vpn = connector.node.name, connector.vpn_name
        verdict = NO if entry.reason or entry.waits else YES
        name = own_queue(connector.name, entry.link.terms.name)
        step = Step(CONNECTOR, verdict, came_in(entry), router, vpn, name, reason=entry.reason)
        step.mode, step.topic = entry.mode, entry.topic
        step.rules = link_rules(connector, entry.link.terms)
        step.steps = [Step(REMARK, NOTE, text, router, vpn) for text in entry.changes]
        if came is not None:
            step.steps += self.inside(came)
        return step

    # -- losses ----------------------------------------------------------------------------------

    def _losses(self, visit: Visit) -> list[Step]:
        steps: dict[tuple[str, str, str, str], Step] = {}
        for event in visit.events:
            if event.event not in LOST:
                continue
            key = (event.event, event.endpoint, event.bridge, event.reason)
            if key in steps:
                steps[key].count += 1
                continue
            steps[key] = self._lost(visit, event)
        return list(steps.values())

    def _lost(self, visit: Visit, event: Event) -> Step:
        verb = {"reject": "refused", "expire": "expired"}.get(event.event, "discarded")
        where = ""
        endpoint = self._scene.endpoint(visit, event.endpoint) if event.endpoint else None
        if event.endpoint:
            where = f" by {shown_name(endpoint, event.endpoint)}"
        elif link_of(event):
            where = f" before {link_of(event)}"
        elif event.bridge and not self._entering(visit, event):
            where = f" before bridge {event.bridge} to {event.peer}"
        step = self._step(visit, LOSS, NO, f"{verb}{where}: {in_words(event.reason)}", event)
        step.name = event.endpoint or event.bridge or event.client
        step.reason = event.reason
        step.rules = self._why_lost(visit, event)
        self.losses.append(
            Loss(
                visit.router,
                visit.msg_vpn,
                event.event,
                event.reason,
                step.name,
                endpoint=bool(event.endpoint),
            )
        )
        return step

    def _why_lost(self, visit: Visit, event: Event) -> list[Rule]:
        index = self._scene
        loaded = index.loaded(visit.router)
        if loaded is None:
            return []
        reason = event.reason
        if event.endpoint:
            endpoint = index.endpoint(visit, event.endpoint)
            if endpoint is None:
                return []
            rules = lost_rules(index, visit, endpoint, reason)
            if event.event == "reject" and reason != CONSUMER:
                rules += behavior_rule(loaded, visit.msg_vpn, endpoint)
                if index.topic(visit).startswith(QUEUE_PREFIX):
                    rules.append(Rule("a queue that is named and shut down rejects in any case"))
                elif not endpoint.settings.rejects():
                    rules.append(Rule("over a bridge, one that rejects speaks for all that match"))
                rules += self._on_reject(visit)
            return rules
        if reason in _DENIED and self._username is not None:
            username = self._username
            topic = index.topic(visit)
            return [
                publish_rule(loaded, visit.msg_vpn, username, event.client, topic),
                username_rule(loaded, visit.msg_vpn, username),
            ]
        if reason == discard_reasons.MSG_TOO_BIG and (
            not event.bridge or self._entering(visit, event)
        ):
            return [attribute(loaded, ("msg_vpns", visit.msg_vpn, "max_msg_size"))]
        if reason == discard_reasons.TTL_EXCEEDED:
            bridge = index.bridge(visit.router, visit.msg_vpn, event.bridge)
            if bridge is None and visit.entered is not None:
                bridge = index.bridge(visit.router, visit.msg_vpn, visit.entered.bridge)
            return [] if bridge is None else [hop_rule(bridge, event.hops)]
        if reason == discard_reasons.LOOP_DETECTED:
            return [Rule(f"visited: {', '.join((*visit.path, visit.place))}")]
        if reason == discard_reasons.NO_SUBSCRIPTION_MATCH:
            route = index.route(visit)
            if route is not None and route.missing_queue:
                return [Rule(f"the topic names a queue that is not there: {route.topic}")]
        if reason == refusals.TOO_MANY_INGRESS_FLOWS:
            return [attribute(loaded, ("msg_vpns", visit.msg_vpn, "max_ingress_flow_count"))]
        return []

    @staticmethod
    def _entering(visit: Visit, event: Event) -> bool:
        """Return whether a loss is about the way in: the row names the own bridge, and where it came from."""
        entered = visit.entered
        return entered is not None and (event.bridge, event.peer) == (entered.bridge, entered.peer)

    def _on_reject(self, visit: Visit) -> list[Rule]:
        """Return what a bridge does with a message that is refused."""
        entered = visit.entered
        name = "" if entered is None else entered.bridge
        bridge = self._scene.bridge(visit.router, visit.msg_vpn, name)
        if bridge is None:
            return []
        return [attribute(bridge.node.loaded, (*bridge.path, "on_reject"))]

    def _step(self, visit: Visit, kind: str, verdict: str, text: str, event: Event) -> Step:
        return Step(
            kind,
            verdict,
            text,
            visit.router,
            visit.msg_vpn,
            event=event.event,
            mode=event.mode,
            topic=event.topic,
            since_ns=event.since_ingress_ns if event.ts_ns >= 0 else -1,
        )
