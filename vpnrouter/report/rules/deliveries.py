"""Finds messages that were delivered more than once, came over two bridges, or came back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.limits import REPORT_TROUBLE_ROWS
from vpnrouter.report.rules.context import (
    LOOP_DETECTED,
    TTL_EXCEEDED,
    Bridges,
    KnownCauses,
    ends,
    sums_of,
)
from vpnrouter.report.schema import ERROR, INFO, WARNING, Finding, Rows
from vpnrouter.report.visited import STEP, is_provider, message_vpns
from vpnrouter.text import counted

_DEAD_MESSAGES: Final = "#DEAD_MSG_QUEUE"
"""Where several queues of a VPN put what they gave up: copies of one message, each rightly."""


def doubles_by_place(doubles: DataFrame) -> DataFrame:
    """Return from DOUBLES one row for each kind, place and receiver, those with most copies first."""
    return (
        doubles.groupBy("kind", "router", "vpn", "who", "other")
        .agg(
            F.sum("messages").alias("messages"),
            F.sum("copies").alias("copies"),
            F.min("example_trace").alias("example_trace"),
            F.min("first_ns").alias("first_ns"),
            F.max("last_ns").alias("last_ns"),
        )
        .orderBy(F.desc("copies"))
        .limit(REPORT_TROUBLE_ROWS)
    )


def duplicates(doubles: Rows, excuses: KnownCauses, bridges: Bridges) -> list[Finding]:
    """Return a `duplicate` for each client, endpoint and bridge in `doubles` of `doubles_by_place`.

    `value` is how many copies were one too many.
    """
    findings = []
    for row in doubles:
        router, vpn, who, copies = row["router"], row["vpn"], row["who"], row["copies"]
        if row["kind"] == "two_ways" or excuses.by_loop(router, vpn, copies):
            continue
        where: dict[str, Any] = {"router": router, "vpn": vpn}
        if row["kind"] == "bridge":
            edge = bridges.receiving(router, vpn, "", who, None)
            if excuses.by_discards(router, vpn, copies) or excuses.by_breaks(
                edge, copies, row["first_ns"], row["last_ns"]
            ):
                continue
            where = ends(edge) if edge else {**where, "bridge": who}
            did = f"bridge {who} brought"
        elif row["kind"] == "enqueue":
            if who == _DEAD_MESSAGES:
                continue
            where["endpoint"] = who
            did = f"endpoint {who} took"
        else:
            where["client"] = who
            did = f"client {who} got"
        trace = row["example_trace"]
        example = f"; one of them is trace {trace}" if trace else ""
        findings.append(
            Finding(
                kind="duplicate",
                severity=WARNING,
                **where,
                messages=row["messages"],
                value=float(copies),
                first_ns=row["first_ns"],
                last_ns=row["last_ns"],
                detail=f"In {router}/{vpn} {did} {counted(row['messages'], 'message')} more than once,"
                f" {counted(copies, 'copy', 'copies')} too many{example}.",
            )
        )
    return findings


_DISCARDED: Final = INFO
"""How bad it is that the second copies were all discarded: a ring is often there on purpose."""


def two_ways(doubles: Rows, excuses: KnownCauses) -> list[Finding]:
    """Return a `two_ways` for each pair of bridges in `doubles` of `doubles_by_place`.

    Info, and one a VPN, where it discarded the copies, as it does with Direct messages: then the second way
    is there for the day on which the first breaks. None where the messages came around a loop.
    """
    by_vpn: dict[tuple[str, str], Rows] = {}
    for row in doubles:
        if row["kind"] == "two_ways":
            by_vpn.setdefault((row["router"], row["vpn"]), []).append(row)
    findings = []
    for (router, vpn), rows in by_vpn.items():
        copies = sum(row["copies"] for row in rows)
        if excuses.by_loop(router, vpn, copies):
            continue
        if excuses.by_discards(router, vpn, copies):
            findings.append(_discarded(router, vpn, rows, copies))
            continue
        findings += [
            Finding(
                kind="two_ways",
                severity=WARNING,
                router=router,
                vpn=vpn,
                messages=row["messages"],
                value=float(row["copies"]),
                first_ns=row["first_ns"],
                last_ns=row["last_ns"],
                detail=f"{counted(row['messages'], 'message')} came to {router}/{vpn} both over"
                f" {row['who']} and over {row['other']}, and nobody discarded the second copy.",
            )
            for row in rows
        ]
    return findings


def _discarded(router: str, vpn: str, rows: Rows, copies: int) -> Finding:
    worst = max(rows, key=lambda row: row["copies"])
    return Finding(
        kind="two_ways",
        severity=_DISCARDED,
        router=router,
        vpn=vpn,
        messages=sum(row["messages"] for row in rows),
        value=float(copies),
        first_ns=min(row["first_ns"] for row in rows),
        last_ns=max(row["last_ns"] for row in rows),
        detail=f"{copies:,} times a message came to {router}/{vpn} a second time, most often over"
        f" {worst['who']} and over {worst['other']}, and was discarded there: the way is spare.",
    )


def looping_paths(paths: DataFrame) -> DataFrame:
    """Return from PATHS the paths with a VPN in them twice: `way`, `router`, `vpn`, `count`, `bytes`,
    `first_ns`, `last_ns`. The last VPN of the way is where the messages arrived. A provider may be there twice.
    """
    way = F.concat_ws(STEP, "path", F.concat_ws("/", "router", "vpn"))
    stops = message_vpns(F.col("way"))
    return (
        paths.where(F.col("path").isNotNull())
        .withColumn("way", way)
        .where(F.size(F.array_distinct(stops)) < F.size(stops))
        .groupBy("way", "router", "vpn")
        .agg(
            F.sum("count").alias("count"),
            F.sum("bytes").alias("bytes"),
            F.min("first_ns").alias("first_ns"),
            F.max("last_ns").alias("last_ns"),
        )
        .orderBy(F.desc("count"))
        .limit(REPORT_TROUBLE_ROWS)
    )


def canonical(cycle: list[str]) -> tuple[str, ...]:
    """Return the cycle with its smallest VPN first; `cycle` names each of its VPNs once, in order, and providers
    between them.
    """
    least = cycle.index(min(place for place in cycle if not is_provider(place)))
    return (*cycle[least:], *cycle[:least])


def cycles_of(way: str) -> tuple[list[tuple[str, ...]], tuple[str, ...] | None]:
    """Return the cycles on a way, canonical, in order, and the one that its last step closed, if it did. They begin
    and end at message VPNs.
    """
    cycles: list[tuple[str, ...]] = []
    closed: tuple[str, ...] | None = None
    stops = way.split(STEP)
    latest: dict[str, int] = {}
    for at, stop in enumerate(stops):
        if is_provider(stop):
            continue
        before = latest.get(stop)
        latest[stop] = at
        closed = None
        if before is not None:
            closed = canonical(_without_cycles(stops[before:at]))
            if closed not in cycles:
                cycles.append(closed)
    return cycles, closed


def _without_cycles(stops: list[str]) -> list[str]:
    """Return a path without its loops: the same begin and end, each VPN once."""
    straight: list[str] = []
    for stop in stops:
        if stop in straight:
            del straight[straight.index(stop) + 1 :]
        else:
            straight.append(stop)
    return straight


def looped_arrivals(ways: Rows) -> dict[tuple[str, str], int]:
    """Return how many messages came to each VPN after they had been in a VPN twice."""
    arrivals: dict[tuple[str, str], int] = {}
    for row in ways:
        place = row["router"], row["vpn"]
        arrivals[place] = arrivals.get(place, 0) + row["count"]
    return arrivals


@dataclass
class _Loop:
    """What was seen of a cycle. `passed` counts messages that went around it and on."""

    closed: dict[tuple[str, str], int] = field(default_factory=dict)
    passed: int = 0
    payload: int = 0
    first_ns: int | None = None
    last_ns: int | None = None


def loops(ways: Rows, losses: Rows) -> list[Finding]:
    """Return a `loop` for each cycle in `ways` of `looping_paths`; `losses` are those of `losses_by_place`.

    A cycle whose every return was discarded on arrival is left to `loop_stopped`.
    """
    by_cycle: dict[tuple[str, ...], _Loop] = {}
    for row in ways:
        cycles, closed = cycles_of(row["way"])
        for cycle in cycles:
            loop = by_cycle.setdefault(cycle, _Loop())
            if cycle == closed:
                place = row["router"], row["vpn"]
                loop.closed[place] = loop.closed.get(place, 0) + row["count"]
                loop.payload += row["bytes"] or 0
            else:
                loop.passed += row["count"]
            loop.first_ns = _least(loop.first_ns, row["first_ns"])
            loop.last_ns = _most(loop.last_ns, row["last_ns"])
    stopped: dict[tuple[str, str], int] = {}
    for row in losses:
        if row["reason"] == LOOP_DETECTED and row["back"] is not False:
            place = row["router"], row["vpn"]
            stopped[place] = stopped.get(place, 0) + row["count"]
    findings = []
    for cycle, loop in by_cycle.items():
        ended = bool(loop.closed) and all(
            stopped.get(place, 0) >= count for place, count in loop.closed.items()
        )
        if not ended:
            findings.append(_loop(cycle, loop))
    return findings


def _loop(cycle: tuple[str, ...], loop: _Loop) -> Finding:
    router, _, vpn = cycle[0].partition("/")
    messages = sum(loop.closed.values()) or loop.passed
    drawn = STEP.join([*cycle, cycle[0]])
    return Finding(
        kind="loop",
        severity=ERROR,
        router=router,
        vpn=vpn,
        messages=messages,
        bytes=loop.payload,
        first_ns=loop.first_ns,
        last_ns=loop.last_ns,
        detail=f"{counted(messages, 'time')} a message came back{_through(cycle)} on the loop {drawn}.",
    )


def _through(cycle: tuple[str, ...]) -> str:
    """Return what tells a loop through connectors from one of bridges alone."""
    return " through a provider" if any(map(is_provider, cycle)) else ""


def _least(one: int | None, other: int | None) -> int | None:
    return min((value for value in (one, other) if value is not None), default=None)


def _most(one: int | None, other: int | None) -> int | None:
    return max((value for value in (one, other) if value is not None), default=None)


def stopped_loops(losses: Rows, bridges: Bridges) -> list[Finding]:
    """Return a `loop_stopped` for each place, bridge and reason in `losses` of `losses_by_place`.

    Messages that the sender did not send cost nothing and are ignored: every bridge in both directions has them.
    """
    grouped: dict[tuple[str, ...], Rows] = {}
    for row in losses:
        wasted = row["reason"] == TTL_EXCEEDED or (
            row["reason"] == LOOP_DETECTED and row["back"] is not False
        )
        if row["event"] == "discard" and wasted:
            place = row["router"], row["vpn"], row["bridge"], row["client"], row["reason"]
            grouped.setdefault(place, []).append(row)
    findings = []
    for (router, vpn, bridge, client, reason), rows in grouped.items():
        edge = bridges.receiving(router, vpn, client, bridge, rows[0]["example_path"])
        where = ends(edge) if edge else {"router": router, "vpn": vpn, "bridge": bridge or None}
        messages = sum(row["count"] for row in rows)
        why = (
            "had been there before"
            if reason == LOOP_DETECTED
            else "had crossed as many bridges as they may"
        )
        over = f" over bridge {where['bridge']}" if where["bridge"] else ""
        findings.append(
            Finding(
                kind="loop_stopped",
                severity=INFO,
                **where,
                reason=reason,
                **sums_of(rows),
                detail=f"{counted(messages, 'message')} came to {router}/{vpn}{over} in vain: they {why}.",
            )
        )
    return findings
