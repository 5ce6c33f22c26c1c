"""Indexes findings and mesh for those who write advice, and defines a piece of advice."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, final

from vpnrouter.errors import TopicError
from vpnrouter.report.schema import ERROR, INFO, WARNING, Finding, Rows, Severity, edge_named
from vpnrouter.report.structure.graph import Place, goal_of, start_of
from vpnrouter.topics.algebra import intersects, matches
from vpnrouter.topics.grammar import MQTT, SMF, Filter, parse_filter

Action = Literal[
    "break_loop",
    "repair_link",
    "relieve_endpoint",
    "relieve_bridge",
    "apply_configuration",
    "add_subscription",
    "narrow_subscription",
    "drop_way",
    "set_clock",
    "spread_partitions",
    "drop_subscription",
    "write_down",
    "add_link",
    "move_vpn",
]

_SEVERITIES: Final = {ERROR: 200.0, WARNING: 100.0, INFO: 0.0}
_A_DECADE: Final = 10.0
"""Points for each tenfold of messages, so that severity goes before gain, and gain before names."""

_MOST: Final = 99.0


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A piece of advice. `severity` is that of the worst finding behind it, `gain` the traced messages helped."""

    action: Action
    severity: Severity
    advice: str
    evidence: str
    effect: str
    gain: int = 0
    router: str | None = None
    vpn: str | None = None
    peer_router: str | None = None
    peer_vpn: str | None = None
    bridge: str | None = None
    client: str | None = None
    endpoint: str | None = None
    topic: str | None = None

    @property
    def score(self) -> float:
        """200, 100 or 0 by severity, and up to 99 by gain."""
        points = _A_DECADE * math.log10(1 + max(0, self.gain))
        return round(_SEVERITIES[self.severity] + min(points, _MOST), 1)

    def row(self, rank: int) -> dict[str, Any]:
        """Return the advice as a row of ADVICE."""
        fields = asdict(self)
        del fields["severity"], fields["gain"]
        return {**fields, "rank": rank, "score": self.score}


def worst_of(findings: Sequence[Finding]) -> Severity:
    """Return the worst severity among findings."""
    return max((finding.severity for finding in findings), key=lambda one: _SEVERITIES[one])


def place_of(finding: Finding, *names: str) -> dict[str, str | None]:
    """Return the fields of a finding for an Advice; by default those of a bridge."""
    fields = names or ("router", "vpn", "peer_router", "peer_vpn", "bridge")
    return {name: getattr(finding, name) for name in fields}


def messages_of(findings: Sequence[Finding]) -> int:
    """Return the sum of the messages of all findings."""
    return sum(finding.messages or 0 for finding in findings)


def bytes_of(findings: Sequence[Finding]) -> int:
    """Return the sum of the bytes of all findings."""
    return sum(finding.bytes or 0 for finding in findings)


SHOWN: Final = 3
"""Names in a sentence; more are counted."""


@final
class MeshContext:
    """Index of findings, nodes, edges, and the subscriptions that bridges hold (in SMF syntax)."""

    def __init__(
        self, findings: Sequence[Finding], nodes: Rows, edges: Rows, subscriptions: Rows
    ) -> None:
        self.findings = findings
        self.nodes = {(row["router"], row["vpn"]): row for row in nodes}
        self.edges = edges
        self.between: dict[tuple[Place, Place], list[dict[str, Any]]] = {}
        self._goals: dict[Place, list[Place]] = {}
        for row in edges:
            start, goal = start_of(row), goal_of(row)
            if (start, goal) not in self.between:
                self._goals.setdefault(start, []).append(goal)
            self.between.setdefault((start, goal), []).append(row)
        self._held: dict[tuple[Place, str], list[str]] = {}
        for row in subscriptions:
            key = ((row["router"], row["vpn"]), row["client"])
            self._held.setdefault(key, []).append(row["filter"])
        self.wanted = _UnmetSubscriptions(findings)

    def held(self, edge: dict[str, Any]) -> list[Filter]:
        """Return the filters that a bridge subscribes to at its remote end, as far as known, without exceptions."""
        subscriptions = self._held.get((start_of(edge), edge_named(edge).client), [])
        parsed = (_parsed(text, SMF) for text in subscriptions)
        return [one for one in parsed if one is not None and not one.exception]

    def busiest(self, start: Place, goal: Place) -> dict[str, Any] | None:
        """Return the bridge from one message VPN to another, the busiest of several."""
        rows = self.between.get((start, goal), [])
        return max(rows, key=lambda row: row["messages"] or 0, default=None)

    def way(self, start: Place, goal: Place) -> list[dict[str, Any]] | None:
        """Return the bridges of a shortest path for messages, None when there is none."""
        before: dict[Place, Place] = {start: start}
        waiting = deque([start])
        while waiting and goal not in before:
            here = waiting.popleft()
            for goal_node in self._goals.get(here, []):
                if goal_node not in before:
                    before[goal_node] = here
                    waiting.append(goal_node)
        if goal not in before:
            return None
        path: list[dict[str, Any]] = []
        while goal != start:
            edge = self.busiest(before[goal], goal)
            if edge is not None:
                path.append(edge)
            goal = before[goal]
        return path[::-1]

    def shared(self, edges: Sequence[dict[str, Any]]) -> list[str]:
        """Return filters of the first bridge that have topics in common with filters of all the others."""
        by_edge = [self.held(edge) for edge in edges]
        return [
            one.original
            for one in by_edge[0]
            if all(any(intersects(one, other) for other in others) for others in by_edge[1:])
        ]


class _UnmetSubscriptions:
    """Subscriptions without a match in their message VPN, for topics that others publish without a receiver."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._filters: list[tuple[Filter, Finding]] = []
        self.met: set[Finding] = set()
        for finding in findings:
            if (
                finding.kind == "never_matched"
                and finding.client
                and not finding.bridge
                and finding.topic
            ):
                filter_ = _parsed(finding.topic, dialect_of(finding.topic))
                if filter_ is not None:
                    self._filters.append((filter_, finding))

    def elsewhere(self, place: Place, topic: str) -> Iterator[Finding]:
        """Yield the subscriptions in other message VPNs that match a topic of this one."""
        for filter_, one in self._filters:
            if (one.router, one.vpn) != place and matches(filter_, topic):
                yield one


def dialect_of(text: str) -> int:
    """Return the dialect that a filter probably has, by its wildcards."""
    levels = text.split("/")
    return MQTT if "+" in levels or levels[-1] == "#" or levels[0] == "$share" else SMF


def _parsed(text: str, dialect: int) -> Filter | None:
    try:
        return parse_filter(text, dialect, exceptions=True)
    except TopicError:
        return None


def listed(names: Iterable[str]) -> str:
    """Return `a, b, c and 4 more`, each once, in the same order."""
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - SHOWN:,} more" if len(distinct) > SHOWN else ""
    return ", ".join(distinct[:SHOWN]) + more


def quoted(name: str | None) -> str:
    """Return a name in quotation marks: it may be `in`, or have spaces."""
    return f"“{name or '?'}”"


def at(place: Sequence[str | None]) -> str:
    """Return a message VPN as text."""
    return "/".join(name or "?" for name in place)


def bridge_named(edge: dict[str, Any]) -> str:
    """Return a bridge as text, from a row of EDGES."""
    return f"bridge {edge['bridge']} ({at(start_of(edge))} to {at(goal_of(edge))})"


def bridge_of(finding: Finding) -> str:
    """Return a bridge as text, from a finding about it."""
    ends = at((finding.router, finding.vpn))
    if finding.peer_router is not None:
        ends = f"{at((finding.peer_router, finding.peer_vpn))} to {ends}"
    return f"bridge {finding.bridge or '?'} ({ends})"
