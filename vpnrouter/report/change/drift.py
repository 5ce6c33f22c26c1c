"""Finds what is configured and was not seen, and what was seen and is not configured.

Only routers whose files are given are judged, and only by their traces: a router that writes no traces is missing from
the traces, not from the mesh.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from vpnrouter.limits import REPORT_DRIFT_FINDINGS
from vpnrouter.report.change.configured import Configured, ConfiguredBridge
from vpnrouter.report.rules.context import ends
from vpnrouter.report.schema import (
    BRIDGE_CLIENT,
    ERROR,
    WARNING,
    Finding,
    Rows,
    Severity,
    edge_named,
)
from vpnrouter.report.structure.graph import Place, goal_of, start_of


class Drift(NamedTuple):
    """`findings` as docs/report-structure.md lists them. `configured` is the column of EDGES, row by row: None for a
    bridge into a router whose file is not given. `notes` say what was not judged.
    """

    findings: list[Finding]
    configured: list[bool | None]
    notes: tuple[str, ...]

    def merged(self, edges: Rows) -> Rows:
        """Return the rows of EDGES with `configured` filled in."""
        return [
            {**row, "configured": known} for row, known in zip(edges, self.configured, strict=True)
        ]


class _Observed(NamedTuple):
    """What the traces show; `held` are the filters that each bridge client ever held, by (from, client)."""

    traced: frozenset[Place]
    routers: frozenset[str]
    edges: dict[tuple[Place, str], Rows]
    held: dict[tuple[Place, str], set[str]]


def drift(mesh: Configured, nodes: Rows, edges: Rows, subscriptions: Rows) -> Drift:
    """Compare configuration and traces. `subscriptions` are all that were ever held in the time reported on: rows with
    `router`, `vpn`, `client` and `filter`; those of other clients than bridges are ignored.
    """
    observed = _seen(nodes, edges, subscriptions)
    findings = [
        *_missing_vpns(mesh, observed),
        *_missing_bridges(mesh, observed),
        *_unknown_vpns(mesh, nodes),
        *_unknown_bridges(mesh, edges),
    ]
    for bridge in mesh.bridges.values():
        findings.extend(_subscriptions(bridge, observed))
    by_kind: dict[str, list[Finding]] = {}
    for finding in findings:
        by_kind.setdefault(finding.kind, []).append(finding)
    shown = [one for of_kind in by_kind.values() for one in of_kind[:REPORT_DRIFT_FINDINGS]]
    outside = sorted({row["router"] for row in nodes} - mesh.routers - {None})
    notes = mesh.notes
    if outside:
        more = f" and {len(outside) - 3:,} more" if len(outside) > 3 else ""
        notes = (*notes, f"no given file describes router {', '.join(outside[:3])}{more}")
    return Drift(shown, [_known(mesh, row) for row in edges], notes)


def _seen(nodes: Rows, edges: Rows, subscriptions: Rows) -> _Observed:
    traced = frozenset((row["router"], row["vpn"]) for row in nodes if row["traced"])
    by_bridge: dict[tuple[Place, str], Rows] = {}
    for row in edges:
        by_bridge.setdefault((goal_of(row), row["bridge"]), []).append(row)
    filters_by_client: dict[tuple[Place, str], set[str]] = {}
    for row in subscriptions:
        if (row["client"] or "").startswith(BRIDGE_CLIENT):
            key = ((row["router"], row["vpn"]), row["client"])
            filters_by_client.setdefault(key, set()).add(row["filter"])
    return _Observed(
        traced, frozenset(router for router, _ in traced), by_bridge, filters_by_client
    )


def _client(bridge: ConfiguredBridge) -> str:
    return f"{BRIDGE_CLIENT}{bridge.goal[0]}/{bridge.goal[1]}/{bridge.name}"


def _missing_vpns(mesh: Configured, seen: _Observed) -> Iterable[Finding]:
    for (router, vpn), known in mesh.vpns.items():
        if known.enabled and known.traced and (router, vpn) not in seen.traced:
            configured_in = (
                "" if router in seen.routers else f"; router {router} has written no traces at all"
            )
            yield Finding(
                kind="missing_vpn",
                severity=ERROR,
                router=router,
                vpn=vpn,
                detail=f"configured at {known.where}, and nothing happened in it{configured_in}",
            )


def _missing_bridges(mesh: Configured, seen: _Observed) -> Iterable[Finding]:
    for bridge in mesh.bridges.values():
        if not bridge.enabled or bridge.elsewhere:
            continue
        judges = {bridge.goal[0], *(router for router, _ in bridge.sources)}
        client = _client(bridge)
        if (
            (bridge.goal, bridge.name) in seen.edges
            or any((source, client) in seen.held for source in bridge.sources)
            or not judges & seen.routers
        ):
            continue
        yield _finding(
            bridge,
            "missing_bridge",
            ERROR,
            f"configured at {bridge.where}, and neither its link nor a message over it was seen",
        )


def _finding(bridge: ConfiguredBridge, kind: str, severity: Severity, detail: str) -> Finding:
    source = bridge.sources[0] if bridge.sources else (None, None)
    return Finding(
        kind=kind,
        severity=severity,
        router=bridge.goal[0],
        vpn=bridge.goal[1],
        peer_router=source[0],
        peer_vpn=source[1],
        bridge=bridge.name,
        detail=detail,
    )


def _unknown_vpns(mesh: Configured, nodes: Rows) -> Iterable[Finding]:
    for row in nodes:
        place = (row["router"], row["vpn"])
        known = mesh.vpns.get(place)
        if place[0] not in mesh.routers or (known is not None and known.enabled):
            continue
        why = "is not configured" if known is None else f"is disabled at {known.where}"
        yield Finding(
            kind="unknown_vpn",
            severity=WARNING,
            router=place[0],
            vpn=place[1],
            messages=row.get("ingress"),
            first_ns=row.get("first_ns"),
            last_ns=row.get("last_ns"),
            detail=f"was seen, and {why}",
        )


def _known(mesh: Configured, row: dict[str, Any]) -> bool | None:
    """Return whether a bridge is configured as seen: enabled, and from one of its remotes. None if its router's file is
    not given.
    """
    goal, source = goal_of(row), start_of(row)
    if goal[0] not in mesh.routers:
        return None
    bridge = mesh.bridges.get((goal, row["bridge"]))
    if bridge is None or not bridge.enabled:
        return False
    return source in bridge.sources or (bridge.elsewhere and source[0] not in mesh.routers)


def _unknown_bridges(mesh: Configured, edges: Rows) -> Iterable[Finding]:
    for row in edges:
        if _known(mesh, row) is not False:
            continue
        bridge = mesh.bridges.get((goal_of(row), row["bridge"]))
        if bridge is None:
            why = "is not configured"
        elif not bridge.enabled:
            why = f"is disabled at {bridge.where}"
        else:
            remotes = " or ".join("/".join(source) for source in bridge.sources) or "elsewhere"
            why = f"is configured to take from {remotes} at {bridge.where}"
        yield Finding(
            kind="unknown_bridge",
            severity=WARNING,
            **ends(edge_named(row)),
            messages=row.get("messages"),
            bytes=row.get("bytes"),
            first_ns=row.get("first_ns"),
            last_ns=row.get("last_ns"),
            detail=f"was seen, and {why}",
        )


def _subscriptions(bridge: ConfiguredBridge, seen: _Observed) -> Iterable[Finding]:
    """Yield differences of subscriptions, at the remotes where the traces show them: the link came up in the time
    reported on, or one of the bridge's subscriptions was seen.
    """
    if not bridge.enabled or bridge.filters is None:
        return
    client = _client(bridge)
    came_up = {
        start_of(row)
        for row in seen.edges.get((bridge.goal, bridge.name), [])
        if row.get("link_ups")
    }
    for source in bridge.sources:
        filters = seen.held.get((source, client))
        if filters is None and (source not in came_up or source not in seen.traced):
            continue
        here = bridge._replace(sources=(source,))
        yield from _differences(here, client, filters or set())


def _differences(bridge: ConfiguredBridge, client: str, held: set[str]) -> Iterable[Finding]:
    configured_filters: Sequence[str] = sorted(bridge.filters or ())
    for text in configured_filters:
        if text not in held:
            detail = f"configured at {bridge.where}, and never subscribed to"
            finding = _finding(bridge, "missing_subscription", ERROR, detail)
            yield replace(finding, client=client, topic=text)
    for text in sorted(held.difference(configured_filters)):
        detail = f"subscribed to, and not configured at {bridge.where}"
        finding = _finding(bridge, "unknown_subscription", WARNING, detail)
        yield replace(finding, client=client, topic=text)
