"""Finds clocks that are wrong, that were set or drift, and routers between which nobody can tell."""

from __future__ import annotations

from statistics import median_high, median_low
from typing import Any, Final

from vpnrouter.report.flows.clocks import ClockMove, moves, one_clock, steady
from vpnrouter.report.rules.context import lasting
from vpnrouter.report.schema import INFO, WARNING, Finding, Rows
from vpnrouter.units import SECOND_NS

_LEAST_NS: Final = 25_000_000
"""Nanoseconds of difference that matter: clocks set over a network agree within a few milliseconds."""

_TIMES_ERROR: Final = 3
"""How many times the bound of its error a difference has to be: links that are slower in one direction look
like clocks that disagree.
"""


_MAJORITY: Final = 3


def skewed_clocks(clocks: Rows) -> list[Finding]:
    """Return a `clock_skew` for each router, from rows of CLOCKS; `value` is by how many seconds it is ahead.

    The clock of the majority is right, of two the reference's. If the reference's own clock is wrong, the finding is
    about the reference, compared with the router nearest to the others.
    """
    findings = []
    for reference, rows in groups_of(clocks).items():
        right = majority_offset(rows)
        nearest = min(rows, key=lambda row: abs(row["offset_ns"] - right))
        for row in rows:
            ahead = row["offset_ns"] - right
            error = (row["error_ns"] or 0) + (nearest["error_ns"] or 0 if right else 0)
            if abs(ahead) >= _LEAST_NS and abs(ahead) > _TIMES_ERROR * error:
                other = nearest["router"] if row["router"] == reference else reference
                findings.append(_skew(row, ahead, error, other, len(rows)))
    return findings


def groups_of(clocks: Rows) -> dict[str, Rows]:
    """Return the rows of CLOCKS with an offset for the whole time by their reference, which is among them."""
    groups: dict[str, Rows] = {}
    for row in steady(clocks):
        groups.setdefault(row["reference"], []).append(dict(row))
    for reference, rows in groups.items():
        if all(row["router"] != reference for row in rows):
            rows.append({"router": reference, "offset_ns": 0, "error_ns": 0})
    return groups


def majority_offset(rows: Rows) -> int:
    """Return the offset, nanoseconds, of the majority of a group; of two the reference's, 0."""
    if len(rows) < _MAJORITY:
        return 0
    offsets: list[int] = [row["offset_ns"] for row in rows]
    return min((median_low(offsets), median_high(offsets)), key=abs)


def _skew(row: dict[str, Any], ahead: int, error: int, other: str, compared: int) -> Finding:
    side = "ahead of" if ahead > 0 else "behind"
    others = f"those of most of {compared} routers" if compared >= _MAJORITY else f"that of {other}"
    by = lasting(abs(ahead) / SECOND_NS)
    return Finding(
        kind="clock_skew",
        severity=WARNING,
        router=row["router"],
        peer_router=other or None,
        value=ahead / SECOND_NS,
        detail=f"The clock of {row['router']} is {by} {side} {others},"
        f" give or take {lasting(error / SECOND_NS)}.",
    )


_PPM: Final = 1_000_000


def moved_clocks(ages: Rows, clocks: Rows) -> list[Finding]:
    """Return a `clock_moved` for each clock that was set or drifts, from rows of `clock_ages` and of CLOCKS; `value`
    is by how many seconds it moved ahead, at least.
    """
    followed = {row["router"] for row in clocks if row["first_ns"] is not None}
    return [_moved(move, move.router in followed) for move in moves(ages)]


def _moved(move: ClockMove, is_followed: bool) -> Finding:
    others = ", ".join(move.others[:_NAMED]) + (" and others" if len(move.others) > _NAMED else "")
    seconds = move.moved_ns / SECOND_NS
    way = {True: " ahead", False: " back", None: ""}[move.ahead]
    if move.at_ns is not None:
        what = f"was set{way} by {lasting(seconds)}"
    else:
        span_ns = max(1, move.last_ns - move.first_ns)
        pace = f" ({round(move.moved_ns / span_ns * _PPM):,} millionths)" if way else ""
        what = f"{'drifted' if way else 'was set or drifted'}{way} by {lasting(seconds)}" + (
            f" in {lasting(span_ns / SECOND_NS)}{pace}" if way else ""
        )
    latencies = (
        "latencies between them are corrected by what it showed before and after, without those of the time between."
        if is_followed
        else "latencies between them are not corrected, and some are wrong by as much."
    )
    doubt = f" (or that of {others} the other way)" if move.alone else ""
    return Finding(
        kind="clock_moved",
        severity=WARNING,
        router=move.router,
        peer_router=move.others[0],
        value=-seconds if move.ahead is False else seconds,
        first_ns=move.first_ns if move.at_ns is None else move.at_ns,
        last_ns=move.last_ns if move.at_ns is None else move.at_ns,
        detail=f"The clock of {move.router} {what} against that of {others}{doubt}: {latencies}",
    )


_NAMED: Final = 3

_LONG_NS: Final = 60_000_000_000
"""Nanoseconds that the fastest of all messages between two routers seems to take: clocks differ, or all had to wait."""


def doubtful_clocks(ages: Rows, clocks: Rows) -> list[Finding]:
    """Return a `clock_skew` for each pair of routers that exchange messages one way only and whose clocks cannot be
    right, from rows of `clock_ages` and of CLOCKS; `value` is by how many seconds `router` is ahead at least.

    A message that arrives before it was sent proves a difference. One that is under way for minutes may have waited, so
    that the finding is for information.
    """
    references = {row["router"]: row["reference"] for row in clocks if row["reference"]}
    both = {(row["origin_router"], row["router"]) for row in ages}
    findings = []
    pairs = [row for row in ages if row.get("start_ns") is None]
    for row in sorted(pairs, key=lambda one: (one["origin_router"] or "", one["router"])):
        origin, router, age = row["origin_router"], row["router"], row["least_age_ns"]
        if origin is None or age is None or -_LEAST_NS < age < _LONG_NS:
            continue
        if (router, origin) in both or one_clock(references, origin, router):
            continue
        seconds = abs(age) / SECOND_NS
        ahead, behind = (origin, router) if age < 0 else (router, origin)
        if age < 0:
            detail = (
                f"Messages from {origin} reached {router} up to {lasting(seconds)} before they entered, by their"
                f" clocks: that of {origin} is ahead by as much at least."
            )
        else:
            detail = (
                f"The fastest message from {origin} to {router} took {lasting(seconds)} by their clocks: these"
                " differ, or all messages waited."
            )
        findings.append(
            Finding(
                kind="clock_skew",
                severity=WARNING if age < 0 else INFO,
                router=ahead,
                peer_router=behind,
                reason="one-way",
                value=seconds,
                detail=f"{detail} Nothing came back, so that latencies between them are not corrected.",
            )
        )
    return findings
