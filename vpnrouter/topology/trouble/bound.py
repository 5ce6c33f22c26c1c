"""How many findings of a kind a report lists."""

from collections.abc import Iterable
from dataclasses import replace

from vpnrouter.topology.findings import Finding, worst_first


def bounded(findings: Iterable[Finding], most: int) -> list[Finding]:
    """The worst `most` of each kind, worst first; the last one of a kind says how many more there are."""
    kept: list[Finding] = []
    places: dict[str, list[int]] = {}
    left_out: dict[str, int] = {}
    for one in worst_first(findings):
        here = places.setdefault(one.kind, [])
        if len(here) < most:
            here.append(len(kept))
            kept.append(one)
        else:
            left_out[one.kind] = left_out.get(one.kind, 0) + 1
    for kind, more in left_out.items():
        at = places[kind][-1]
        detail = f"{kept[at].detail} And {more:,} more of this kind."
        kept[at] = replace(kept[at], detail=detail)
    return kept
