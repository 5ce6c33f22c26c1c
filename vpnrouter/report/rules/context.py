"""Holds what the rules share: wording, bounds, bridges by trace rows, losses, and known causes of copies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.limits import REPORT_TROUBLE_ROWS
from vpnrouter.report.schema import BRIDGE_CLIENT, Edge, Finding, Rows, edge_named, worst_first
from vpnrouter.units import HOUR_S, MINUTE_S


def bounded(findings: Iterable[Finding], most: int) -> list[Finding]:
    """Return the worst `most` of each kind, worst first; the last one of a kind says how many more there are."""
    findings_shown: list[Finding] = []
    places: dict[str, list[int]] = {}
    left_out: dict[str, int] = {}
    for finding in worst_first(findings):
        here = places.setdefault(finding.kind, [])
        if len(here) < most:
            here.append(len(findings_shown))
            findings_shown.append(finding)
        else:
            left_out[finding.kind] = left_out.get(finding.kind, 0) + 1
    for kind, more in left_out.items():
        at = places[kind][-1]
        detail = f"{findings_shown[at].detail} And {more:,} more of this kind."
        findings_shown[at] = replace(findings_shown[at], detail=detail)
    return findings_shown


def lasting(seconds: float) -> str:
    """Return a duration, given in seconds, with a unit that fits: `250 ms`, `12.5 s`, `3.0 minutes`."""
    if seconds < 1:
        return f"{seconds * 1_000:.0f} ms"
    if seconds < 2 * MINUTE_S:
        return f"{seconds:.1f} s"
    if seconds < 2 * HOUR_S:
        return f"{seconds / MINUTE_S:.1f} minutes"
    return f"{seconds / HOUR_S:.1f} hours"


def percent(share: float) -> str:
    """Return a share of 1.0: `12.5 %`."""
    return f"{share * 100:.1f} %"


def ends(edge: Edge) -> dict[str, Any]:
    """Return the fields of a finding about a bridge: its place is the local end, which attracts."""
    return {
        "router": edge.to_router,
        "vpn": edge.to_vpn,
        "peer_router": edge.from_router,
        "peer_vpn": edge.from_vpn,
        "bridge": edge.bridge or None,
    }


def named(edge: Edge) -> str:
    """Return the bridge as text."""
    return (
        f"bridge {edge.bridge} from {edge.from_router}/{edge.from_vpn}"
        f" to {edge.to_router}/{edge.to_vpn}"
    )


class Bridges:
    """The bridges of a mesh, found by what trace rows say of them."""

    def __init__(self, edges: Rows) -> None:
        known = [edge_named(row) for row in edges]
        self.rows: dict[Edge, dict[str, Any]] = dict(zip(known, edges, strict=True))
        self._into: dict[tuple[str, str], list[Edge]] = {}
        self._out_of: dict[tuple[str, str], list[Edge]] = {}
        for edge in known:
            self._into.setdefault((edge[2], edge[3]), []).append(edge)
            self._out_of.setdefault((edge[0], edge[1]), []).append(edge)

    def sending(self, router: str, vpn: str, client: str, bridge: str) -> Edge | None:
        """Return the bridge over which `router`/`vpn` sends to its `client`, or to the bridge of that name."""
        here = self._out_of.get((router, vpn), [])
        if client.startswith(BRIDGE_CLIENT):
            logged_in = self._by_login(here, router, vpn, client)
            if logged_in is not None:
                return logged_in
            # The connection that an own bridge made carries messages of the peer's bridge as well.
            own = _only(
                edge
                for edge in self._into.get((router, vpn), [])
                if client == f"{BRIDGE_CLIENT}{edge[4]}"
            )
            if own is not None:
                return _only(edge for edge in here if edge[2:4] == own[0:2])
        return _only(edge for edge in here if bridge and edge[4] == bridge)

    @staticmethod
    def _by_login(here: Iterable[Edge], router: str, vpn: str, client: str) -> Edge | None:
        for edge in here:
            if client == edge.client:
                return edge
        peer_router, first, rest = client.removeprefix(BRIDGE_CLIENT).partition("/")
        peer_vpn, second, name = rest.rpartition("/")
        return Edge(router, vpn, peer_router, peer_vpn, name) if first and second else None

    def receiving(
        self, router: str, vpn: str, client: str, bridge: str, path: str | None
    ) -> Edge | None:
        """Return the bridge over which a message came to `router`/`vpn`, None if that is ambiguous.

        `client` delivered it, `bridge` is the name in the row, `path` where the message had been: its last VPN is the
        other end.
        """
        here = self._into.get((router, vpn), [])
        name = bridge or (
            client.removeprefix(BRIDGE_CLIENT) if client.startswith(BRIDGE_CLIENT) else ""
        )
        if name:
            here = [edge for edge in here if edge[4] == name]
        if len(here) > 1 and path:
            last = tuple(path.rpartition(">")[2].partition("/")[::2])
            here = [edge for edge in here if edge[0:2] == last]
        return _only(here)


def _only(edges: Iterable[Edge]) -> Edge | None:
    distinct = list(edges)
    return distinct[0] if len(distinct) == 1 else None


LOOP_DETECTED: Final = "loop-detected"
TTL_EXCEEDED: Final = "ttl-exceeded"
DUPLICATE: Final = "duplicate"
TRANSMIT_CONGESTION: Final = "transmit-congestion"

_CONSUMER: Final = "rejected"
"""Reason of a reject by a consumer, after which the message leaves the endpoint: nothing waits for it."""


def losses_by_place(losses: DataFrame) -> DataFrame:
    """Return from LOSSES `router`, `vpn`, `event`, `reason`, `endpoint`, `bridge`, `client`, `back`, `count`,
    `weight` (null when not known of all), `bytes`, `example_path`, `first_ns`, `last_ns`, `spans`.

    Only what the rules of this package look at. `back`: the message had been in this VPN before, which only a
    receiver sees (a sender does not let it go); null where the row does not say. `spans` are structs of
    first_ns, last_ns and count, a stretch of time each, of rejects only.
    """
    discard = F.col("event") == "discard"
    reject = F.col("event") == "reject"
    reason = F.col("reason")
    crossed = F.coalesce(F.col("crossed"), F.lit(True))
    to_bridge = F.col("client").startswith(BRIDGE_CLIENT) | (F.col("bridge") != "")
    relevant = losses.where(
        (discard & crossed & reason.isin(LOOP_DETECTED, TTL_EXCEEDED, DUPLICATE))
        | (discard & to_bridge & (reason == TRANSMIT_CONGESTION))
        | (reject & crossed & (reason != _CONSUMER))
    )
    here = F.concat_ws("/", "router", "vpn")
    back = F.array_contains(F.split("example_path", ">"), here)
    known = F.count("weight") == F.count(F.lit(1))
    span = F.struct("first_ns", "last_ns", "count")
    return (
        relevant.withColumn("back", back)
        .groupBy("router", "vpn", "event", "reason", "endpoint", "bridge", "client", "back")
        .agg(
            F.sum("count").alias("count"),
            F.when(known, F.sum("weight")).alias("weight"),
            F.sum("bytes").alias("bytes"),
            F.min("example_path").alias("example_path"),
            F.min("first_ns").alias("first_ns"),
            F.max("last_ns").alias("last_ns"),
            F.collect_list(F.when(reject, span)).alias("spans"),
        )
        .orderBy(F.desc("count"))
        .limit(REPORT_TROUBLE_ROWS)
    )


def sums_of(losses: Rows) -> dict[str, Any]:
    """Return the fields of a finding about rows of losses."""
    return {
        "messages": sum(row["count"] for row in losses),
        "bytes": sum(row["bytes"] or 0 for row in losses),
        "first_ns": min(row["first_ns"] for row in losses),
        "last_ns": max(row["last_ns"] for row in losses),
    }


_MARGIN: Final = 1.1
"""Counts of one cause by two ways of counting may differ by this factor: a message in flight when tracing
began or ended is in one of them only.
"""

_RETURNED: Final = 10_000
"""Messages that may come once more after a link broke: those that were sent and not acknowledged. No
window is larger (CLIENT_WINDOW).
"""

_AROUND_NS: Final = 60_000_000_000
"""Time, nanoseconds, between a link's end and what comes once more: heartbeats, retries and a restart."""


class KnownCauses:
    """Explains copies: a loop, which is reported as one; a second path, whose copies the VPN discarded; or a broken
    link.
    """

    def __init__(self, back: dict[tuple[str, str], int], losses: Rows, links: Rows) -> None:
        """Take `back` of `looped_arrivals`, `losses` of `losses_by_place`, and `links`, rows of LINKS."""
        self._back = back
        self._discarded: dict[tuple[str, str], int] = {}
        for row in losses:
            if row["reason"] in {DUPLICATE, LOOP_DETECTED} and row["event"] == "discard":
                place = row["router"], row["vpn"]
                self._discarded[place] = self._discarded.get(place, 0) + row["count"]
        self._downs: dict[Edge, list[int]] = {}
        for row in links:
            if row["down_ns"] is not None:
                self._downs.setdefault(edge_named(row), []).append(row["down_ns"])

    def by_loop(self, router: str, vpn: str, copies: int) -> bool:
        """Return whether as many messages as `copies` came around a loop."""
        return copies <= self._back.get((router, vpn), 0) * _MARGIN

    def by_discards(self, router: str, vpn: str, copies: int) -> bool:
        """Return whether the VPN discarded as many messages as `copies`."""
        place = router, vpn
        return copies <= (self._discarded.get(place, 0) + self._back.get(place, 0)) * _MARGIN

    def by_breaks(self, edge: Edge | None, copies: int, first_ns: int, last_ns: int) -> bool:
        """Return whether the bridge's link broke around that time, often enough to explain the copies."""
        if edge is None:
            return False
        downs = self._downs.get(edge, [])
        near = [at for at in downs if first_ns - _AROUND_NS <= at <= last_ns + _AROUND_NS]
        return copies <= len(near) * _RETURNED
