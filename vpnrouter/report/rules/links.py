"""Finds links that flap or are refused, bridges that lose messages, and bridges that are up and carry nothing.

The remote router records what it sent, the local one what arrived. Several stretches of time in a row with sends and no
arrival, while the link is up, are a stall. Not a stall: publishers that are silent (nothing is sent), a link that is
down, a local router that does not trace or whose last trace file is missing (it wrote nothing else either), a wrong
clock (corrected).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from vpnrouter.limits import REPORT_TROUBLE_ROWS, REPORT_TROUBLE_STALLS
from vpnrouter.report.digests.columns import ends as edge_columns
from vpnrouter.report.rules.clocks import groups_of, majority_offset
from vpnrouter.report.rules.context import (
    TRANSMIT_CONGESTION,
    Bridges,
    ends,
    lasting,
    named,
    percent,
    sums_of,
)
from vpnrouter.report.schema import EDGE, ERROR, Edge, Finding, Rows, edge_named
from vpnrouter.text import counted
from vpnrouter.units import SECOND_NS

_TOO_OFTEN: Final = ((3_600 * SECOND_NS, 3), (24 * 3_600 * SECOND_NS, 6))
"""Within so long, nanoseconds, so many downs after which the link came back. A router that stops takes its
links down for good, one that starts anew does once; an upgrade that goes wrong, twice.
"""


def flapping_links(links: Rows) -> list[Finding]:
    """Return a `flapping_link` for each bridge, from rows of LINKS; `value` is how often it went down and came
    back.
    """
    by_edge: dict[Edge, list[tuple[int | None, int | None]]] = {}
    for row in links:
        by_edge.setdefault(edge_named(row), []).append((row["up_ns"], row["down_ns"]))
    findings = []
    for edge, spans in by_edge.items():
        ups = [up for up, _ in spans if up is not None]
        latest = max(ups, default=0)
        downs = sorted({down for _, down in spans if down is not None and down <= latest})
        worst = _too_often(downs)
        if worst is None:
            continue
        within, count = worst
        seconds = (latest - downs[0]) / SECOND_NS
        findings.append(
            Finding(
                kind="flapping_link",
                severity=ERROR,
                **ends(edge),
                value=float(len(downs)),
                first_ns=downs[0],
                last_ns=latest,
                detail=f"The link of {named(edge)} went down and came back"
                f" {counted(len(downs), 'time')} in {lasting(seconds)}, {count} of them within"
                f" {lasting(within / SECOND_NS)}.",
            )
        )
    return findings


def _too_often(downs: list[int]) -> tuple[int, int] | None:
    """Return the first length of time, nanoseconds, that holds too many of `downs`, and how many at most."""
    for within, bound in _TOO_OFTEN:
        most = begin = 0
        for at, down in enumerate(downs):
            while down - downs[begin] > within:
                begin += 1
            most = max(most, at - begin + 1)
        if most >= bound:
            return within, most
    return None


_LEAST_REFUSALS: Final = 3
"""Logins that have to be refused: a router that starts may refuse one that comes too early."""


def refused_logins(states: DataFrame) -> DataFrame:
    """Return from STATES the bridges whose link was refused and did not come up since: the edge, `refusals`, `reason`
    (the last one), `first_ns`, `last_ns`.

    Both ends write down a refusal; the one that saw more counts.
    """
    rejected = F.col("event") == "link_rejected"
    remote = F.col("client").isNotNull()
    at_ns = F.when(rejected, F.col("ts_ns"))
    by_end = (
        states.where(
            (rejected | (F.col("event") == "link_up"))
            & F.col("vpn").isNotNull()
            & F.col("peer_router").isNotNull()
            & F.col("peer_vpn").isNotNull()
        )
        .select(
            *(column.alias(name) for name, column in edge_columns(remote).items()),
            remote.alias("remote"),
            "event",
            "reason",
            "ts_ns",
        )
        .groupBy(*EDGE, "remote")
        .agg(
            F.count(at_ns).alias("refusals"),
            F.min(at_ns).alias("first_ns"),
            F.max(at_ns).alias("last_ns"),
            F.max_by("reason", at_ns).alias("reason"),
            F.max(F.when(~rejected, F.col("ts_ns"))).alias("up_ns"),
        )
    )
    return (
        by_end.groupBy(*EDGE)
        .agg(
            F.max("refusals").alias("refusals"),
            F.min("first_ns").alias("first_ns"),
            F.max("last_ns").alias("last_ns"),
            F.max_by("reason", "last_ns").alias("reason"),
            F.max("up_ns").alias("up_ns"),
        )
        .where(F.col("refusals") >= _LEAST_REFUSALS)
        .where(F.col("up_ns").isNull() | (F.col("up_ns") < F.col("last_ns")))
        .orderBy(F.desc("refusals"), *EDGE)
        .limit(REPORT_TROUBLE_ROWS)
        .drop("up_ns")
    )


def refused_bridges(rows: Rows) -> list[Finding]:
    """Return a `refused_bridge` for each row of `refused_logins`; `value` is how often it was refused."""
    findings = []
    for row in rows:
        edge = edge_named(row)
        seconds = (row["last_ns"] - row["first_ns"]) / SECOND_NS
        findings.append(
            Finding(
                kind="refused_bridge",
                severity=ERROR,
                **ends(edge),
                reason=row["reason"],
                value=float(row["refusals"]),
                first_ns=row["first_ns"],
                last_ns=row["last_ns"],
                detail=f"The link of {named(edge)} was refused {counted(row['refusals'], 'time')} in"
                f" {lasting(seconds)} and did not come up since: {row['reason'] or 'no reason given'}.",
            )
        )
    return findings


_SHARE: Final = 0.01
"""Share of a bridge's messages that has to be lost: below, a burst now and then met a full buffer."""

_LEAST: Final = 10
"""Messages that have to be lost: of fewer a share says nothing."""


def hot_bridges(losses: Rows, bridges: Bridges) -> list[Finding]:
    """Return a `hot_bridge` for each bridge in `losses` of `losses_by_place`; `value` is the share lost."""
    lost: dict[Edge, Rows] = {}
    for row in losses:
        if row["event"] == "discard" and row["reason"] == TRANSMIT_CONGESTION:
            edge = bridges.sending(row["router"], row["vpn"], row["client"], row["bridge"])
            if edge is not None:
                lost.setdefault(edge, []).append(row)
    findings = []
    for edge, rows in lost.items():
        messages = sum(row["count"] for row in rows)
        share = _share(messages, rows, bridges.rows.get(edge))
        if messages >= _LEAST and share >= _SHARE:
            findings.append(
                Finding(
                    kind="hot_bridge",
                    severity=ERROR,
                    **ends(edge),
                    reason=TRANSMIT_CONGESTION,
                    **sums_of(rows),
                    value=share,
                    detail=f"{counted(messages, 'message')}, {percent(share)} of all, found no room on"
                    f" {named(edge)} and were discarded at {edge[0]}/{edge[1]}.",
                )
            )
    return findings


def _share(messages: int, rows: Rows, edge: dict[str, Any] | None) -> float:
    """Return the share lost. Discards may be recorded of every message and sends of a sample only, so weights count
    where they are known.
    """
    if edge is None:
        return 1.0
    weights = [row["weight"] for row in rows]
    sent_estimated = edge["messages_estimated"]
    if sent_estimated is not None and None not in weights:
        lost = float(sum(weights))
        return lost / (lost + sent_estimated) if lost else 0.0
    return messages / (messages + (edge["sent"] or edge["messages"] or 0))


_STRETCHES: Final = 3
"""Stretches of time with sends and no arrival: the first and the last may be cut by what comes before
and after.
"""

_LEAST_NS: Final = 10_000_000_000
"""Nanoseconds that a stall lasts at least: shorter ones are pauses of a busy machine."""

_BROKEN_NS: Final = 60_000_000_000
"""Nanoseconds that a stall lasts at least that ends with the link: a network that breaks is noticed after
three heartbeats, 15 seconds, unless a bridge asks for longer ones.
"""

_TIMES_LATENCY: Final = 3
"""A stall lasts at least so many times what slow messages (p99) of this bridge take."""

_LEAST_SENT: Final = 5
"""Messages sent in vain: fewer may all be lost by chance."""

_FOREVER: Final = 1 << 63


def unanswered_sends(places: DataFrame, clocks: Rows, width_ns: int) -> DataFrame:
    """Return from PLACES the bridges with stretches in which they sent and nothing arrived: the edge, and `stretches`,
    a list of structs of start_ns, sent, received, in order of time.

    `clocks` are rows of CLOCKS and `width_ns` is the length of a stretch; times are by the majority's clock.
    """
    sent = F.col("event") == "bridge_send"
    crossing = places.where(
        F.col("event").isin("bridge_send", "bridge_receive")
        & F.col("peer_router").isNotNull()
        & F.col("peer_vpn").isNotNull()
    ).select(
        *(column.alias(name) for name, column in edge_columns(sent).items()),
        _corrected(clocks, width_ns).alias("start_ns"),
        F.when(sent, F.col("count")).otherwise(0).alias("sent"),
        F.when(sent, 0).otherwise(F.col("count")).alias("received"),
    )
    by_stretch = crossing.groupBy(*EDGE, "start_ns").agg(
        F.sum("sent").alias("sent"), F.sum("received").alias("received")
    )
    in_vain = (F.col("sent") > 0) & (F.col("received") == 0)
    return (
        by_stretch.groupBy(*EDGE)
        .agg(
            F.sum("received").alias("arrived"),
            F.count(F.when(in_vain, 1)).alias("quiet"),
            F.sum(F.when(in_vain, F.col("sent"))).alias("lost"),
            F.sort_array(F.collect_list(F.struct("start_ns", "sent", "received"))).alias(
                "stretches"
            ),
        )
        .where(
            (F.col("arrived") > 0) & (F.col("quiet") >= _STRETCHES) & (F.col("lost") >= _LEAST_SENT)
        )
        .orderBy(F.desc("quiet"))
        .limit(REPORT_TROUBLE_STALLS)
        .select(*EDGE, "stretches")
    )


def _corrected(clocks: Rows, width_ns: int) -> Column:
    """Return the begin of the stretch by the majority's clock, in whole stretches."""
    shifts = _shifts(clocks, width_ns)
    start = F.col("start_ns")
    if not shifts:
        return start
    pairs = [F.lit(value) for pair in shifts.items() for value in pair]
    return start - F.coalesce(F.create_map(*pairs)[F.col("router")], F.lit(0))


def _shifts(clocks: Rows, width_ns: int) -> dict[str, int]:
    """Return by how much clocks are wrong, in whole stretches, if by more than half a stretch."""
    shifts: dict[str, int] = {}
    for rows in groups_of(clocks).values():
        right = majority_offset(rows)
        for row in rows:
            shifts[row["router"]] = round((row["offset_ns"] - right) / width_ns) * width_ns
    return {router: shift for router, shift in shifts.items() if shift}


def active_stretches(places: DataFrame, rows: Rows, clocks: Rows, width_ns: int) -> DataFrame:
    """Return from PLACES and rows of `unanswered_sends` the stretches in which the routers that should have received
    wrote anything: `router`, `starts` (a list, in order).
    """
    routers = sorted({row["to_router"] for row in rows})
    return (
        places.where(F.col("router").isin(routers))
        .select("router", _corrected(clocks, width_ns).alias("start_ns"))
        .groupBy("router")
        .agg(F.sort_array(F.collect_set("start_ns")).alias("starts"))
    )


@dataclass
class _Run:
    """Stretches with sends and no arrival since the last arrival; `until` is when the link went down."""

    until: int
    starts: list[int]
    sent: list[int]
    resumed: bool = False
    broken: bool = False


def stalled_bridges(
    rows: Rows, lives: Rows, links: Rows, bridges: Bridges, width_ns: int
) -> list[Finding]:
    """Return a `stalled_bridge` for each stall, from rows of `unanswered_sends`, of `active_stretches` and of LINKS;
    `value` is its seconds and `messages` what was sent in vain.
    """
    starts = {row["router"]: row["starts"] for row in lives}
    ups: dict[Edge, list[tuple[int, int]]] = {}
    for link in links:
        up, down = link["up_ns"], link["down_ns"]
        ups.setdefault(edge_named(link), []).append(
            (-_FOREVER if up is None else up, _FOREVER if down is None else down)
        )
    findings = []
    for row in rows:
        edge = edge_named(row)
        known = bridges.rows.get(edge, {})
        least = max(_LEAST_NS, _TIMES_LATENCY * (known.get("latency_p99_ns") or 0))
        spans = ups.get(edge, [(-_FOREVER, _FOREVER)])
        for run in _runs(row["stretches"], spans, width_ns):
            _cut(run, starts.get(edge[2], []))
            finding = _stall(edge, run, width_ns, least)
            if finding is not None:
                findings.append(finding)
    return findings


def _runs(stretches: Rows, ups: list[tuple[int, int]], width_ns: int) -> list[_Run]:
    runs: list[_Run] = []
    run: _Run | None = None
    for stretch in stretches:
        start, end = stretch["start_ns"], stretch["start_ns"] + width_ns
        if stretch["received"]:
            if run is not None:
                run.resumed = end <= run.until
                run = None
            continue
        if not stretch["sent"]:
            continue
        if run is None or end > run.until:
            run = None
            until = next((down for up, down in ups if up <= start and end <= down), None)
            if until is not None:
                run = _Run(until, [], [])
                runs.append(run)
        if run is not None:
            run.starts.append(start)
            run.sent.append(stretch["sent"])
    for one in runs:
        one.broken = not one.resumed and one.until != _FOREVER
    return runs


def _cut(run: _Run, lives: list[int]) -> None:
    """Remove the stretches after the receiving router's last trace row, because its trace may be lost. A router that
    received again over the same link was there all the time.
    """
    if run.resumed:
        return
    at = bisect_right(lives, run.until)
    last = lives[at - 1] if at else -_FOREVER
    known = bisect_right(run.starts, last)
    del run.starts[known:]
    del run.sent[known:]


def _stall(edge: Edge, run: _Run, width_ns: int, least_ns: int) -> Finding | None:
    if len(run.starts) < _STRETCHES or sum(run.sent) < _LEAST_SENT:
        return None
    first, last = run.starts[0], run.starts[-1] + width_ns
    if last - first < max(least_ns, _BROKEN_NS if run.broken else 0):
        return None
    seconds = (last - first) / SECOND_NS
    messages = sum(run.sent)
    return Finding(
        kind="stalled_bridge",
        severity=ERROR,
        **ends(edge),
        messages=messages,
        value=seconds,
        first_ns=first,
        last_ns=last,
        detail=f"Nothing arrived over {named(edge)} for {lasting(seconds)}, though its link was up and"
        f" {counted(messages, 'message')} had been sent.",
    )
