"""Answers where a message goes and why, from a mesh in memory or from the trace of a real message.

The mesh in memory is made of the router's own objects (`mesh.py`). The message is sent through it, its trace events
give the steps, and the same objects give the reasons.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from vpnrouter import limits
from vpnrouter.errors import OperationError
from vpnrouter.explain.mesh import MemoryMesh
from vpnrouter.explain.mesh_index import MeshIndex
from vpnrouter.explain.probe import Probe, hypothetical
from vpnrouter.explain.request import (
    NO,
    PUBLISH,
    REMARK,
    VISIT,
    YES,
    BridgeState,
    ConnectorState,
    ExplainRequest,
    Explanation,
    Loss,
    Step,
    UsageError,
)
from vpnrouter.explain.steps import StepBuilder, compare
from vpnrouter.explain.visits import INGRESS, Visit, connector_of, visits_of
from vpnrouter.explain.why_bridge import state_rule
from vpnrouter.explain.why_connector import state_rule as connector_rule
from vpnrouter.topics.grammar import parse_topic

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vpnrouter.config.router import Loaded
    from vpnrouter.explain.live import Live
    from vpnrouter.explain.request import Event

CLIENTS_UNKNOWN = (
    "clients that subscribe now are not known here; --subscriber adds some, --url asks the router"
)
GOES_ROUND = (
    "connectors that speak MQTT 3.1.1 tell no path, and the message goes round; the answer is cut"
)
QUEUES_EMPTY = "queues are taken to be empty; --url asks the router how full they are"


def explain(
    mesh: Sequence[Loaded], request: ExplainRequest, live: Live | None = None
) -> Explanation:
    """Return what becomes of the message of `question` in the mesh of these configurations.

    `live` adds what running routers know: clients' subscriptions, and how full queues are.

    Raises TopicError for a topic that is none, UsageError for a question about something that is not in the
    mesh, OperationError for configurations that make no mesh.
    """
    request.check()
    topic = request.topic.encode("utf-8", "surrogateescape")
    parse_topic(topic)
    wall_ns = time.time_ns()
    memory_mesh, notes = _mesh_in_memory(mesh, request, live, wall_ns, traced=True)
    probe = Probe(memory_mesh, request)
    probe.send(topic)
    index = MeshIndex(
        memory_mesh, request.content, request.properties, all_misses=request.all_misses
    )
    answer = Explanation(
        request.topic,
        request.mode,
        request.router,
        request.msg_vpn,
        probe.session.client_id,
        probe.client_username,
        len(request.content),
        answer=probe.session.answer,
        notes=notes,
    )
    _fill(answer, index, probe)
    answer.bridges = _states(memory_mesh)
    answer.connectors = _connector_states(memory_mesh)
    if memory_mesh.providers.cut:
        answer.notes.append(GOES_ROUND)
    if memory_mesh.restless:
        answer.notes.append(
            f"after {limits.EXPLAIN_ROUNDS:,} rounds messages were still under way; the answer is cut"
        )
    untraced, _ = _mesh_in_memory(mesh, request, live, wall_ns, traced=False)
    compare(answer, untraced, Probe(untraced, request), topic)
    return answer


def _mesh_in_memory(
    mesh: Sequence[Loaded],
    request: ExplainRequest,
    live: Live | None,
    wall_ns: int,
    *,
    traced: bool,
) -> tuple[MemoryMesh, list[str]]:
    """Return the mesh with all subscribers, and the notes about it."""
    observed = None if live is None else live.observed
    memory_mesh = MemoryMesh(mesh, wall_ns, observed, traced=traced)
    node = memory_mesh.nodes.get(request.router)
    if node is None:
        known = ", ".join(sorted(memory_mesh.nodes)) or "none"
        raise UsageError(f"no configuration describes router {request.router}; known: {known}")
    if request.msg_vpn not in node.router.vpns:
        known = ", ".join(sorted(node.router.vpns)) or "none"
        raise UsageError(
            f"router {request.router} has no message VPN {request.msg_vpn}; it has: {known}"
        )
    notes = [CLIENTS_UNKNOWN, QUEUES_EMPTY] if live is None else live.enter(memory_mesh)
    known_clients = () if live is None else live.subscribers
    notes += hypothetical(memory_mesh, (*known_clients, *request.subscribers))
    return memory_mesh, notes


def _fill(answer: Explanation, index: MeshIndex, probe: Probe) -> None:
    builder = StepBuilder(index, probe.username)
    text = f"{_who(answer)} publishes {answer.topic} ({answer.mode})"
    root = Step(PUBLISH, YES, text, answer.router, answer.msg_vpn, answer.client, mode=answer.mode)
    root.topic = answer.topic
    root.rules = probe.rules()
    visits = visits_of(probe.events, probe.passages)
    refused = probe.refused
    if refused:
        root.verdict = NO
        root.text = f"{_who(answer)} cannot publish {answer.topic}: {refused}"
        root.reason = refused
        answer.losses.append(Loss(answer.router, answer.msg_vpn, "refused", refused, answer.client))
    for visit in visits:
        root.steps += builder.inside(visit)
    answer.steps = [root]
    answer.arrivals = sorted(builder.arrivals)
    answer.losses += sorted(builder.losses)


def _who(answer: Explanation) -> str:
    as_whom = f" as {answer.client_username}" if answer.client_username else ""
    return f"{answer.router}/{answer.msg_vpn}: client {answer.client}{as_whom}"


def _states(memory_mesh: MemoryMesh) -> list[BridgeState]:
    states = []
    for bridge in memory_mesh.bridges:
        remote = ""
        if bridge.half is not None and bridge.remote is not None:
            remote = f"{bridge.half.link.peer_router}/{bridge.remote.name}"
        states.append(
            BridgeState(
                bridge.node.name,
                bridge.vpn_name,
                bridge.name,
                bridge.up,
                remote,
                "" if bridge.up else bridge.why,
                state_rule(bridge),
            )
        )
    return states


def _connector_states(memory_mesh: MemoryMesh) -> list[ConnectorState]:
    return [
        ConnectorState(
            connector.node.name,
            connector.vpn_name,
            connector.name,
            connector.up,
            connector.address,
            connector.why,
            connector_rule(connector),
        )
        for connector in memory_mesh.connectors
    ]


def explain_trace(
    trace_id: str, events: Sequence[Event], mesh: Sequence[Loaded] = ()
) -> Explanation:
    """Return what became of a message that was sent, from its trace events (trace_files.py).

    With the configurations of the mesh each step says what decides in it as they are written now.

    Raises OperationError where there is no event.
    """
    if not events:
        raise OperationError(f"no trace of message {trace_id}")
    memory_mesh = MemoryMesh(mesh, time.time_ns()) if mesh else None
    index = MeshIndex(memory_mesh)
    visits = visits_of(events)
    root = next((one for one in visits if one.entered and one.entered.event == INGRESS), visits[0])
    first = root.entered
    answer = Explanation(
        first.topic if first else index.topic(root),
        first.mode if first else "",
        root.router,
        root.msg_vpn,
        first.client if first else "",
        size=max(0, first.size) if first else 0,
        trace_id=trace_id,
    )
    if first is None or first.event != INGRESS:
        answer.notes.append(
            "no row tells where it was published; the files may be gone, or elsewhere"
        )
    if memory_mesh is None:
        answer.notes.append("without configurations nobody can say which rules decided")
    else:
        answer.notes.append("rules are those of the configurations as they are now")
    # Who published is in the rows, but not as which client username.
    builder = StepBuilder(index)
    for visit in visits:
        answer.steps.append(_root(visit, builder))
    answer.arrivals = sorted(builder.arrivals)
    answer.losses = sorted(builder.losses)
    return answer


def _root(visit: Visit, builder: StepBuilder) -> Step:
    entered = visit.entered
    if entered is None:
        text = f"{visit.place}: it was here, no row tells how it came"
        step = Step(REMARK, YES, text, visit.router, visit.msg_vpn)
    elif entered.event == INGRESS and connector_of(entered):
        text = f"{visit.place}: connector {connector_of(entered)} brings in {entered.topic} ({entered.mode})"
        step = Step(VISIT, YES, text, visit.router, visit.msg_vpn, entered.client)
    elif entered.event == INGRESS:
        text = f"{visit.place}: client {entered.client} publishes {entered.topic} ({entered.mode})"
        step = Step(PUBLISH, YES, text, visit.router, visit.msg_vpn, entered.client)
    else:
        text = f"{visit.place}: it came over bridge {entered.bridge} from {entered.peer}"
        step = Step(VISIT, YES, text, visit.router, visit.msg_vpn, entered.bridge)
    if entered is not None:
        step.event, step.mode, step.topic = entered.event, entered.mode, entered.topic
    step.steps = builder.inside(visit)
    return step
