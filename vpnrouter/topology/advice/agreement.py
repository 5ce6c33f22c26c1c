"""Advice where the configured mesh and the observed one differ."""

from collections.abc import Iterator, Sequence
from typing import Final

from vpnrouter.topology.advice.item import Item, messages_of, place_of, worst_of
from vpnrouter.topology.advice.scene import Scene, at, bridge_of, listed
from vpnrouter.topology.findings import Finding
from vpnrouter.topology.trouble.words import counted

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


def apply_configuration(_: Scene, findings: Sequence[Finding]) -> Iterator[Item]:
    """What one router has in its file and not at work: what a missing message VPN lacks as well goes without saying,
    and so does what a missing bridge lacks.
    """
    gone = {(one.router, one.vpn) for one in findings if one.kind == "missing_vpn"}
    down = {(one.router, one.vpn, one.bridge) for one in findings if one.kind == "missing_bridge"}
    causes = [
        one
        for one in findings
        if one.kind == "missing_vpn"
        or (
            (one.router, one.vpn) not in gone
            and (one.kind == "missing_bridge" or (one.router, one.vpn, one.bridge) not in down)
        )
    ]
    first = causes[0]
    yield Item(
        action="apply_configuration",
        severity=worst_of(causes),
        **(place_of(first) if len(causes) == 1 else place_of(first, "router")),
        client=first.client if len(causes) == 1 else None,
        topic=first.topic if len(causes) == 1 else None,
        gain=len(findings),
        advice=f"See whether router {first.router} runs with the configuration given, and why it lacks"
        f" {listed(_named(one) for one in causes)}.",
        evidence=f"{_counts(causes, _MISSING)} configured and not seen; of the first: {first.detail}.",
        effect=f"{counted(len(findings), 'difference')} between files and mesh less.",
    )


def write_down(_: Scene, findings: Sequence[Finding]) -> Iterator[Item]:
    """What is at work at one router and not in its file."""
    first = findings[0]
    yield Item(
        action="write_down",
        severity=worst_of(findings),
        **(place_of(first) if len(findings) == 1 else place_of(first, "router")),
        client=first.client if len(findings) == 1 else None,
        topic=first.topic if len(findings) == 1 else None,
        gain=messages_of(findings),
        advice=f"Add to the configuration of router {first.router}, or take out of service:"
        f" {listed(_named(one) for one in findings)}.",
        evidence=f"{_counts(findings, _UNKNOWN)} seen and not configured; the first {first.detail}.",
        effect="After a restart with its file the router does what it does today.",
    )


def _named(one: Finding) -> str:
    if one.topic is not None:
        return f"subscription {one.topic} of {bridge_of(one)}"
    return bridge_of(one) if one.bridge else f"message VPN {at((one.router, one.vpn))}"


def _counts(findings: Sequence[Finding], nouns: dict[str, str]) -> str:
    kinds = [one.kind for one in findings]
    return ", ".join(
        counted(kinds.count(kind), noun) for kind, noun in nouns.items() if kind in kinds
    )
