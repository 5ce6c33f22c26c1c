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

One offset is taken for the whole time looked at. A clock that is set or drifts in that time shows itself by a round
trip that is negative, which no clocks that run evenly give. Up to CLOCK_MOVED_NS its absolute value is the bound;
beyond, the pair has moved, and the router that all moved pairs have in common is compared with none: one offset would
be wrong by as much before the move as after it. `moves` says who it was, by how much, and when; `moving_clocks` has
what it takes to follow such a clock through time (vpnrouter.report.flows.moving_clocks).
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from vpnrouter.limits import REPORT_MOVING_CLOCKS
from vpnrouter.report.schema import Rows

CLOCK_DOUBT_NS: Final = 1_000_000_000
"""A pair whose bound is wider and that leaves open which clock is ahead says too little: its messages waited
somewhere, and half of that wait must not be taken for an offset."""

CLOCK_AGREE_NS: Final = 1_000_000
"""Clocks that are set over a network agree within some milliseconds, those of one machine exactly. An estimate that
is smaller than its error, and bounded by less than this, shows delays on the way and not a difference of clocks."""

CLOCK_MOVED_NS: Final = 10_000_000
"""Clocks that follow time servers wander against each other by less; what is left of it is in the bound of the error.
"""

WHOLE_TIME: Final = {"first_ns": None, "last_ns": None, "drift_ppm": None}
"""Columns of CLOCKS of a clock that neither was set nor drifts."""

_Estimate = tuple[int, int]
"""How far the second router's clock is ahead of the first one's, and the bound of the error."""

_Ages = Mapping[tuple[str, str], int]
"""The least age of messages from the first router of a pair to the second, nanoseconds."""


def clock_ages(ages: DataFrame, more: Rows | None = None) -> Rows:
    """Return from the AGES digest what the other functions need: `origin_router`, `router` and `least_age_ns` of each
    pair of routers, and rows of AGES of those that a clock that moved has to do with. `more` are rows of AGES that the
    digest does not have yet.
    """
    pairs = ages.groupBy("origin_router", "router").agg(F.min("least_age_ns").alias("least_age_ns"))
    rows: Rows = [*pairs.toArrow().to_pylist(), *(more or [])]
    routers = {name for pair in _moved(_ages(rows)[1]) for name in pair}
    if routers:
        concerned = F.col("router").isin(*routers) | F.col("origin_router").isin(*routers)
        rows += ages.where(concerned).toArrow().to_pylist()
    return rows


def clock_offsets(
    rows: Iterable[Mapping[str, Any]], hosts: Mapping[str, frozenset[str]] | None = None
) -> Rows:
    """Return rows of CLOCKS, by name of router, from rows of `clock_ages`.

    `hosts` are the machines that a router's files name (Inventory.hosts), none where a file names none.

    Every router that the rows name has a row; one that can be compared with none has null for the reference, the
    offset and the error, and 0 pairs. So has one whose offset is not as large as the sum of the errors that lead to
    it, where that leaves open more than CLOCK_DOUBT_NS.
    """
    known_ages = list(rows)
    routers, ages = _ages(known_ages)
    known = hosts or {}
    pairs = _pairs(ages, known)
    _leave_out(_left_out(known_ages, known), pairs)
    _share_clocks(pairs, routers, known)
    clocks: dict[str, dict[str, Any]] = {}
    reached: set[str] = set()
    # The reference of a group is its router with the most pairs; of equals the first by name.
    for reference in sorted(pairs, key=lambda name: (-len(pairs[name]), name)):
        if reference in reached:
            continue
        for router, (offset_ns, error_ns) in _from(reference, pairs).items():
            reached.add(router)
            if abs(offset_ns) <= error_ns and error_ns > CLOCK_DOUBT_NS:
                continue
            clocks[router] = {
                "router": router,
                "reference": reference,
                "offset_ns": offset_ns,
                "error_ns": error_ns,
                "pairs": len(pairs[router]),
            }
    unknown = {"reference": None, "offset_ns": None, "error_ns": None, "pairs": 0}
    return [
        {**clocks.get(router, {"router": router, **unknown}), **WHOLE_TIME}
        for router in sorted(routers)
    ]


def steady(clocks: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the rows of CLOCKS of an offset that is known and applies to the whole time.

    A time by a router's clock minus its offset is the time by the clock of the group's reference.
    """
    return [row for row in clocks if row["offset_ns"] is not None and row["first_ns"] is None]


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


def _ages(rows: Iterable[Mapping[str, Any]]) -> tuple[set[str], dict[tuple[str, str], int]]:
    """Return all routers, and the least age of messages from the first router of a pair to the second."""
    routers: set[str] = set()
    ages: dict[tuple[str, str], int] = {}
    for row in rows:
        origin, router, age = row["origin_router"], row["router"], row["least_age_ns"]
        routers.update(name for name in (origin, router) if name is not None)
        if age is None or origin is None or router is None or origin == router:
            continue
        key = (origin, router)
        if key not in ages or age < ages[key]:
            ages[key] = age
    return routers, ages


def _moved(ages: _Ages) -> dict[tuple[str, str], int]:
    """Return the pairs, in order of name, whose clocks moved against each other, and by how many nanoseconds at
    least.
    """
    moved: dict[tuple[str, str], int] = {}
    for (one, other), age in ages.items():
        back = ages.get((other, one))
        if one < other and back is not None and age + back < -CLOCK_MOVED_NS:
            moved[one, other] = -(age + back)
    return moved


_Series = Mapping[tuple[str, str], list[tuple[int, int]]]
"""Least ages of messages from the first router of a pair to the second, in order of time, with the begins of their
stretches."""


def _series(rows: Iterable[Mapping[str, Any]]) -> _Series:
    """Return what rows of AGES among these say, by pair."""
    least: dict[tuple[str, str], dict[int, int]] = {}
    for row in rows:
        at, age = row.get("start_ns"), row["least_age_ns"]
        if at is not None and age is not None and row["origin_router"] is not None:
            known = least.setdefault((row["origin_router"], row["router"]), {})
            known[at] = min(age, known.get(at, age))
    return {pair: sorted(known.items()) for pair, known in least.items()}


class _Blame:
    """Whose clock moved, from rows of `clock_ages`.

    `blamed` has routers and the others of their pairs, so that each pair that moved has one of them. That is the router
    of most pairs; of equals the one whose other ages show the move too; then the one that gets on with nobody else.
    Where all that does not tell, the pair is there under both names.
    """

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        listed = list(rows)
        _, self._ages = _ages(listed)
        self.moved = _moved(self._ages)
        self.series = _series(listed)
        self.sound = {
            name
            for one, other in self._ages
            if (other, one) in self._ages and _ordered(one, other) not in self.moved
            for name in (one, other)
        }
        self.blamed: dict[str, list[str]] = {}
        left = set(self.moved)
        while left:
            counts = Counter(name for pair in left for name in pair)
            most = max(counts.values())
            # Of equals the first by name, whatever the order of the pairs.
            first = {name: self._rank(name, left) for name in counts if counts[name] == most}
            worst = min(first, key=lambda name: (*first[name], name))
            mine = {pair for pair in left if worst in pair}
            left -= mine
            others = sorted({name for pair in mine for name in pair} - {worst})
            self.blamed[worst] = others
            if len(others) == 1 and first.get(others[0]) == first[worst]:
                self.blamed[others[0]] = [worst]

    def _rank(self, name: str, left: Iterable[tuple[str, str]]) -> tuple[int, bool]:
        """Return what sorts the router first whose clock it is."""
        pairs = [pair for pair in left if name in pair]
        if len(pairs) > 1:
            return 0, name in self.sound
        (pair,) = pairs
        return -self._shown(name, pair), name in self.sound

    def _shown(self, name: str, pair: tuple[str, str]) -> int:
        """Return how many more ways to the router, and from it, became slower or faster by the move than did not."""
        one, other = pair
        towards, away = self.series.get((other, one), []), self.series.get((one, other), [])
        at_ns = _set_at(towards, away, self.moved[pair])[1]
        if at_ns is None:
            return 0
        shown = 0
        for ends, ages in self.series.items():
            before = [age for start, age in ages if start < at_ns]
            after = [age for start, age in ages if start > at_ns]
            if name in ends and set(ends) != set(pair) and before and after:
                changed = abs(min(after) - min(before)) >= self.moved[pair] // 2
                shown += 1 if changed else -1
        return shown

    def is_alone(self, name: str) -> bool:
        """Return whether the clock that moved may be this router's or the one other's."""
        others = self.blamed[name]
        return len(others) == 1 and self.blamed.get(others[0]) == [name]


def _left_out(
    rows: Iterable[Mapping[str, Any]], hosts: Mapping[str, frozenset[str]]
) -> dict[str, bool]:
    """Return in order the blamed routers, and then those that share the clocks of their machines, and whether it is
    known whose clock moved.

    Of a pair that stands alone it is not. Where the two compare with nobody else, the second one by name may as well be
    the one that is right, and is not among them.
    """
    blame = _Blame(rows)
    moved = {}
    for name, others in blame.blamed.items():
        is_alone = blame.is_alone(name)
        if not is_alone or name in blame.sound or name < others[0]:
            moved[name] = not is_alone or name not in blame.sound
    machines = {hosts[name]: moved[name] for name in moved if hosts.get(name)}
    shared = {name: machines[host] for name, host in sorted(hosts.items()) if host in machines}
    return {**moved, **shared}


def _leave_out(moved: Iterable[str], pairs: dict[str, dict[str, _Estimate]]) -> None:
    """Compare routers with none."""
    for name in moved:
        for other in pairs.pop(name, {}):
            pairs.get(other, {}).pop(name, None)
    for name in [name for name, others in pairs.items() if not others]:
        del pairs[name]


@dataclass(frozen=True, kw_only=True)
class MovingClock:
    """A router whose clock moved, and how far the clocks of others of one group are ahead of that of `reference`, and
    the bound of the error, nanoseconds: of those to which it sent messages, or from which it got some.
    """

    router: str
    reference: str
    others: Mapping[str, tuple[int, int]]


def moving_clocks(
    rows: Iterable[Mapping[str, Any]],
    clocks: Iterable[Mapping[str, Any]],
    hosts: Mapping[str, frozenset[str]] | None = None,
) -> list[MovingClock]:
    """Return the clocks that moved and can be followed, from rows of `clock_ages` and of CLOCKS; at most
    REPORT_MOVING_CLOCKS.

    The group is that of most of the others. One that compares with nobody else is a group of its own. Of two that
    contradict each other and nobody else, neither is followed.
    """
    listed = list(rows)
    _, ages = _ages(listed)
    moved = _left_out(listed, hosts or {})
    known = {row["router"]: row for row in clocks if row["offset_ns"] is not None}
    near: dict[str, set[str]] = {}
    for one, other in ages:
        near.setdefault(one, set()).add(other)
        near.setdefault(other, set()).add(one)
    found = []
    for router in (router for router, is_known in moved.items() if is_known):
        groups: dict[str, dict[str, tuple[int, int]]] = {}
        for other in near.get(router, set()) - moved.keys():
            if other in known:
                row = known[other]
                groups.setdefault(row["reference"], {})[other] = (row["offset_ns"], row["error_ns"])
            elif (router, other) in ages and (other, router) in ages:
                groups[other] = {other: (0, 0)}
        if groups:
            reference = min(groups, key=lambda name: (-len(groups[name]), name))
            found.append(MovingClock(router=router, reference=reference, others=groups[reference]))
    return found[:REPORT_MOVING_CLOCKS]


def with_stretches(
    clocks: Rows, moving: Iterable[MovingClock], stretches: Mapping[str, Iterable[Any]]
) -> Rows:
    """Return rows of CLOCKS, by name of router and time, with those of clocks that were followed: `stretches` by
    router.
    """
    rows = {row["router"]: [row] for row in clocks}
    for one in moving:
        times = [
            {
                "router": one.router,
                "reference": one.reference,
                "offset_ns": stretch.offset_ns,
                "error_ns": stretch.error_ns,
                "pairs": len(one.others),
                "first_ns": stretch.first_ns,
                "last_ns": stretch.last_ns,
                "drift_ppm": stretch.drift_ppm,
            }
            for stretch in stretches.get(one.router, ())
        ]
        if times:
            rows[one.router] = times
            alone = rows[one.reference][0]
            if alone["reference"] is None:
                alone |= {"reference": one.reference, "offset_ns": 0, "error_ns": 0, "pairs": 1}
    return [row for name in sorted(rows) for row in rows[name]]


@dataclass(frozen=True, kw_only=True)
class ClockMove:
    """A clock that was set, or that drifts.

    `others` are the routers against which it shows. It moved by `moved_ns` at least, ahead or not; `ahead` is None
    where all was in one stretch. `at_ns` is the begin of the stretch in which it was set; None: it drifted, from
    `first_ns` to `last_ns`, the first and the last stretch in which it was seen. `alone`: it may as well have been
    the other's.
    """

    router: str
    others: tuple[str, ...]
    moved_ns: int
    ahead: bool | None
    at_ns: int | None
    first_ns: int
    last_ns: int
    alone: bool


def moves(rows: Iterable[Mapping[str, Any]]) -> list[ClockMove]:
    """Return the clocks that moved, by name of router, from rows of `clock_ages`. Of a pair that stands alone, one is
    told.
    """
    blame = _Blame(rows)
    found = []
    for router, others in sorted(blame.blamed.items()):
        alone = blame.is_alone(router)
        if alone and router > others[0]:
            continue
        most, other = max((blame.moved[_ordered(router, name)], name) for name in others)
        towards, away = blame.series[other, router], blame.series[router, other]
        ahead, at_ns = _set_at(towards, away, most)
        times = [at for at, _ in (*towards, *away)]
        found.append(
            ClockMove(
                router=router,
                others=tuple(others),
                moved_ns=most,
                ahead=ahead,
                at_ns=at_ns,
                first_ns=min(times),
                last_ns=max(times),
                alone=alone,
            )
        )
    return found


def _ordered(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one < other else (other, one)


def _set_at(
    towards: list[tuple[int, int]], away: list[tuple[int, int]], moved_ns: int
) -> tuple[bool | None, int | None]:
    """Return whether a clock moved ahead (None: nobody can say), and when it was set (None: it drifted), from the
    least ages by stretch of what came to its router and of what went away from it.

    A least age falls in the stretch in which the clock is set, and rises in the one after that only; so what counts
    is a fall, the one that comes nearest to the whole move: of what came to a router whose clock was set back, of
    what went away from one that was set ahead.
    """
    falls = [
        (abs(moved_ns - (before - after)), ahead, at)
        for ahead, ages in ((False, towards), (True, away))
        for (_, before), (at, after) in pairwise(ages)
        if before - after > 0
    ]
    off, ahead, at = min(falls, default=(moved_ns, False, 0))
    if off <= moved_ns // 2:
        return ahead, at
    if len(towards) > 1:
        return towards[-1][1] >= towards[0][1], None
    return away[-1][1] < away[0][1] if len(away) > 1 else None, None


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
