"""Rule: endpoints that hold up a bridge by refusing what it brings."""

from typing import Any, Final

from vpnrouter.topology.findings import ERROR, Finding
from vpnrouter.topology.tables import Rows
from vpnrouter.topology.trouble.bridges import Bridges, ends
from vpnrouter.topology.trouble.words import counted, lasting

_LEAST: Final = 3
"""Refusals in a row that make a blocker: the first and a retry are soon forgotten."""

_LEAST_S: Final = 10.0
"""Seconds that the flow has to wait: ten retries, at the usual interval of one second."""

_PAUSE_NS: Final = 600_000_000_000
"""Nanoseconds between two refusals of one span: retries are seconds apart, and a sample lacks most."""

_SECOND_NS: Final = 1_000_000_000


def blockers(losses: Rows, bridges: Bridges) -> list[Finding]:
    """`losses` of `losses_by_place` in, a `head_of_line` for each endpoint, reason and bridge out.

    `value` is how many seconds it refused again and again, all such spans together.
    """
    by_place: dict[tuple[str, ...], Rows] = {}
    for row in losses:
        if row["event"] == "reject":
            place = row["router"], row["vpn"], row["endpoint"], row["reason"]
            edge = bridges.receiving(*place[:2], row["client"], row["bridge"], row["example_path"])
            by_place.setdefault((*place, *(edge or ())), []).append(row)
    found = []
    for (router, vpn, endpoint, reason, *edge_parts), rows in by_place.items():
        spans = _spans([span for row in rows for span in row["spans"]])
        if not spans:
            continue
        seconds = sum(last - first for first, last, _ in spans) / _SECOND_NS
        refusals = sum(count for _, _, count in spans)
        where: dict[str, Any] = {"router": router, "vpn": vpn}
        if edge_parts:
            a, b, c, d, name = edge_parts
            where = ends((a, b, c, d, name))
        over = f" of bridge {where['bridge']}" if where.get("bridge") else " of a bridge"
        who = f"Endpoint {endpoint} in {router}/{vpn}" if endpoint else f"{router}/{vpn}"
        found.append(
            Finding(
                kind="head_of_line",
                severity=ERROR,
                **where,
                endpoint=endpoint or None,
                reason=reason or None,
                messages=refusals,
                value=seconds,
                first_ns=spans[0][0],
                last_ns=spans[-1][1],
                detail=f"{who} refused {counted(refusals, 'time')} in {lasting(seconds)} what came first"
                f"{over} ({reason or 'no reason given'}), and what came behind had to wait.",
            )
        )
    return found


def _spans(pieces: Rows) -> list[tuple[int, int, int]]:
    """First and last time and count of each span of refusals that lasted, in order."""
    joined: list[tuple[int, int, int]] = []
    for piece in sorted(pieces, key=lambda one: (one["first_ns"], one["last_ns"])):
        first, last, count = piece["first_ns"], piece["last_ns"], piece["count"]
        if joined and first - joined[-1][1] <= _PAUSE_NS:
            begin, end, before = joined[-1]
            joined[-1] = (begin, max(end, last), before + count)
        else:
            joined.append((first, last, count))
    return [
        (first, last, count)
        for first, last, count in joined
        if count >= _LEAST and last - first >= _LEAST_S * _SECOND_NS
    ]
