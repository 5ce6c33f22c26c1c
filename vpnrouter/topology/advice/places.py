"""Advice about routers, message VPNs and endpoints: clocks, blockers, partitions, moves."""

from collections.abc import Iterator, Sequence
from typing import Final

from vpnrouter.topology.advice.item import Item, messages_of, place_of, worst_of
from vpnrouter.topology.advice.scene import Scene, at, bridge_of
from vpnrouter.topology.findings import INFO, Finding
from vpnrouter.topology.page.figures import size
from vpnrouter.topology.structure.graph import Place, goal_of, start_of
from vpnrouter.topology.trouble.words import counted, lasting, percent

MOVE_SHARE: Final = 0.8
"""Share of a message VPN's crossings that goes to and from one other router before a move there is advised."""

MOVE_CLIENTS: Final = 0.2
"""Share of what happens in it that its own clients may have: they would be farther away."""

MOVE_MESSAGES: Final = 1_000
"""Crossings below which a move is not worth its while."""


def relieve_endpoint(_: Scene, findings: Sequence[Finding]) -> Iterator[Item]:
    """`head_of_line` of one endpoint, with the `stalled_bridge` that comes of it."""
    blocks = [one for one in findings if one.kind == "head_of_line"]
    first = blocks[0]
    seconds = sum(one.value or 0.0 for one in blocks)
    stalled = [one for one in findings if one.kind == "stalled_bridge"]
    who = f"endpoint {first.endpoint}" if first.endpoint else "the endpoint that refuses"
    behind = f", and with it {bridge_of(first)}" if first.bridge else ""
    held = (
        f" {counted(messages_of(stalled), 'message')} stood before the bridge." if stalled else ""
    )
    yield Item(
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


def spread_partitions(_: Scene, findings: Sequence[Finding]) -> Iterator[Item]:
    """`skewed_partition` of one queue."""
    first = findings[0]
    yield Item(
        action="spread_partitions",
        severity=worst_of(findings),
        **place_of(first, "router", "vpn", "endpoint"),
        gain=messages_of(findings),
        advice=f"Give the messages of queue {first.endpoint or '?'} in {at((first.router, first.vpn))} a partition"
        " key with more values, or one that spreads them more evenly.",
        evidence=first.detail
        or f"Its largest partition takes {first.value or 0.0:.1f} times the mean.",
        effect=f"One consumer has up to {first.value or 0.0:.1f} times less to do, and the others their"
        " share.",
    )


def set_clock(_: Scene, findings: Sequence[Finding]) -> Iterator[Item]:
    """`clock_skew` of one router."""
    first = findings[0]
    yield Item(
        action="set_clock",
        severity=worst_of(findings),
        **place_of(first, "router", "peer_router"),
        gain=0,
        advice=f"Set the clock of router {first.router}, and have it follow a time server.",
        evidence=first.detail or f"It is {lasting(abs(first.value or 0.0))} off.",
        effect="Times to live and the times in traces mean the same on all routers; until then latencies in"
        " this report are corrected by the difference.",
    )


def moves(scene: Scene) -> Iterator[Item]:
    """Message VPNs whose traffic crosses to and from one other router, and hardly concerns clients here: moved
    there, their bridges join message VPNs of one router.
    """
    crossing: dict[Place, dict[str, tuple[int, int]]] = {}
    for edge in scene.edges:
        start, goal = start_of(edge), goal_of(edge)
        for here, there in ((start, goal), (goal, start)):
            messages, total = crossing.setdefault(here, {}).get(there[0], (0, 0))
            more = edge["messages"] or 0, edge["bytes"] or 0
            crossing[here][there[0]] = (messages + more[0], total + more[1])
    for place, peers in sorted(crossing.items()):
        crossed = sum(messages for messages, _ in peers.values())
        router, (messages, total) = max(peers.items(), key=lambda one: (one[1][0], one[0]))
        node = scene.nodes.get(place)
        if node is None or not node["traced"] or router == place[0] or crossed < MOVE_MESSAGES:
            continue
        local = sum(node[name] or 0 for name in ("ingress", "delivered", "spooled"))
        if messages < MOVE_SHARE * crossed or local > MOVE_CLIENTS * (local + crossed):
            continue
        yield Item(
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
