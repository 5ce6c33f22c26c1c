"""Clocks that were set or drift, followed by bounds of messages from and to others."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from vpnrouter.limits import REPORT_CLOCK_STRETCHES
from vpnrouter.report.flows.clocks import MovingClock, clock_offsets, moving_clocks, with_stretches
from vpnrouter.report.flows.moving_clocks import ClockStretch, followed

MS = 1_000_000
SECOND = 1_000_000_000
DAY_S = 86_400.0
BEGIN_NS = 1_772_352_000 * SECOND
CELL_NS = SECOND
LONG_S = 600
EVERY_S = 0.4


@dataclass(frozen=True, kw_only=True)
class Case:
    """A clock: by how many millionths it is fast, and when (share of the time) it was set by how many seconds.

    `stretches` it has then, and `covered` is the least share of messages whose times are known.
    """

    ppm: float = 0.0
    sets: tuple[tuple[float, float], ...] = ()
    stretches: int = 2
    covered: float = 0.97


CASES = {
    "set ahead": Case(sets=((0.5, 5.0),)),
    "set ahead by little": Case(sets=((0.3, 0.02),)),
    "set back": Case(sets=((0.5, -5.0),)),
    "set back by little": Case(sets=((0.7, -0.02),)),
    # A tenth of all times are shown twice.
    "set back by a minute": Case(sets=((0.5, -60.0),), covered=0.55),
    "set back by a day": Case(sets=((0.2, -DAY_S),)),
    "set ahead by a day": Case(sets=((0.2, DAY_S),)),
    "set twice": Case(sets=((0.3, 2.0), (0.6, 0.7)), stretches=3, covered=0.96),
    "ahead and back": Case(sets=((0.3, 40.0), (0.7, -40.0)), stretches=3, covered=0.65),
    "fast": Case(ppm=500, stretches=1, covered=0.99),
    "slow": Case(ppm=-480, stretches=1, covered=0.99),
    "fast and set": Case(ppm=120, sets=((0.4, -3.0),)),
    "steady": Case(stretches=1, covered=0.99),
}


@dataclass(frozen=True)
class Seen:
    """A message: when the clock showed it, and how far the clock was ahead."""

    at_ns: int
    ahead_ns: int


def simulated(case: Case, draws: random.Random) -> tuple[list[Seen], list[dict[str, Any]]]:
    """Messages to the clock's router and from there, and the bounds that they give by cell."""
    base = draws.choice([0, SECOND, -3 * SECOND])
    messages: list[Seen] = []
    cells: dict[int, dict[str, Any]] = {}
    for number in range(2 * int(LONG_S / EVERY_S)):
        comes = draws.random() < 0.5
        real_s = (number + draws.random()) * EVERY_S / 2
        took = int(MS + draws.expovariate(1) * MS)
        after_s = real_s + took / SECOND if comes else real_s
        ahead = base + int(case.ppm * 1e3 * after_s)
        ahead += sum(int(by * SECOND) for share, by in case.sets if after_s >= share * LONG_S)
        at = BEGIN_NS + int(after_s * SECOND) + ahead
        messages.append(Seen(at, ahead))
        cell = cells.setdefault(at // CELL_NS, dict.fromkeys(COLUMNS) | {"cell": at // CELL_NS})
        side, bound = ("above", ahead + took) if comes else ("below", ahead - took)
        known = cell[f"{side}_ns"]
        if known is None or (bound < known if comes else bound > known):
            cell[f"{side}_ns"], cell[f"{side}_at_ns"] = bound, at
    return messages, list(cells.values())


COLUMNS = ("cell", "above_ns", "above_at_ns", "below_ns", "below_at_ns")


def of(stretches: Iterable[ClockStretch], at_ns: int) -> ClockStretch | None:
    """The stretch of a time."""
    return next((one for one in stretches if one.first_ns <= at_ns < one.last_ns), None)


@pytest.mark.parametrize("name", CASES)
def test_a_clock_is_followed_within_its_bounds(name: str) -> None:
    """Whatever messages took, what is known of a time is right up to the bound, and of most times it is known."""
    case = CASES[name]
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    messages, cells = simulated(case, random.Random(seed))
    stretches = followed(cells, CELL_NS)
    assert len(stretches) == case.stretches
    for one in messages:
        stretch = of(stretches, one.at_ns)
        if stretch is not None:
            assert abs(stretch.ahead_ns(one.at_ns) - one.ahead_ns) <= stretch.error_ns + 1_000, one
            assert stretch.error_ns < 5 * MS
    known = sum(of(stretches, one.at_ns) is not None for one in messages)
    assert known >= case.covered * len(messages)


def bounds(*known: tuple[int, int | None, int | None]) -> list[dict[str, Any]]:
    """Cells of a second with bounds from above and from below in the middle, milliseconds."""
    rows = []
    for number, above, below in known:
        row: dict[str, Any] = dict.fromkeys(COLUMNS)
        row["cell"] = number
        for side, bound in (("above", above), ("below", below)):
            if bound is not None:
                at_ns = number * CELL_NS + CELL_NS // 2
                row |= {f"{side}_ns": bound * MS, f"{side}_at_ns": at_ns}
        rows.append(row)
    return rows


NOTHING_KNOWN = {
    "no message": [],
    "one way": bounds(*((number, 2, None) for number in range(20))),
    "the other way": bounds(*((number, None, -2) for number in range(20))),
    "one cell": bounds((5, 2, -2)),
    "a contradiction in each": bounds(*((number, 2, 4_000) for number in range(20))),
    "days apart": bounds(*((number, 90_000_000, -90_000_000) for number in range(20))),
    "set all the time": bounds(
        *(
            (number, 2 + 500 * (number // 4), -2 + 500 * (number // 4))
            for number in range(8 * (REPORT_CLOCK_STRETCHES + 1))
        )
    ),
}


@pytest.mark.parametrize("name", NOTHING_KNOWN)
def test_nothing_is_made_up(name: str) -> None:
    """Without messages both ways, and where they say nothing, there is no stretch."""
    assert followed(NOTHING_KNOWN[name], CELL_NS) == []


def test_one_row_that_lies_costs_its_own_time_alone() -> None:
    """A message that arrives a day before it was sent is in no stretch; those before and after are."""
    cells = bounds(*((number, 2, -2) for number in range(100)))
    cells[50]["above_ns"] = -int(DAY_S) * SECOND
    before, after = followed(cells, CELL_NS)
    assert (before.offset_ns, after.offset_ns) == (0, 0)
    assert (before.last_ns, after.first_ns) == (49 * CELL_NS, 52 * CELL_NS)


def test_nothing_is_known_after_the_last_message_back() -> None:
    """A clock that is set ahead then shows itself by nothing: messages to its router may as well have waited."""
    cells = bounds(
        *(
            (number, 2 if number < 60 else 5_002, -2 if number < 50 else None)
            for number in range(100)
        )
    )
    (stretch,) = followed(cells, CELL_NS)
    assert (stretch.first_ns, stretch.last_ns, stretch.offset_ns) == (0, 50 * CELL_NS, 0)


def test_times_that_may_have_been_shown_twice_are_left_out() -> None:
    """Also where no message contradicts another one."""
    old = dict.fromkeys(range(0, 50, 4), 0)
    new = dict.fromkeys(range(51, 100, 4), -6_000)
    cells = bounds(*((number, at + 2, at - 2) for number, at in sorted((old | new).items())))
    before, after = followed(cells, CELL_NS)
    assert (before.offset_ns, after.offset_ns) == (0, -6 * SECOND)
    # It was set back by six seconds when it showed 48 or more, and 57 or less.
    assert before.last_ns <= 45 * CELL_NS
    assert after.first_ns >= 55 * CELL_NS


def age(origin: str, router: str, least_ms: int) -> dict[str, Any]:
    """A row of `clock_ages`."""
    return {"origin_router": origin, "router": router, "least_age_ns": least_ms * MS}


def moved(one: str, other: str) -> list[dict[str, Any]]:
    """Ages of a pair of which the second clock was set back by five seconds."""
    return [age(one, other, -4_998), age(other, one, 2)]


def sound(one: str, other: str) -> list[dict[str, Any]]:
    """Ages of a pair of which the second is 40 ms ahead, give or take 2."""
    return [age(one, other, 42), age(other, one, -38)]


AHEAD = (40 * MS, 2 * MS)
FOLLOWED = {
    "the first of a pair, by the second": (moved("b", "a"), [("a", "b", {"b": (0, 0)})]),
    "who contradicts two": (
        [*moved("a", "m"), *moved("b", "m"), *sound("a", "b")],
        [("m", "a", {"a": (0, 0), "b": AHEAD})],
    ),
    "by those of the largest group": (
        [*moved("a", "m"), *moved("b", "m"), *sound("a", "b"), *moved("x", "m")],
        [("m", "a", {"a": (0, 0), "b": AHEAD})],
    ),
    "nobody knows whose": (
        [*moved("a", "b"), *sound("a", "c"), *sound("b", "d"), *sound("c", "d")],
        [],
    ),
    "two against one": (
        [*moved("a", "m"), *moved("a", "n"), *moved("b", "m"), *moved("b", "n"), *sound("a", "b")],
        [("m", "a", {"a": (0, 0), "b": AHEAD}), ("n", "a", {"a": (0, 0), "b": AHEAD})],
    ),
    "none that moved": (sound("a", "b"), []),
    "one way is enough where another goes the other way": (
        [*moved("a", "m"), *moved("b", "m"), *sound("a", "b"), *sound("a", "c"), age("m", "c", 3)],
        [("m", "a", {"a": (0, 0), "b": AHEAD, "c": AHEAD})],
    ),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_clocks_are_followed_by_those_that_are_known(name: str) -> None:
    """By all of one group with which it exchanged messages both ways."""
    ages, expected = FOLLOWED[name]
    found = moving_clocks(ages, clock_offsets(ages))
    assert [(one.router, one.reference, dict(one.others)) for one in found] == expected


def test_who_shares_the_machine_of_a_clock_that_moved_is_followed_too() -> None:
    """Its own messages tell."""
    one = frozenset({"one"})
    hosts = {"m": one, "n": one, "a": frozenset({"other"})}
    ages = [*moved("a", "m"), *moved("b", "m"), *sound("a", "b"), *sound("a", "n")]
    found = moving_clocks(ages, clock_offsets(ages, hosts), hosts)
    assert [(clock.router, sorted(clock.others)) for clock in found] == [
        ("m", ["a", "b"]),
        ("n", ["a"]),
    ]


def test_rows_of_clocks_have_the_stretches() -> None:
    """In the place of the row that says nothing; who was compared with nobody else is the reference."""
    ages = moved("b", "a")
    (clock,) = moving_clocks(ages, clock_offsets(ages))
    stretch = ClockStretch(first_ns=1, last_ns=9, offset_ns=5, drift_ppm=0.5, error_ns=2)
    rows = with_stretches(clock_offsets(ages), [clock], {"a": [stretch, stretch]})
    assert [
        (row["router"], row["reference"], row["offset_ns"], row["first_ns"]) for row in rows
    ] == [
        ("a", "b", 5, 1),
        ("a", "b", 5, 1),
        ("b", "b", 0, None),
    ]
    nothing = with_stretches(clock_offsets(ages), [clock], {})
    assert nothing == clock_offsets(ages)
    assert isinstance(clock, MovingClock)
