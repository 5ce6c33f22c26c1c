"""Counts what depends on each message VPN: who sends through it, and who gets from it, directly and over bridges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from vpnrouter.report.planning.traffic import Pair, Traffic
from vpnrouter.report.schema import Rows


def blast_radius(traffic: Traffic, clients: Rows, endpoints: Rows) -> Rows:
    """Return BLAST_RADIUS, the message VPNs with most dependent messages first.

    `clients` and `endpoints` are how many each message VPN has: `router`, `vpn`, `count`. Those of message VPNs
    without a row are 0, or null where there are no rows at all.
    """
    clients_at = _by_place(traffic, clients)
    endpoints_at = _by_place(traffic, endpoints)
    whole: dict[Pair, int] = {}
    for route in traffic.routes:
        pair = (route.origin, route.goal)
        whole[pair] = whole.get(pair, 0) + route.messages
    rows: Rows = []
    for place, (router, vpn) in enumerate(traffic.mesh.places):
        senders: set[int] = set()
        receivers: set[int] = set()
        passed: dict[Pair, int] = {}
        for number, at in traffic.through.get(place, ()):
            route = traffic.routes[number]
            end = len(route.places) - 1
            if at > 0:
                senders.add(route.origin)
            if at < end:
                receivers.add(route.goal)
            if 0 < at < end:
                pair = (route.origin, route.goal)
                passed[pair] = passed.get(pair, 0) + route.messages
        ends = {
            pair: n for pair, n in traffic.at_place.get(place, {}).items() if pair[0] != pair[1]
        }
        beyond = float(sum(ends.values()))
        for pair, messages in passed.items():
            # Of a pair with several ways, the share of those that lead through here.
            if whole[pair]:
                beyond += traffic.received.get(pair, 0) * messages / whole[pair]
        others = senders | receivers
        rows.append(
            {
                "router": router,
                "vpn": vpn,
                "clients": _sum(clients_at, (place,)),
                "endpoints": _sum(endpoints_at, (place,)),
                "local_per_s": traffic.per_second(traffic.received.get((place, place), 0)),
                "senders": len(senders),
                "receivers": len(receivers),
                "vpns": len(others),
                "clients_beyond": _sum(clients_at, others),
                "endpoints_beyond": _sum(endpoints_at, others),
                "beyond_per_s": traffic.per_second(beyond),
            }
        )
    rows.sort(key=lambda row: (-(row["beyond_per_s"] or 0.0), -(row["local_per_s"] or 0.0)))
    return rows


def _by_place(traffic: Traffic, rows: Rows) -> dict[int, int] | None:
    if not rows:
        return None
    counts: dict[int, int] = {}
    for row in rows:
        place = traffic.mesh.numbers.get((row["router"], row["vpn"]))
        if place is not None:
            counts[place] = row["count"]
    return counts


def _sum(counts: Mapping[int, int] | None, places: Iterable[int]) -> int | None:
    return None if counts is None else sum(counts.get(place, 0) for place in places)
