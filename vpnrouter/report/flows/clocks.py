"""Estimates how far the routers' clocks are apart, from messages that crossed both ways.

A message that entered at A and came into B was under way for some time d > 0, but what the rows say is
its age by two clocks: d plus how far B's clock is ahead of A's. With the least age each way,

    offset(B) - offset(A) = (age(A to B) - age(B to A)) / 2,

and the error is at most half the round trip, (age(A to B) + age(B to A)) / 2, whatever the two ways take: the
rule of NTP (RFC 5905 section 8), with first ingress and arrival over a bridge for its four times. The ways
of direct neighbours are short, so their bounds are narrow; where messages came over more bridges the bound
is wider by itself, and such a pair is used only where no chain of better ones leads.

From the reference of a group, the router with the most pairs, offsets add up along the chain of pairs
with the least sum of errors, so that the bound holds for every router. (A mean over all chains would
have less scatter and no bound.)

Routers whose files name one machine share its clock: their offset is 0, whatever the ages say. Where the
machines are not known and the estimate is less than the bound of its error, the clocks may well agree: below
CLOCK_AGREE_NS the offset counts as 0, and the bound is wider by the estimate.

One offset is taken for the whole time looked at. Clocks that drift or are set in that time show a round trip that
is too short or negative; its absolute value is the bound then.
"""

import heapq
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.report.schema import Rows

CLOCK_DOUBT_NS: Final = 1_000_000_000
"""A pair whose bound is wider and that leaves open which clock is ahead says too little: its messages waited
somewhere, and half of that wait must not be taken for an offset."""

CLOCK_AGREE_NS: Final = 1_000_000
"""Clocks that are set over a network agree within some milliseconds, those of one machine exactly. An estimate that
is smaller than its error, and bounded by less than this, shows delays on the way and not a difference of clocks."""

_Estimate = tuple[int, int]
"""How far the second router's clock is ahead of the first one's, and the bound of the error."""


def least_ages(paths: DataFrame) -> DataFrame:
    """Return `origin_router`, `router`, `least_age_ns` from the PATHS digest, one row for each pair of routers.

    All that `clock_offsets` needs, and as small as the mesh: PATHS itself has a row a way.
    """
    return paths.groupBy("origin_router", "router").agg(
        F.min("least_age_ns").alias("least_age_ns"),
    )


def clock_offsets(
    paths: Iterable[Mapping[str, Any]], hosts: Mapping[str, frozenset[str]] | None = None
) -> Rows:
    """Return rows of CLOCKS, by name of router, from rows of PATHS or of `least_ages`.

    `hosts` are the machines that a router's files name (Inventory.hosts), none where a file names none.

    Every router that the rows name has a row; one that can be compared with none has null for
    the reference, the offset and the error, and 0 pairs.
    """
    routers, ages = _ages(paths)
    known = hosts or {}
    pairs = _pairs(ages, known)
    _share_clocks(pairs, routers, known)
    clocks: dict[str, dict[str, Any]] = {}
    # The reference of a group is its router with the most pairs; of equals the first by name.
    for reference in sorted(pairs, key=lambda name: (-len(pairs[name]), name)):
        if reference in clocks:
            continue
        for router, (offset_ns, error_ns) in _from(reference, pairs).items():
            clocks[router] = {
                "router": router,
                "reference": reference,
                "offset_ns": offset_ns,
                "error_ns": error_ns,
                "pairs": len(pairs[router]),
            }
    unknown = {"reference": None, "offset_ns": None, "error_ns": None, "pairs": 0}
    return [clocks.get(router, {"router": router, **unknown}) for router in sorted(routers)]


def offset_of(clocks: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return by router how many nanoseconds its clock is ahead, where that is known, from rows of CLOCKS.

    A time by a router's clock minus its offset is the time by the clock of the group's reference.
    """
    return {row["router"]: row["offset_ns"] for row in clocks if row["offset_ns"] is not None}


def comparable(clocks: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the reference of each router whose offset is known, from rows of CLOCKS.

    Times of two routers may be compared when they have the same one.
    """
    return {row["router"]: row["reference"] for row in clocks if row["offset_ns"] is not None}


def one_clock(references: Mapping[str, str], first: str | None, second: str | None) -> bool:
    """Return whether times of two routers compare: they are one router, or `comparable` has one reference."""
    if first is None or second is None:
        return False
    if first == second:
        return True
    known = references.get(first)
    return known is not None and known == references.get(second)


def _ages(paths: Iterable[Mapping[str, Any]]) -> tuple[set[str], dict[tuple[str, str], int]]:
    """Return all routers, and the least age of messages from the first router of a pair to the second."""
    routers: set[str] = set()
    ages: dict[tuple[str, str], int] = {}
    for row in paths:
        origin, router, age = row["origin_router"], row["router"], row["least_age_ns"]
        routers.update(name for name in (origin, router) if name is not None)
        if age is None or origin is None or router is None or origin == router:
            continue
        key = (origin, router)
        if key not in ages or age < ages[key]:
            ages[key] = age
    return routers, ages


def _share_clocks(
    pairs: dict[str, dict[str, _Estimate]],
    routers: Iterable[str],
    hosts: Mapping[str, frozenset[str]],
) -> None:
    """Set the offsets between routers of one machine to 0."""
    first: dict[frozenset[str], str] = {}
    for router in sorted(routers):
        host = hosts.get(router, frozenset())
        other = first.setdefault(host, router) if host else router
        if other != router:
            pairs.setdefault(router, {})[other] = (0, 1)
            pairs.setdefault(other, {})[router] = (0, 1)


def _pairs(
    ages: Mapping[tuple[str, str], int], hosts: Mapping[str, frozenset[str]]
) -> dict[str, dict[str, _Estimate]]:
    """Return estimates by router and partner, for pairs that exchanged messages both ways."""
    pairs: dict[str, dict[str, _Estimate]] = {}
    for (origin, router), to_here in ages.items():
        back = ages.get((router, origin))
        if back is None:
            continue
        ahead = (to_here - back) // 2
        error = max(1, (abs(to_here + back) + 1) // 2)
        if abs(ahead) <= error:
            if error > CLOCK_DOUBT_NS:
                continue
            known = bool(hosts.get(origin)) and bool(hosts.get(router))
            if not known and error <= CLOCK_AGREE_NS:
                ahead, error = 0, error + abs(ahead)
        pairs.setdefault(origin, {})[router] = (ahead, error)
    return pairs


def _from(reference: str, pairs: Mapping[str, Mapping[str, _Estimate]]) -> dict[str, _Estimate]:
    """Return offset and error of each router that chains of pairs lead to, by Dijkstra's algorithm over the errors."""
    settled: dict[str, _Estimate] = {}
    waiting = [(0, reference, 0)]
    while waiting:
        error, router, offset = heapq.heappop(waiting)
        if router in settled:
            continue
        settled[router] = (offset, error)
        for other, (ahead, more) in pairs[router].items():
            if other not in settled:
                heapq.heappush(waiting, (error + more, other, offset + ahead))
    return settled
