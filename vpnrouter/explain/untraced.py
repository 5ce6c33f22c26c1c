"""Hold what a traced message does against the counters of a mesh in which nothing is traced.

A message that is traced has an id from the beginning, by which later copies are known; one that is not gets an id
only where it leaves over two links. Where that makes a difference, what is not traced is the rule.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from vpnrouter.core.guaranteed.terms import QUEUE, SESSION, TOPIC_ENDPOINT
from vpnrouter.core.losses import REASONS
from vpnrouter.core.vpn import totals
from vpnrouter.explain.explanation import CLIENT, ENDPOINT, Arrival
from vpnrouter.explain.scene import client_of

if TYPE_CHECKING:
    from vpnrouter.explain.explanation import Explanation
    from vpnrouter.explain.probe import Probe
    from vpnrouter.explain.twin import Twin

Key = tuple[str, str, str, str]
"""Router, message VPN, kind and name of who gets the message."""


def compare(answer: Explanation, twin: Twin, probe: Probe, topic: bytes) -> None:
    """Send the message through `twin`, and correct the arrivals of `answer` where it comes more or less often."""
    before = _counted(twin)
    lost = _lost(twin)
    probe.send(topic)
    counted = _counted(twin)
    counted.subtract(before)
    told: Counter[Key] = Counter()
    known: dict[Key, Arrival] = {}
    for arrival in answer.arrivals:
        key = (arrival.router, arrival.msg_vpn, arrival.kind, arrival.name)
        told[key] += arrival.count
        known.setdefault(key, arrival)
    for key in sorted(set(told) | set(counted)):
        if told[key] == counted[key]:
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
            f" {counted[key]} times, a traced one {told[key]} times: only what is traced has an id there"
        )
    answer.arrivals.sort()
    _compare_losses(answer, lost, _lost(twin))


def _compare_losses(
    answer: Explanation, before: Counter[tuple[str, str, str]], after: Counter[tuple[str, str, str]]
) -> None:
    after.subtract(before)
    told: Counter[tuple[str, str, str]] = Counter()
    for loss in answer.losses:
        if loss.event == "discard" and not loss.endpoint and loss.reason in REASONS:
            told[loss.router, loss.msg_vpn, loss.reason] += loss.count
    for key in sorted(set(told) | set(after)):
        if told[key] != after[key]:
            router, msg_vpn, reason = key
            answer.notes.append(
                f"{router}/{msg_vpn}: a message that is not traced is discarded {after[key]} times"
                f" ({reason}), a traced one {told[key]} times"
            )


def _lost(twin: Twin) -> Counter[tuple[str, str, str]]:
    return Counter(
        {
            (router, name, reason): count
            for router, node in twin.nodes.items()
            for name, vpn in node.router.vpns.items()
            for reason, count in totals(vpn).discards.items()
            if reason in REASONS
        }
    )


def _counted(twin: Twin) -> Counter[Key]:
    found: Counter[Key] = Counter()
    for session in twin.sessions:
        count = len(session.messages)
        if count:
            found[session.node.name, session.vpn, CLIENT, session.client_id] = count
    for router, node in twin.nodes.items():
        for vpn_name, vpn in node.router.vpns.items():
            for (kind, name), endpoint in vpn.endpoints.items():
                if kind not in (QUEUE, TOPIC_ENDPOINT, SESSION):
                    continue
                if kind == SESSION and vpn.clients[client_of(name)].connected:
                    continue
                if endpoint.counters.spooled:
                    found[router, vpn_name, ENDPOINT, name] = endpoint.counters.spooled
    return found
