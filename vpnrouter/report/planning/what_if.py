"""Works out what a mesh would lose, and which bridges would carry more, without a router or a bridge or with more load.

Ways are those that messages took. Where a bridge or a message VPN goes, each way through it breaks behind the last
place before it. All places up to there still have the messages, so that the place behind the break gets them again over
the shortest way of bridges from any of these; what comes after that place is as it was. A place to which no way leads
is lost, and so is what hung on it, unless it has a way of its own.

A way is one if bridges lead along it; whether they attract the topics that went over the lost one is a matter of their
subscriptions. A bridge that has the same messages already, for another way, is counted as if they came again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any, Final, NamedTuple, final

import numpy as np

from vpnrouter.limits import REPORT_WHAT_IF, REPORT_WHAT_IF_EFFECTS, REPORT_WHAT_IF_STEPS
from vpnrouter.report.planning.questions import NONE, Questions
from vpnrouter.report.planning.traffic import Figures, Pair, Route, Traffic
from vpnrouter.report.schema import EDGE, WHAT_IF, Rows
from vpnrouter.report.structure.cuts import StepBudget, StepLimitReached
from vpnrouter.report.structure.graph import Mesh
from vpnrouter.text import counted, in_number

Row = dict[str, Any]

ROUTER: Final = "router"
BRIDGE: Final = "bridge"
DOUBLE: Final = "double"
ASKED: Final = "asked"
"""Kinds of questions: a router or a bridge that goes, a message VPN whose load doubles, and what was asked for."""

SUMMARY: Final = "summary"
LOST: Final = "lost"
RISE: Final = "rise"
"""What a row says: all of one question, a pair of message VPNs that is apart, a bridge that carries more."""


class Rise(NamedTuple):
    """`added` messages over the bridge `row` of EDGES. `peak` is the load of its busiest stretch then, divided by the
    busiest that it has shown; None where that is not known or nothing crossed it.
    """

    row: int
    added: int
    peak: float | None


@dataclass(kw_only=True)
class Outcome:
    """What comes of a question.

    `lost` are messages of the pairs of places that are apart, `own` those that entered or were received in what goes,
    `rerouted` those that crossed what goes and have another way. `rises` are the bridges that carry more, the worst
    first.
    """

    lost: dict[Pair, int] = field(default_factory=dict)
    own: int = 0
    rerouted: int = 0
    rises: list[Rise] = field(default_factory=list)


@final
class WhatIf:
    """Answers questions about the traffic of a mesh. All answers together take at most `most_steps`: bridges looked at
    in the search for other ways, and ways that break.
    """

    __slots__ = ("_steps", "_traffic")

    def __init__(self, traffic: Traffic, most_steps: int = REPORT_WHAT_IF_STEPS) -> None:
        self._traffic = traffic
        self._steps = StepBudget(most_steps)

    def without(self, places: Iterable[int], rows: Iterable[int]) -> Outcome:
        """Return what comes when these places and bridges (rows of EDGES) go.

        Raises:
            StepLimitReached: the answers would take too long.
        """
        return _Break(self._traffic, self._steps, frozenset(places), frozenset(rows)).outcome()

    def doubled(self, place: int) -> Outcome:
        """Return what comes when twice as much enters at a place, at the same times and by the same ways."""
        added: dict[int, int] = {}
        for number in self._traffic.from_place.get(place, ()):
            route = self._traffic.routes[number]
            added[route.row] = added.get(route.row, 0) + route.messages
        profile = self._traffic.published[place]
        whole = profile.sum()
        if not whole:
            return Outcome()
        loads: dict[int, Figures | None] = {
            row: count * profile / whole for row, count in added.items()
        }
        return Outcome(rises=_rises(self._traffic, added, loads))


def _rises(
    traffic: Traffic, added: Mapping[int, int], loads: Mapping[int, Figures | None]
) -> list[Rise]:
    """Return the bridges that carry more, those that exceed their peak the most first; `loads` are the messages that
    each carries more by stretch, None if not known.
    """
    rises = []
    for row, count in added.items():
        load, peak = loads[row], traffic.peak(row)
        factor = None
        if load is not None and peak > 0:
            factor = float((traffic.rates[row] + load).max() / peak)
        rises.append(Rise(row, count, factor))
    return sorted(rises, key=lambda one: (-(one.peak or 0.0), -one.added, one.row))


_A_BREAK: Final = 3
_A_TAIL: Final = 3
"""Bridges looked at that take as long as one way that breaks, and as one that hung on a lost one."""


class _Broken(NamedTuple):
    """A route that breaks: the first `kept` places still have its messages."""

    route: Route
    kept: int


@final
class _Break:
    """One answer of `WhatIf.without`."""

    def __init__(
        self, traffic: Traffic, steps: StepBudget, places: frozenset[int], rows: frozenset[int]
    ) -> None:
        self._traffic = traffic
        self._steps = steps
        self._places = places
        self._rows = rows
        self._added: dict[int, dict[int, int]] = {}
        self._lost: list[Route] = []
        self._rerouted = 0
        self._behind: dict[tuple[int, ...], frozenset[int]] = {}

    def outcome(self) -> Outcome:
        """Return what comes of it.

        Raises:
            StepLimitReached: see WhatIf.
        """
        self._follow()
        received = self._traffic.received
        pairs = {(route.origin, route.goal) for route in self._lost}
        own: dict[Pair, int] = {}
        for place in self._places:
            own.update(self._traffic.at_place.get(place, {}))
        added = {row: sum(parts.values()) for row, parts in self._added.items()}
        loads = {row: self._load(parts) for row, parts in self._added.items()}
        return Outcome(
            lost={pair: received[pair] for pair in sorted(pairs) if received.get(pair)},
            own=sum(own.values()),
            rerouted=self._rerouted,
            rises=_rises(self._traffic, added, loads),
        )

    def _load(self, parts: Mapping[int, int]) -> Figures | None:
        """Return messages by stretch of what comes over from other bridges, at the times when it crossed those."""
        load = np.zeros(self._traffic.rates.shape[1])
        for row, count in parts.items():
            rates = self._traffic.rates[row]
            whole = rates.sum()
            if not whole:
                return None
            load += count * rates / whole
        return load

    def _follow(self) -> None:
        """Find a new way for each route that breaks: first for the places right behind the break, then for those that
        hung on one that has none.
        """
        first, last = self._breaks()
        routes = self._traffic.routes
        heads: dict[int, list[_Broken]] = {}
        tails: list[int] = []
        for number in sorted(first):
            places = routes[number].places
            if not first[number] or places[-1] in self._places:
                continue
            if self._again(places, last[number]) == len(places) - 1:
                self._steps.take(first[number])
                heads.setdefault(places[-1], []).append(_Broken(routes[number], first[number]))
            else:
                tails.append(number)
        for goal in sorted(heads):
            self._reroute(goal, heads[goal])
        if not self._behind:
            return
        self._steps.take(_A_TAIL * len(tails))
        tails.sort(key=lambda number: len(routes[number].places))
        for _, longer in groupby(tails, lambda number: len(routes[number].places)):
            self._follow_tails(longer, first)

    def _follow_tails(self, numbers: Iterable[int], first: Mapping[int, int]) -> None:
        """Find ways for routes of one length that hung on a place that is lost."""
        left: dict[int, list[_Broken]] = {}
        for number in numbers:
            route = self._traffic.routes[number]
            behind = self._behind.get(route.places[:-1])
            if behind is None:
                continue
            if route.places[-1] in behind:
                # From there a way would lead to the place that has none.
                self._lose(route, behind)
            else:
                left.setdefault(route.places[-1], []).append(_Broken(route, first[number]))
        for goal in sorted(left):
            self._reroute(goal, left[goal])

    def _lose(self, route: Route, behind: frozenset[int]) -> None:
        self._behind[route.places] = behind
        self._lost.append(route)

    def _again(self, places: Sequence[int], last: int) -> int:
        """Return the position of the first place behind the last break that is still there."""
        while places[last] in self._places:
            last += 1
        return last

    def _breaks(self) -> tuple[dict[int, int], dict[int, int]]:
        """Return by number of route the position of the first, and of the last place that is gone, or comes after a
        bridge that is gone.
        """
        traffic = self._traffic
        first: dict[int, int] = {}
        last: dict[int, int] = {}

        def add(found: Iterable[tuple[int, int]]) -> None:
            for number, at in found:
                if number not in first or at < first[number]:
                    first[number] = at
                if number not in last or at > last[number]:
                    last[number] = at

        for row in self._rows:
            numbers = traffic.over_row.get(row, ())
            add((number, len(traffic.routes[number].places) - 1) for number in numbers)
            ends = traffic.mesh.ends[row]
            # Of bridges side by side nobody knows over which the first steps of a way went: the others have them.
            if ends is not None and not self._beside(ends):
                add(traffic.over.get(ends, ()))
        for place in self._places:
            add(traffic.through.get(place, ()))
        self._steps.take(_A_BREAK * len(first))
        return first, last

    def _beside(self, ends: Pair) -> bool:
        arcs = self._traffic.into[ends[1]]
        return any(start == ends[0] and row not in self._rows for start, row in arcs)

    def _reroute(self, goal: int, broken: Sequence[_Broken]) -> None:
        """Search backwards from a place until each route has met a place that still has its messages."""
        waiting: dict[int, list[int]] = {}
        for at, (route, kept) in enumerate(broken):
            for place in route.places[:kept]:
                waiting.setdefault(place, []).append(at)
        left = set(range(len(broken)))
        onward: dict[int, tuple[int, int]] = {goal: (goal, -1)}
        found: dict[int, dict[int, int]] = {}
        rim = [goal]
        while rim and left:
            ahead: list[int] = []
            for here in rim:
                arcs = self._traffic.into[here]
                self._steps.take(len(arcs))
                for place, row in arcs:
                    if place in onward or place in self._places or row in self._rows:
                        continue
                    onward[place] = (here, row)
                    ahead.append(place)
                    for at in waiting.get(place, ()):
                        if at in left:
                            left.discard(at)
                            route = broken[at].route
                            sums = found.setdefault(place, {})
                            sums[route.row] = sums.get(route.row, 0) + route.messages
            rim = ahead
        self._add_loads(onward, found)
        behind = frozenset(onward) if left else frozenset()
        for at in sorted(left):
            self._lose(broken[at].route, behind)

    def _add_loads(
        self, onward: Mapping[int, tuple[int, int]], found: Mapping[int, Mapping[int, int]]
    ) -> None:
        """Load the ways from places to the goal of a search with messages, which are by the bridge that had them."""
        for start, sums in found.items():
            self._rerouted += sum(sums.values())
            place, row = onward[start]
            while row >= 0:
                self._steps.take(1)
                parts = self._added.setdefault(row, {})
                for source, count in sums.items():
                    parts[source] = parts.get(source, 0) + count
                place, row = onward[place]


class Answers(NamedTuple):
    """Rows of WHAT_IF, and sentences about what was not worked out."""

    rows: Rows
    notes: list[str]


def what_if(
    traffic: Traffic,
    questions: Questions = NONE,
    most: int = REPORT_WHAT_IF,
    most_steps: int = REPORT_WHAT_IF_STEPS,
) -> Answers:
    """Return of each kind of question the worst answers, at most so many; with `questions` theirs alone, with all
    effects.
    """
    answers = _Answers(traffic, most_steps)
    if questions != NONE:
        return Answers([*answers.asked(questions)], [])
    kinds = (answers.routers(), answers.bridges(), answers.doubles())
    left = sum(row["rising"] is None for rows in kinds for row in rows)
    notes = []
    if left:
        notes.append(
            f"what if: {counted(left, 'router or bridge', 'routers and bridges')} that"
            f" {in_number(left, 'carries', 'carry')} the least took too long, and"
            f" {in_number(left, 'is', 'are')} not in the table"
        )
    return Answers([row for rows in kinds for row in _worst(rows, most)], notes)


def _worst(rows: Rows, most: int) -> Rows:
    def badness(row: Row) -> tuple[float, ...]:
        return (row["lost_per_s"] or 0.0, row["peak_factor"] or 0.0, row["own_per_s"] or 0.0)

    known = [row for row in rows if row["rising"] is not None]
    return sorted(known, key=badness, reverse=True)[:most]


@final
class _Answers:
    """Makes rows of WHAT_IF."""

    def __init__(self, traffic: Traffic, most_steps: int) -> None:
        self._traffic = traffic
        self._most_steps = most_steps
        self._mesh: Mesh = traffic.mesh

    def routers(self) -> Rows:
        places: dict[str, list[int]] = {}
        for number, (router, _) in enumerate(self._mesh.places):
            places.setdefault(router, []).append(number)
        load = dict.fromkeys(places, 0)
        for joint in self._mesh.joints:
            for place in (joint.one, joint.other):
                load[self._mesh.places[place][0]] += joint.messages
        busiest = sorted(places, key=lambda router: (-load[router], router))
        answers = WhatIf(self._traffic, self._most_steps)
        return [
            self._row(
                ROUTER,
                f"without {router}",
                {"router": router},
                partial(answers.without, places[router], ()),
            )
            for router in busiest
        ]

    def bridges(self) -> Rows:
        edges = self._traffic.edges
        busiest = sorted(range(len(edges)), key=lambda row: (-(edges[row]["messages"] or 0), row))
        answers = WhatIf(self._traffic, self._most_steps)
        return [
            self._row(
                BRIDGE,
                f"without {bridge_name(edges[row])}",
                _ends(edges[row]),
                partial(answers.without, (), (row,)),
            )
            for row in busiest
            if edges[row]["messages"]
        ]

    def doubles(self) -> Rows:
        mesh = self._mesh
        answers = WhatIf(self._traffic)
        return [
            self._row(
                DOUBLE,
                f"double {mesh.name(place)}",
                dict(zip(("router", "vpn"), mesh.places[place], strict=True)),
                partial(answers.doubled, place),
            )
            for place in range(len(mesh.places))
            if self._traffic.published[place].any()
        ]

    def asked(self, questions: Questions) -> Iterable[Row]:
        if questions.without:
            yield from self._without(questions.without)
        for name in questions.double:
            router, _, vpn = name.partition("/")
            number = self._mesh.numbers.get((router, vpn))
            where = {"router": router, "vpn": vpn}
            question = f"double {name}"
            if number is None:
                yield _unknown(question, where, (name,))
                continue
            outcome = WhatIf(self._traffic).doubled(number)
            yield self._row(ASKED, question, where, partial(_known, outcome))
            yield from self._effects(question, outcome)

    def _without(self, names: Sequence[str]) -> Iterable[Row]:
        places: set[int] = set()
        rows: set[int] = set()
        unknown = []
        for name in names:
            router_places = [
                at for at, (router, _) in enumerate(self._mesh.places) if router == name
            ]
            named = [at for at, edge in enumerate(self._traffic.edges) if bridge_name(edge) == name]
            if not router_places and not named:
                unknown.append(name)
            places.update(router_places)
            rows.update(named)
        question = f"without {', '.join(names)}"
        where: Row = {}
        if len(names) == 1 and not unknown:
            (name,) = names
            where = _ends(self._traffic.edges[min(rows)]) if rows else {"router": name}
            if len(rows) > 1:
                where |= {"peer_router": None, "peer_vpn": None}
        if unknown:
            yield _unknown(question, where, unknown)
            return
        try:
            outcome = WhatIf(self._traffic, self._most_steps).without(places, rows)
        except StepLimitReached:
            yield self._row(ASKED, question, where, _stopped)
            return
        yield self._row(ASKED, question, where, partial(_known, outcome))
        yield from self._effects(question, outcome)

    def _row(self, kind: str, question: str, where: Row, answer: Callable[[], Outcome]) -> Row:
        row = {**_BLANK, "kind": kind, "effect": SUMMARY, "question": question, **where}
        try:
            outcome = answer()
        except StepLimitReached:
            row["detail"] = "not worked out: the searches for other ways took too long"
            return row
        rate = self._traffic.per_second
        doubles = question.startswith(f"{DOUBLE} ")
        row["rising"] = len(outcome.rises)
        row["exceeding"] = sum((one.peak or 0.0) > 1.0 for one in outcome.rises)
        if not doubles:
            row |= {
                "pairs_lost": len(outcome.lost),
                "vpns_lost": len({place for pair in outcome.lost for place in pair}),
                "lost_per_s": rate(sum(outcome.lost.values())),
                "own_per_s": rate(outcome.own),
                "rerouted_per_s": rate(outcome.rerouted),
            }
        if outcome.rises:
            row |= self._rise(outcome.rises[0], "rise_")
        row["detail"] = self._told(outcome, doubles=doubles)
        return row

    def _rise(self, rise: Rise, prefix: str) -> Row:
        edge = self._traffic.edges[rise.row]
        before = edge["messages"] or 0
        named: Row = _ends(edge) if not prefix else {f"{prefix}{name}": edge[name] for name in EDGE}
        return named | {
            "before_per_s": self._traffic.per_second(before),
            "after_per_s": self._traffic.per_second(before + rise.added),
            "rise_factor": (before + rise.added) / before if before else None,
            "peak_factor": rise.peak,
        }

    def _told(self, outcome: Outcome, *, doubles: bool) -> str:
        told = []
        if outcome.lost:
            first = max(outcome.lost, key=lambda pair: (outcome.lost[pair], pair))
            pairs = f"{counted(len(outcome.lost), 'pair')} of message VPNs"
            cut = in_number(len(outcome.lost), "is", "are")
            told.append(
                f"{pairs} {cut} apart, first {self._mesh.name(first[0])} and {self._mesh.name(first[1])}"
            )
        elif not doubles:
            told.append("no pair of message VPNs is apart")
        if outcome.rises:
            worst = outcome.rises[0]
            edge = self._traffic.edges[worst.row]
            rises = f"{counted(len(outcome.rises), 'bridge')} {in_number(len(outcome.rises), 'carries', 'carry')} more"
            factor = "" if worst.peak is None else f" with {worst.peak:.3g} times its highest load"
            told.append(f"{rises}, first {bridge_name(edge)}{factor}")
        elif doubles:
            told.append("nothing of it crosses a bridge")
        return "; ".join(told)

    def _effects(self, question: str, outcome: Outcome) -> Rows:
        base = {**_BLANK, "kind": ASKED, "question": question}
        mesh = self._mesh
        lost = sorted(outcome.lost, key=lambda pair: (-outcome.lost[pair], pair))
        pairs = [
            {
                **base,
                "effect": LOST,
                **dict(zip(("peer_router", "peer_vpn"), mesh.places[origin], strict=True)),
                **dict(zip(("router", "vpn"), mesh.places[place], strict=True)),
                "lost_per_s": self._traffic.per_second(outcome.lost[origin, place]),
                "detail": f"{mesh.name(place)} gets nothing more of {mesh.name(origin)}",
            }
            for origin, place in lost[:REPORT_WHAT_IF_EFFECTS]
        ]
        rises = [
            {**base, "effect": RISE, **self._rise(one, ""), "detail": "carries more"}
            for one in outcome.rises[:REPORT_WHAT_IF_EFFECTS]
        ]
        return [*pairs, *rises]


_BLANK: Final[Row] = dict.fromkeys(WHAT_IF.names)


def _known(outcome: Outcome) -> Outcome:
    return outcome


def _stopped() -> Outcome:
    raise StepLimitReached


def _unknown(question: str, where: Row, names: Sequence[str]) -> Row:
    listed = ", ".join(names)
    detail = f"not in the traces: {listed}"
    return {
        **_BLANK,
        "kind": ASKED,
        "effect": SUMMARY,
        "question": question,
        **where,
        "detail": detail,
    }


def bridge_name(edge: Row) -> str:
    """Return the name of a bridge by its local end, ROUTER/VPN:BRIDGE."""
    return f"{edge['to_router']}/{edge['to_vpn']}:{edge['bridge'] or ''}"


def _ends(edge: Row) -> Row:
    return {
        "router": edge["to_router"],
        "vpn": edge["to_vpn"],
        "peer_router": edge["from_router"],
        "peer_vpn": edge["from_vpn"],
        "bridge": edge["bridge"] or None,
    }
