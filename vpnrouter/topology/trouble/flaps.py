"""Rule: links that go down and come back all the time."""

from typing import Final

from vpnrouter.topology.findings import ERROR, Finding
from vpnrouter.topology.tables import Rows
from vpnrouter.topology.trouble.bridges import Edge, edge_of, ends, named
from vpnrouter.topology.trouble.words import counted, lasting

_SECOND_NS: Final = 1_000_000_000
_TOO_OFTEN: Final = ((3_600 * _SECOND_NS, 3), (24 * 3_600 * _SECOND_NS, 6))
"""Within so long, nanoseconds, so many downs after which the link came back. A router that stops takes its
links down for good, one that starts anew does once; an upgrade that goes wrong, twice.
"""


def flapping_links(links: Rows) -> list[Finding]:
    """Rows of LINKS in, a `flapping_link` for each bridge out; `value` is how often it went down and came
    back.
    """
    by_edge: dict[Edge, list[tuple[int | None, int | None]]] = {}
    for row in links:
        by_edge.setdefault(edge_of(row), []).append((row["up_ns"], row["down_ns"]))
    found = []
    for edge, spans in by_edge.items():
        ups = [up for up, _ in spans if up is not None]
        latest = max(ups, default=0)
        downs = sorted({down for _, down in spans if down is not None and down <= latest})
        worst = _too_often(downs)
        if worst is None:
            continue
        within, count = worst
        seconds = (latest - downs[0]) / _SECOND_NS
        found.append(
            Finding(
                kind="flapping_link",
                severity=ERROR,
                **ends(edge),
                value=float(len(downs)),
                first_ns=downs[0],
                last_ns=latest,
                detail=f"The link of {named(edge)} went down and came back"
                f" {counted(len(downs), 'time')} in {lasting(seconds)}, {count} of them within"
                f" {lasting(within / _SECOND_NS)}.",
            )
        )
    return found


def _too_often(downs: list[int]) -> tuple[int, int] | None:
    """The first length of time, nanoseconds, that holds too many of `downs`, and how many at most."""
    for within, bound in _TOO_OFTEN:
        most = begin = 0
        for at, down in enumerate(downs):
            while down - downs[begin] > within:
                begin += 1
            most = max(most, at - begin + 1)
        if most >= bound:
            return within, most
    return None
