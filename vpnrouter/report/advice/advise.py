"""Turns findings into ranked advice: findings of one cause become one piece of advice."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from vpnrouter.limits import REPORT_ADVICE, REPORT_ADVICE_ACTION
from vpnrouter.report.advice.context import Advice, MeshContext
from vpnrouter.report.advice.paths import (
    add_link,
    break_loop,
    drop_redundant_path,
    moves,
    narrow_stopped_loop,
    relieve_bridge,
    relieve_endpoint,
    repair_link,
    set_clock,
    spread_partitions,
)
from vpnrouter.report.advice.subscriptions import (
    add_for_black_holes,
    add_to_configuration,
    apply_configuration,
    drop_covered,
    drop_unmatched,
    narrow,
)
from vpnrouter.report.schema import Finding, Rows
from vpnrouter.report.structure.structure import Structure

_BRIDGE: Final = ("router", "vpn", "peer_router", "peer_vpn", "bridge")
_PLACE: Final = ("router", "vpn")
_CLIENT: Final = ("router", "vpn", "client")
_ENDPOINT: Final = ("router", "vpn", "endpoint")
_ROUTER: Final = ("router",)

Builder = Callable[[MeshContext, Sequence[Finding]], Iterator[Advice]]


class _Remedy(NamedTuple):
    """What findings of a kind lead to. Those with the same builder and the same fields have one cause."""

    builder: Builder
    cause: tuple[str, ...]


REMEDIES: Final[dict[str, _Remedy]] = {
    "loop": _Remedy(break_loop, _PLACE),
    "loop_stopped": _Remedy(narrow_stopped_loop, _BRIDGE),
    "two_ways": _Remedy(drop_redundant_path, _PLACE),
    "duplicate": _Remedy(drop_redundant_path, _PLACE),
    "head_of_line": _Remedy(relieve_endpoint, _ENDPOINT),
    "stalled_bridge": _Remedy(repair_link, _BRIDGE),
    "flapping_link": _Remedy(repair_link, _BRIDGE),
    "hot_bridge": _Remedy(relieve_bridge, _BRIDGE),
    "skewed_partition": _Remedy(spread_partitions, _ENDPOINT),
    "clock_skew": _Remedy(set_clock, _ROUTER),
    "clock_moved": _Remedy(set_clock, _ROUTER),
    # Before what never matched: a subscription that messages are found for is not dropped.
    "black_hole": _Remedy(add_for_black_holes, _PLACE),
    "never_matched": _Remedy(drop_unmatched, _PLACE),
    "covered": _Remedy(drop_covered, _CLIENT),
    "over_broad": _Remedy(narrow, _BRIDGE),
    "wasted_crossing": _Remedy(narrow, _BRIDGE),
    "missing_vpn": _Remedy(apply_configuration, _ROUTER),
    "missing_bridge": _Remedy(apply_configuration, _ROUTER),
    "missing_subscription": _Remedy(apply_configuration, _ROUTER),
    "unknown_vpn": _Remedy(add_to_configuration, _ROUTER),
    "unknown_bridge": _Remedy(add_to_configuration, _ROUTER),
    "unknown_subscription": _Remedy(add_to_configuration, _ROUTER),
}
"""Kinds of findings that something can be done about; articulation points and cut bridges are advised on together,
by the links that help the most, and other kinds are not advised on.
"""


def advise(
    findings: Sequence[Finding],
    nodes: Rows,
    edges: Rows,
    structure: Structure,
    changes: Rows | None = None,
    subscriptions: Rows | None = None,
) -> Rows:
    """Return rows of ADVICE, the most useful first, at most REPORT_ADVICE.

    `edges` are the rows that `structure` was made from, with `cut` filled in. `changes`, rows of CHANGES, say which
    findings are new, and the evidence says so too. `subscriptions` are those that bridges hold: rows with
    `router`, `vpn`, `client` and `filter`; with them a loop's filter can be named.
    """
    context = MeshContext(findings, nodes, edges, subscriptions or [])
    items = [*_advised(context, changes or []), *moves(context)]
    items.extend(add_link(way, edges) for way in structure.redundant_links)
    items.sort(key=lambda one: (-one.score, one.action, one.advice))
    best: list[Advice] = []
    counts: dict[str, int] = {}
    for item in items:
        counts[item.action] = counts.get(item.action, 0) + 1
        if counts[item.action] <= REPORT_ADVICE_ACTION and len(best) < REPORT_ADVICE:
            best.append(item)
    return [item.row(rank) for rank, item in enumerate(best, 1)]


def _advised(context: MeshContext, changes: Rows) -> Iterator[Advice]:
    new = {
        (row["measure"], *(row[name] for name in _BRIDGE))
        for row in changes
        if row["what"] == "finding" and row["change"] == "new"
    }
    causes: dict[tuple[str | None, ...], list[Finding]] = {}
    for finding in _with_their_causes(context.findings):
        cure = REMEDIES.get(finding.kind)
        if cure is not None:
            key = (cure.builder.__name__, *(getattr(finding, name) for name in cure.cause))
            causes.setdefault(key, []).append(finding)
    order = {cure.builder.__name__: turn for turn, cure in enumerate(REMEDIES.values())}
    followed = _follow_ups(context.findings)
    for key in sorted(causes, key=lambda one: order[one[0] or ""]):
        group = causes[key]
        together = [*group, *(more for one in group for more in followed.get(one, []))]
        fresh = any((one.kind, *(getattr(one, name) for name in _BRIDGE)) in new for one in group)
        for item in REMEDIES[group[0].kind].builder(context, together):
            yield _marked(item) if fresh else item


def _marked(item: Advice) -> Advice:
    return Advice(
        **{**vars(item), "evidence": f"{item.evidence} New since the time compared with."}
    )


def _bridge_of(finding: Finding) -> tuple[str | None, ...] | None:
    return tuple(getattr(finding, name) for name in _BRIDGE) if finding.bridge else None


def _blockers(findings: Sequence[Finding]) -> dict[tuple[str | None, ...] | None, Finding]:
    """By bridge the first endpoint that blocks it."""
    blockers: dict[tuple[str | None, ...] | None, Finding] = {}
    for finding in findings:
        if finding.kind == "head_of_line" and finding.bridge:
            blockers.setdefault(_bridge_of(finding), finding)
    return blockers


def _with_their_causes(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield all findings but those that follow from another one: a bridge that stalls because an endpoint behind it
    refuses, and covered filters that match nothing.
    """
    blocked = _blockers(findings)
    idle = {
        (finding.router, finding.vpn, finding.client, finding.topic)
        for finding in findings
        if finding.kind == "never_matched"
    }
    for finding in findings:
        if finding.kind == "stalled_bridge" and _bridge_of(finding) in blocked:
            continue
        if (
            finding.kind == "covered"
            and (finding.router, finding.vpn, finding.client, finding.topic) in idle
        ):
            continue
        yield finding


def _follow_ups(findings: Sequence[Finding]) -> dict[Finding, list[Finding]]:
    """Return the stalled bridges by the endpoint that blocks them; the first endpoint where there are several."""
    blockers = _blockers(findings)
    follow_ups: dict[Finding, list[Finding]] = {}
    for finding in findings:
        blocker = blockers.get(_bridge_of(finding)) if finding.kind == "stalled_bridge" else None
        if blocker is not None:
            follow_ups.setdefault(blocker, []).append(finding)
    return follow_ups
