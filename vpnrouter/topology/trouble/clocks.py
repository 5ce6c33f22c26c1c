"""Rule: routers whose clock is wrong."""

from statistics import median_high, median_low
from typing import Any, Final

from vpnrouter.topology.findings import WARNING, Finding
from vpnrouter.topology.tables import Rows
from vpnrouter.topology.trouble.words import lasting

_LEAST_NS: Final = 25_000_000
"""Nanoseconds of difference that matter: clocks set over a network agree within a few milliseconds."""

_TIMES_ERROR: Final = 3
"""How many times the bound of its error a difference has to be: links that are slower in one direction look
like clocks that disagree.
"""

_SECOND_NS: Final = 1_000_000_000
_MAJORITY: Final = 3


def skewed_clocks(clocks: Rows) -> list[Finding]:
    """Rows of CLOCKS in, a `clock_skew` for each router out; `value` is by how many seconds it is ahead.

    The clock that most agree with is right, of two the reference's. When the reference's own clock is the
    wrong one, it is told of the reference, against the router that is nearest to the others.
    """
    found = []
    for reference, rows in groups_of(clocks).items():
        right = agreed(rows)
        nearest = min(rows, key=lambda row: abs(row["offset_ns"] - right))
        for row in rows:
            ahead = row["offset_ns"] - right
            error = (row["error_ns"] or 0) + (nearest["error_ns"] or 0 if right else 0)
            if abs(ahead) >= _LEAST_NS and abs(ahead) > _TIMES_ERROR * error:
                other = nearest["router"] if row["router"] == reference else reference
                found.append(_skew(row, ahead, error, other, len(rows)))
    return found


def groups_of(clocks: Rows) -> dict[str, Rows]:
    """The rows of CLOCKS with an offset by their reference, which is among them."""
    groups: dict[str, Rows] = {}
    for row in clocks:
        if row["offset_ns"] is not None and row["reference"]:
            groups.setdefault(row["reference"], []).append(row)
    for reference, rows in groups.items():
        if all(row["router"] != reference for row in rows):
            rows.append({"router": reference, "offset_ns": 0, "error_ns": 0})
    return groups


def agreed(rows: Rows) -> int:
    """The offset, nanoseconds, that most of a group are near to; the reference's, 0, of two."""
    if len(rows) < _MAJORITY:
        return 0
    offsets: list[int] = [row["offset_ns"] for row in rows]
    return min((median_low(offsets), median_high(offsets)), key=abs)


def _skew(row: dict[str, Any], ahead: int, error: int, other: str, compared: int) -> Finding:
    side = "ahead of" if ahead > 0 else "behind"
    others = f"those of most of {compared} routers" if compared >= _MAJORITY else f"that of {other}"
    by = lasting(abs(ahead) / _SECOND_NS)
    return Finding(
        kind="clock_skew",
        severity=WARNING,
        router=row["router"],
        peer_router=other or None,
        value=ahead / _SECOND_NS,
        detail=f"The clock of {row['router']} is {by} {side} {others},"
        f" give or take {lasting(error / _SECOND_NS)}.",
    )
