"""Writes advice about loops, links, bridges, endpoints, clocks and message VPNs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from vpnrouter.report.advice.context import (
    Advice,
    MeshContext,
    at,
    bridge_named,
    bridge_of,
    bytes_of,
    listed,
    messages_of,
    place_of,
    quoted,
    worst_of,
)
from vpnrouter.report.page.contents import size
from vpnrouter.report.rules.context import lasting, percent
from vpnrouter.report.schema import INFO, Finding
from vpnrouter.report.structure.cuts import RedundantLink
from vpnrouter.report.structure.graph import Place, goal_of, start_of
from vpnrouter.report.visited import is_provider
from vpnrouter.text import counted

MOVE_SHARE: Final = 0.8
"""Share of a message VPN's crossings that goes to and from one other router before a move there is advised."""

MOVE_CLIENTS: Final = 0.2
"""Share of what happens in it that its own clients may have: they would be farther away."""

MOVE_MESSAGES: Final = 1_000
"""Crossings below which a move is not worth its while."""


def relieve_endpoint(_: MeshContext, findings: Sequence[Finding]) -> Iterator[Advice]:
    """Advise against `head_of_line` of one endpoint, with the `stalled_bridge` that it causes."""
    blocks = [finding for finding in findings if finding.kind == "head_of_line"]
    first = blocks[0]
    seconds = sum(block.value or 0.0 for block in blocks)
    stalled = [finding for finding in findings if finding.kind == "stalled_bridge"]
    who = f"endpoint {quoted(first.endpoint)}" if first.endpoint else "the endpoint that refuses"
    behind = f", and with it {bridge_of(first)}" if first.bridge else ""
    held = (
        f" {counted(messages_of(stalled), 'message')} stood before the bridge." if stalled else ""
    )
    yield Advice(
        action="relieve_endpoint",
        severity=worst_of(findings),
        **place_of(first),
        endpoint=first.endpoint,
        gain=messages_of(findings),
        advice=f"Give {who} in {at((first.router, first.vpn))} a higher quota or faster consumers, or let"
        " the bridge that fills it feed a queue of its own (or on_reject: park).",
        evidence=f"It refused {counted(messages_of(blocks), 'time')} for {lasting(seconds)} in all"
        f" ({first.reason or 'no reason given'}) what came first{behind}.{held}",
        effect=f"What waits behind it goes on {lasting(seconds)} sooner.",
    )


def spread_partitions(_: MeshContext, findings: Sequence[Finding]) -> Iterator[Advice]:
    """Advise against `skewed_partition` of one queue."""
    first = findings[0]
    yield Advice(
        action="spread_partitions",
        severity=worst_of(findings),
        **place_of(first, "router", "vpn", "endpoint"),
        gain=messages_of(findings),
        advice=f"Give the messages of queue {quoted(first.endpoint)} in {at((first.router, first.vpn))} a partition"
        " key with more values, or one that spreads them more evenly.",
        evidence=first.detail
        or f"Its largest partition takes {first.value or 0.0:.1f} times the mean.",
        effect=f"One consumer has up to {first.value or 0.0:.1f} times less to do, and the others their"
        " share.",
    )


def set_clock(_: MeshContext, findings: Sequence[Finding]) -> Iterator[Advice]:
    """Advise against `clock_skew` and `clock_moved` of one router."""
    first = findings[0]
    corrected = all(finding.kind == "clock_skew" and not finding.reason for finding in findings)
    until = "corrected by the difference" if corrected else "not corrected"
    yield Advice(
        action="set_clock",
        severity=worst_of(findings),
        **place_of(first, "router", "peer_router"),
        gain=0,
        advice=f"Set the clock of router {first.router}, and have it follow a time server.",
        evidence=first.detail or f"It is {lasting(abs(first.value or 0.0))} off.",
        effect="Times to live and the times in traces mean the same on all routers; until then latencies in"
        f" this report are {until}.",
    )


def moves(context: MeshContext) -> Iterator[Advice]:
    """Yield message VPNs whose traffic crosses to and from one other router and hardly concerns clients here. On that
    router, their bridges would join message VPNs of one router.
    """
    crossing: dict[Place, dict[str, tuple[int, int]]] = {}
    for edge in context.edges:
        start, goal = start_of(edge), goal_of(edge)
        for here, there in ((start, goal), (goal, start)):
            messages, total = crossing.setdefault(here, {}).get(there[0], (0, 0))
            more = edge["messages"] or 0, edge["bytes"] or 0
            crossing[here][there[0]] = (messages + more[0], total + more[1])
    for place, peers in sorted(crossing.items()):
        crossed = sum(messages for messages, _ in peers.values())
        router, (messages, total) = max(peers.items(), key=lambda one: (one[1][0], one[0]))
        node = context.nodes.get(place)
        if node is None or not node["traced"] or router == place[0] or crossed < MOVE_MESSAGES:
            continue
        local = sum(node[name] or 0 for name in ("ingress", "delivered", "spooled"))
        if messages < MOVE_SHARE * crossed or local > MOVE_CLIENTS * (local + crossed):
            continue
        yield Advice(
            action="move_vpn",
            severity=INFO,
            router=place[0],
            vpn=place[1],
            peer_router=router,
            gain=messages,
            advice=f"Move message VPN {place[1]} from router {place[0]} to router {router}, or bridge past it.",
            evidence=f"{counted(messages, 'traced message')}, {percent(messages / crossed)} of all that"
            f" crosses to and from it, come from router {router} or go there; its own clients and queues"
            f" had {counted(local, 'message')}.",
            effect=f"{counted(messages, 'message')} and {size(total)} of traced payload have one network hop"
            " less.",
        )


_CYCLE: Final = re.compile(
    r"(?:.*? loop )?([^>]+(?:>[^>]+?)+?)\.?(?: And [\d,]+ more of this kind\.)?"
)
"""A loop as its finding draws it: a/x>b/y>a/x."""


def break_loop(context: MeshContext, findings: Sequence[Finding]) -> Iterator[Advice]:
    """Yield a `loop`: the bridge that carries the least is to drop what loops."""
    for finding in findings:
        cycle = _cycle(finding)
        edges = [edge for step in pairwise(cycle) if (edge := context.busiest(*step)) is not None]
        messages = finding.messages or 0
        if edges:
            least = min(edges, key=lambda edge: (bool(edge["cut"]), edge["messages"] or 0))
            others = [edge for edge in edges if edge is not least]
            filters = context.shared([least, *others])
            what = (
                f"the remote subscription {listed(map(quoted, filters))}"
                if filters
                else "the remote subscription that brings back what goes round"
            )
            advice = (
                f"Drop {what} on {bridge_named(least)}, or except what {at(cycle[0])} has already."
            )
            place = _ends(least)
            kept = f"; this bridge carries the least of the loop, {counted(least['messages'] or 0, 'message')}"
        else:
            outside = [name for place in cycle if is_provider(name := "/".join(place))]
            what = f"links to and from {outside[0]}" if outside else "remote subscriptions"
            advice = (
                f"Drop one of the {what} that make a loop at {at((finding.router, finding.vpn))}."
            )
            place = place_of(finding)
            filters, kept = [], ""
        yield Advice(
            action="break_loop",
            severity=finding.severity,
            **place,
            topic=filters[0] if len(filters) == 1 else None,
            gain=messages,
            advice=advice,
            evidence=f"{finding.detail.rstrip('.') or 'Messages go round'}{kept}.",
            effect=f"{counted(messages, 'message')} and {size(finding.bytes or 0)} of traced payload stop going"
            " round.",
        )


def narrow_stopped_loop(_: MeshContext, findings: Sequence[Finding]) -> Iterator[Advice]:
    """Advise against `loop_stopped` of one bridge: it need not bring what is discarded."""
    first, messages = findings[0], messages_of(findings)
    over = bridge_of(first) if first.bridge else f"the bridges into {at((first.router, first.vpn))}"
    reasons = listed(finding.reason or "no reason given" for finding in findings)
    yield Advice(
        action="break_loop",
        severity=worst_of(findings),
        **place_of(first),
        gain=messages,
        advice=f"Narrow the remote subscriptions of {over} to what does not come back, or set a lower"
        " max_ttl where it enters.",
        evidence=f"{counted(messages, 'traced message')} came over it only to be discarded ({reasons}).",
        effect=f"{counted(messages, 'message')} and {size(bytes_of(findings))} of traced payload need not"
        " cross.",
    )


def drop_redundant_path(_: MeshContext, findings: Sequence[Finding]) -> Iterator[Advice]:
    """Advise against `two_ways` and `duplicate` in one message VPN."""
    ways = [finding for finding in findings if finding.kind == "two_ways"]
    first = (ways or list(findings))[0]
    messages = messages_of(ways or findings)
    copies = int(sum(way.value or 0.0 for way in ways or findings))
    where = at((first.router, first.vpn))
    if ways:
        advice = (
            f"Let what comes to {where} by two ways come by one: take its topics out of the remote"
            " subscriptions of one of the two bridges."
        )
    else:
        who = first.endpoint or first.client or first.bridge or "?"
        advice = (
            f"See why {who} in {where} gets messages twice: overlapping bridges, or a sender that sends"
            " again what was not acknowledged."
        )
    yield Advice(
        action="drop_way",
        severity=worst_of(findings),
        **place_of(first),
        client=first.client,
        endpoint=first.endpoint,
        gain=messages,
        advice=advice,
        evidence=first.detail or f"{counted(messages, 'traced message')} came more than once.",
        effect=f"{counted(copies, 'copy', 'copies')} less of {counted(messages, 'traced message')}.",
    )


def repair_link(context: MeshContext, findings: Sequence[Finding]) -> Iterator[Advice]:
    """Advise against `flapping_link` and `stalled_bridge` of one bridge."""
    first = findings[0]
    flaps = [finding for finding in findings if finding.kind == "flapping_link"]
    stalls = [finding for finding in findings if finding.kind == "stalled_bridge"]
    start = (first.peer_router or "", first.peer_vpn or "")
    edge = context.busiest(start, (first.router or "", first.vpn or ""))
    messages = (edge["messages"] or 0) if edge else messages_of(findings)
    only = ", and nothing leads around it" if edge and edge["cut"] else ""
    details = [finding.detail for finding in findings if finding.detail]
    stood = sum(stall.value or 0.0 for stall in stalls)
    downs = int(sum(flap.value or 0.0 for flap in flaps))
    gains = [
        *([f"{counted(downs, 'interruption')} less"] if flaps else []),
        *([f"{lasting(stood)} less without messages"] if stalls else []),
    ]
    task = "Find out why the link of" if flaps else "Find out what holds up"
    hints = (
        " goes down: the network, its heartbeat interval, a router that restarts."
        if flaps
        else ": a full queue behind it, its window, or a peer that stopped reading."
    )
    yield Advice(
        action="repair_link",
        severity=worst_of(findings),
        **place_of(first),
        gain=messages,
        advice=f"{task} {bridge_of(first)}{hints}",
        evidence=" ".join(details) or "Its link did not hold, or stood still.",
        effect=f"{' and '.join(gains)}, for {counted(messages, 'traced message')} that cross{only}.",
    )


def relieve_bridge(context: MeshContext, findings: Sequence[Finding]) -> Iterator[Advice]:
    """Advise against `hot_bridge`: less over it, or a second bridge beside it."""
    first, messages = findings[0], messages_of(findings)
    wasted = [
        finding
        for finding in context.findings
        if finding.kind in {"over_broad", "wasted_crossing"}
        and place_of(finding) == place_of(first)
    ]
    cure = (
        "narrow its remote subscriptions, which bring what nobody receives"
        if wasted
        else "split its remote subscriptions between it and a second bridge, or narrow them"
    )
    spare = (
        f" {counted(messages_of(wasted), 'message')} on it were wanted by nobody." if wasted else ""
    )
    yield Advice(
        action="relieve_bridge",
        severity=worst_of(findings),
        **place_of(first),
        gain=messages,
        advice=f"Relieve {bridge_of(first)}: {cure}.",
        evidence=f"{counted(messages, 'traced message')}, {percent(first.value or 0.0)} of its load, were"
        f" discarded before it (transmit congestion).{spare}",
        effect=f"{counted(messages, 'message')} and {size(bytes_of(findings))} of traced payload are no"
        " longer lost.",
    )


def add_link(way: RedundantLink, edges: Sequence[dict[str, Any]]) -> Advice:
    """Return a link that gives as many pairs as possible a second path."""
    cut = sorted((edges[row] for row in way.rows), key=lambda edge: -(edge["messages"] or 0))
    addition = "a second link beside the one" if way.beside else "a link"
    if way.past is not None:
        lost = f"message VPN {at(way.past)} holds together what falls apart without it"
    elif len(way.rows) == 1:
        lost = f"{bridge_named(cut[0])} is the only link there"
    else:
        named = listed(bridge_named(edge) for edge in cut)
        lost = f"each of these holds together what falls apart without it: {named}"
    place: dict[str, str | None] = {}
    if way.past is not None:
        place = {"router": way.past[0], "vpn": way.past[1]}
    elif cut:
        place = _ends(cut[0])
    return Advice(
        action="add_link",
        severity=INFO,
        **place,
        gain=way.messages,
        advice=f"Add {addition} between {at(way.one)} and {at(way.other)}.",
        evidence=f"Today {lost}; {counted(way.messages, 'traced message')} took the way.",
        effect=f"{counted(way.pairs, 'pair')} of message VPNs get a second way.",
    )


def _cycle(finding: Finding) -> list[Place]:
    match = _CYCLE.fullmatch(finding.detail)
    if match is None:
        return []
    places = [step.partition("/") for step in match[1].split(">")]
    return [(router, vpn) for router, _, vpn in places] if places[0] == places[-1] else []


def _ends(edge: dict[str, Any]) -> dict[str, str | None]:
    start = start_of(edge)
    return {
        "router": edge["to_router"],
        "vpn": edge["to_vpn"],
        "peer_router": start[0],
        "peer_vpn": start[1],
        "bridge": edge["bridge"],
    }
