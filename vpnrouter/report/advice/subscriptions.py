"""Writes advice about subscriptions, and about differences between configuration and mesh."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

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
from vpnrouter.report.rules.context import percent
from vpnrouter.report.schema import Finding
from vpnrouter.report.subscriptions.over_broad import DROP
from vpnrouter.text import counted

_MISSING: Final = {
    "missing_vpn": "message VPN",
    "missing_bridge": "bridge",
    "missing_subscription": "subscription",
}
_UNKNOWN: Final = {
    "unknown_vpn": "message VPN",
    "unknown_bridge": "bridge",
    "unknown_subscription": "subscription",
}


def apply_configuration(_: MeshContext, findings: Sequence[Finding]) -> Iterator[Advice]:
    """Yield what one router has in its file and not in operation. What follows from a missing message VPN or bridge is
    left out.
    """
    missing = {
        (finding.router, finding.vpn) for finding in findings if finding.kind == "missing_vpn"
    }
    down = {
        (finding.router, finding.vpn, finding.bridge)
        for finding in findings
        if finding.kind == "missing_bridge"
    }
    causes = [
        finding
        for finding in findings
        if finding.kind == "missing_vpn"
        or (
            (finding.router, finding.vpn) not in missing
            and (
                finding.kind == "missing_bridge"
                or (finding.router, finding.vpn, finding.bridge) not in down
            )
        )
    ]
    first = causes[0]
    yield Advice(
        action="apply_configuration",
        severity=worst_of(causes),
        **_place(causes),
        gain=len(findings),
        advice=f"See whether router {first.router} runs with the configuration given, and why it lacks"
        f" {listed(_named(cause) for cause in causes)}.",
        evidence=f"{_counts(causes, _MISSING)} configured and not seen; of the first: {first.detail}.",
        effect=f"{counted(len(findings), 'difference')} between files and mesh less.",
    )


def add_to_configuration(_: MeshContext, findings: Sequence[Finding]) -> Iterator[Advice]:
    """Yield what one router has in operation and not in its file."""
    first = findings[0]
    yield Advice(
        action="write_down",
        severity=worst_of(findings),
        **_place(findings),
        gain=messages_of(findings),
        advice=f"Add to the configuration of router {first.router}, or take out of service:"
        f" {listed(_named(finding) for finding in findings)}.",
        evidence=f"{_counts(findings, _UNKNOWN)} seen and not configured; the first {first.detail}.",
        effect="After a restart with its file the router does what it does today.",
    )


def _place(findings: Sequence[Finding]) -> dict[str, str | None]:
    """Return all of the place of a single finding, else the router."""
    if len(findings) > 1:
        return place_of(findings[0], "router")
    names = ("router", "vpn", "peer_router", "peer_vpn", "bridge", "client", "topic")
    return place_of(findings[0], *names)


def _named(finding: Finding) -> str:
    if finding.topic is not None:
        return f"subscription {finding.topic} of {bridge_of(finding)}"
    return (
        bridge_of(finding) if finding.bridge else f"message VPN {at((finding.router, finding.vpn))}"
    )


def _counts(findings: Sequence[Finding], nouns: dict[str, str]) -> str:
    kinds = [finding.kind for finding in findings]
    return ", ".join(
        counted(kinds.count(kind), noun) for kind, noun in nouns.items() if kind in kinds
    )


def drop_unmatched(context: MeshContext, findings: Sequence[Finding]) -> Iterator[Advice]:
    """Advise against `never_matched` of one message VPN; clients with the same unmatched filters are one piece of
    advice. A subscription that another message VPN has messages for is kept (`add_for_black_holes`).
    """
    by_client: dict[str, list[Finding]] = {}
    for finding in findings:
        # What each device of a fleet holds is no slip of one client.
        if finding.client is not None and finding not in context.wanted.met:
            by_client.setdefault(finding.client or "", []).append(finding)
    alike: dict[frozenset[str], list[list[Finding]]] = {}
    for group in by_client.values():
        alike.setdefault(frozenset(one.topic or "" for one in group), []).append(group)
    for filters, groups in alike.items():
        together = [one for group in groups for one in group]
        first = together[0]
        clients = listed(quoted(group[0].client) for group in groups)
        who = "client" if len(groups) == 1 else "clients"
        passed = max(one.messages or 0 for one in together)
        yield Advice(
            action="drop_subscription",
            severity=worst_of(together),
            **place_of(first, "router", "vpn", "bridge"),
            gain=0,
            client=first.client if len(groups) == 1 else None,
            topic=first.topic if len(filters) == 1 else None,
            advice=f"Drop {_filters(sorted(filters))} of {who} {clients} in"
            f" {at((first.router, first.vpn))}.",
            evidence=f"It matched none of {counted(passed, 'traced message')} that entered meanwhile."
            if len(together) == 1
            else f"They matched none of up to {counted(passed, 'traced message')} that entered"
            " meanwhile.",
            effect=f"{counted(len(together), 'subscription')} less to match against; nothing that"
            " arrives is lost.",
        )


def drop_covered(_: MeshContext, findings: Sequence[Finding]) -> Iterator[Advice]:
    """Advise against `covered` of one client: filters that another of its filters covers."""
    first = findings[0]
    yield Advice(
        action="drop_subscription",
        severity=worst_of(findings),
        **place_of(first, "router", "vpn", "bridge", "client"),
        gain=0,
        topic=first.topic if len(findings) == 1 else None,
        advice=f"Drop {_filters([finding.topic or '' for finding in findings])} of client {quoted(first.client)} in"
        f" {at((first.router, first.vpn))}.",
        evidence=f"Of {first.topic}: {first.detail.rstrip('.')}."
        if first.detail
        else "Another subscription of the client takes in all that it matches.",
        effect=f"{counted(len(findings), 'subscription')} less; the client gets the same messages.",
    )


def narrow(context: MeshContext, findings: Sequence[Finding]) -> Iterator[Advice]:
    """Advise against `over_broad` and `wasted_crossing` of one bridge."""
    broad = [finding for finding in findings if finding.kind == "over_broad"]
    crossing = [finding for finding in findings if finding.kind == "wasted_crossing"]
    first = (broad or crossing)[0]
    steps = [_narrowed(one) for one in broad]
    if crossing:
        topics = listed(quoted(one.topic) for one in crossing)
        steps.append(f"leave out {topics} with an exception or a narrower filter")
    sentence = "; ".join(steps)
    messages, total = messages_of(findings), bytes_of(findings)
    edge = context.busiest(
        (first.peer_router or "", first.peer_vpn or ""), (first.router or "", first.vpn or "")
    )
    share = max(finding.value or 0.0 for finding in findings)
    of_all = f", of {counted(edge['messages'] or 0, 'message')} in all" if edge else ""
    yield Advice(
        action="narrow_subscription",
        severity=worst_of(findings),
        **place_of(first),
        client=first.client,
        topic=first.topic if len(findings) == 1 else None,
        gain=messages,
        advice=f"On {bridge_of(first)}: {sentence}.",
        evidence=f"{counted(messages, 'message')} that nobody received crossed it{of_all};"
        f" the worst filter wastes {percent(share)}.",
        effect=f"{counted(messages, 'message')} and {size(total)} of traced payload need not cross.",
    )


def _narrowed(finding: Finding) -> str:
    if not finding.detail or finding.detail == DROP:
        return f"drop the subscription {finding.topic}"
    return f"subscribe to {finding.detail} in place of {finding.topic}"


def add_for_black_holes(context: MeshContext, findings: Sequence[Finding]) -> Iterator[Advice]:
    """Advise against `black_hole` of one message VPN. Topics that clients elsewhere subscribe to are to be bridged
    there; the rest is to be subscribed to, or not to be published.
    """
    here = (findings[0].router or "", findings[0].vpn or "")
    by_goal: dict[tuple[str, str], list[tuple[Finding, Finding]]] = {}
    unwanted: list[Finding] = []
    for hole in findings:
        matches_elsewhere = list(context.wanted.elsewhere(here, hole.topic or ""))
        for one in matches_elsewhere:
            by_goal.setdefault((one.router or "", one.vpn or ""), []).append((hole, one))
        context.wanted.met.update(matches_elsewhere)
        if not matches_elsewhere:
            unwanted.append(hole)
    for there, matched in by_goal.items():
        yield _bridged(context, here, there, matched)
    if unwanted:
        messages = messages_of(unwanted)
        yield Advice(
            action="add_subscription",
            severity=worst_of(unwanted),
            **place_of(unwanted[0], "router", "vpn"),
            topic=unwanted[0].topic if len(unwanted) == 1 else None,
            gain=messages,
            advice=f"In {at(here)}: subscribe to {listed(quoted(one.topic) for one in unwanted)}, or stop"
            " publishing there.",
            evidence=f"{counted(messages, 'traced message')} on"
            f" {counted(len(unwanted), 'topic')} matched no subscription, queue or bridge.",
            effect=f"{counted(messages, 'message')} and {size(bytes_of(unwanted))} of traced payload are"
            " received, or are not sent in vain.",
        )


def _bridged(
    context: MeshContext,
    here: tuple[str, str],
    there: tuple[str, str],
    matched: Sequence[tuple[Finding, Finding]],
) -> Advice:
    holes = list(dict.fromkeys(hole for hole, _ in matched))
    filters = list(dict.fromkeys(one.topic or "" for _, one in matched))
    clients = listed(quoted(one.client) for _, one in matched)
    way = context.way(here, there)
    text = listed(map(quoted, filters))
    if way:
        named = " and on ".join(bridge_named(edge) for edge in way)
        advice = f"Add the remote subscription {text} on {named}."
    else:
        advice = f"Add a bridge from {at(here)} to {at(there)} with the remote subscription {text}."
    edge = way[-1] if way else None
    messages = messages_of(holes)
    return Advice(
        action="add_subscription",
        severity=worst_of(holes),
        router=there[0],
        vpn=there[1],
        peer_router=edge["from_router"] if edge else here[0],
        peer_vpn=edge["from_vpn"] if edge else here[1],
        bridge=edge["bridge"] if edge else None,
        topic=filters[0] if len(filters) == 1 else None,
        gain=messages,
        advice=advice,
        evidence=f"In {at(here)} {counted(messages, 'traced message')} on"
        f" {listed(quoted(one.topic) for one in holes)} matched nothing, while {clients} in {at(there)}"
        f" waited for {text} in vain.",
        effect=f"{counted(messages, 'message')} and {size(bytes_of(holes))} of traced payload reach who"
        " waits for them.",
    )


def _filters(filters: Sequence[str]) -> str:
    noun = "the subscription" if len(filters) == 1 else "the subscriptions"
    return f"{noun} {listed(map(quoted, filters))}"
