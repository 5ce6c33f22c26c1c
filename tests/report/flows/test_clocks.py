"""vpnrouter.report.flows.clocks: how far clocks are apart."""

import random
from typing import Any

import pytest

from vpnrouter.report.flows.clocks import (
    CLOCK_DOUBT_NS,
    WHOLE_TIME,
    clock_offsets,
    comparable,
    one_clock,
    steady,
)

MS = 1_000_000
UNKNOWN = {"reference": None, "offset_ns": None, "error_ns": None, "pairs": 0, **WHOLE_TIME}


def age(origin: str | None, router: str, least_age_ns: int | None) -> dict[str, Any]:
    """A row of PATHS, as far as clocks need it."""
    return {"origin_router": origin, "router": router, "least_age_ns": least_age_ns}


def offsets(rows: list[dict[str, Any]]) -> dict[str, int]:
    """How far the clocks are ahead for the whole time, by router."""
    return {row["router"]: row["offset_ns"] for row in steady(rows)}


def test_two_ways_give_the_offset_and_its_bound() -> None:
    """5 ms ahead, 1 ms each way: ages 6 and -4, and half the round trip is the bound."""
    assert clock_offsets([age("a", "b", 6 * MS), age("b", "a", -4 * MS)]) == [
        {"router": "a", "reference": "a", "offset_ns": 0, "error_ns": 0, "pairs": 1, **WHOLE_TIME},
        {
            "router": "b",
            "reference": "a",
            "offset_ns": 5 * MS,
            "error_ns": MS,
            "pairs": 1,
            **WHOLE_TIME,
        },
    ]


def test_the_least_age_of_several_ways_counts() -> None:
    """Messages that waited, or came over more bridges, do not spoil what the quick ones tell."""
    rows = [age("a", "b", 9 * MS), age("a", "b", 6 * MS), age("b", "a", -4 * MS)]
    rows.append(age("b", "a", 700 * MS))
    assert offsets(clock_offsets(rows)) == {"a": 0, "b": 5 * MS}


def test_one_way_tells_nothing() -> None:
    """A router without a partner both ways has a row of nulls, and so has one that hears itself only."""
    rows = [age("a", "b", MS), age("c", "c", MS), age(None, "d", MS), age("e", "a", None)]
    found = clock_offsets(rows)
    assert found == [{"router": name, **UNKNOWN} for name in "abcde"]
    assert offsets(found) == {}


def test_the_router_with_most_pairs_is_the_reference() -> None:
    """The middle of a star, not the first by name; each group has its own."""
    star = [row for leaf in "ac" for row in (age("b", leaf, 2 * MS), age(leaf, "b", 2 * MS))]
    apart = [age("y", "x", 3 * MS), age("x", "y", -MS)]
    found = clock_offsets(star + apart)
    assert comparable(found) == {"a": "b", "b": "b", "c": "b", "x": "x", "y": "x"}
    assert [row["pairs"] for row in found] == [1, 2, 1, 1, 1]
    assert offsets(found)["y"] == -2 * MS


def test_narrow_chains_go_before_a_wide_pair() -> None:
    """Two pairs of neighbours say more about the ends than messages that took a slow way back."""
    rows = [
        *(age("a", "b", 11 * MS), age("b", "a", -9 * MS)),
        *(age("b", "c", 11 * MS), age("c", "b", -9 * MS)),
        *(age("a", "c", 22 * MS), age("c", "a", 80 * MS)),
    ]
    assert clock_offsets(rows)[2] == {
        "router": "c",
        "reference": "a",
        "offset_ns": 20 * MS,
        "error_ns": 2 * MS,
        "pairs": 2,
        **WHOLE_TIME,
    }


def test_a_wait_is_not_taken_for_an_offset() -> None:
    """A pair that only says "within minutes" does not count; a skew beyond any doubt does."""
    waited = [age("a", "b", 600 * CLOCK_DOUBT_NS), age("b", "a", MS)]
    assert clock_offsets(waited) == [{"router": name, **UNKNOWN} for name in "ab"]
    skewed = [age("a", "b", 3_604 * CLOCK_DOUBT_NS), age("b", "a", -3_600 * CLOCK_DOUBT_NS)]
    assert clock_offsets(skewed)[1]["offset_ns"] == 3_602 * CLOCK_DOUBT_NS
    assert clock_offsets(skewed)[1]["error_ns"] == 2 * CLOCK_DOUBT_NS


def test_a_clock_that_was_set_has_an_honest_bound() -> None:
    """A negative round trip, which no clock that runs evenly gives, bounds by its absolute value."""
    assert clock_offsets([age("a", "b", -6 * MS), age("b", "a", -4 * MS)])[1]["error_ns"] == 5 * MS
    assert clock_offsets([age("a", "b", 4 * MS), age("b", "a", -4 * MS)])[1]["error_ns"] == 1


@pytest.mark.parametrize("seed", range(10))
def test_the_bound_holds_in_any_mesh(seed: int) -> None:
    """Random meshes, delays, skews and few samples: every true offset is within the bound."""
    draw = random.Random(seed)
    names = [f"r{number}" for number in range(12)]
    skews = {name: draw.randint(-3_000 * MS, 3_000 * MS) for name in names}
    rows = []
    for _ in range(60):
        one, other = draw.sample(names, 2)
        for origin, router in ((one, other), (other, one)):
            delays = [draw.randint(1, 40 * MS) for _ in range(draw.randint(1, 3))]
            rows.append(age(origin, router, min(delays) + skews[router] - skews[origin]))
    found = clock_offsets(rows)
    assert any(row["pairs"] > 0 for row in found), f"seed {seed}"
    for row in found:
        if row["reference"] is not None:
            true_ns = skews[row["router"]] - skews[row["reference"]]
            assert abs(row["offset_ns"] - true_ns) <= row["error_ns"], f"seed {seed}: {row}"


def moved(one: str, other: str) -> list[dict[str, Any]]:
    """Ages of a pair of which one clock was set back by five seconds."""
    return [age(one, other, -4_998 * MS), age(other, one, 2 * MS)]


def sound(one: str, other: str) -> list[dict[str, Any]]:
    """Ages of a pair of which the second is 40 ms ahead."""
    return [age(one, other, 42 * MS), age(other, one, -38 * MS)]


MOVED = {
    "a pair": (moved("a", "b"), {}),
    "one of three": ([*moved("a", "b"), *sound("a", "c")], {"a": "a", "c": "a"}),
    "the middle of a star": ([*moved("a", "b"), *moved("a", "c")], {}),
    "one of a full mesh": (
        [
            *(*moved("a", "b"), *moved("a", "c"), *moved("a", "d")),
            *(*sound("b", "c"), *sound("c", "d"), *sound("b", "d")),
        ],
        {"b": "b", "c": "b", "d": "b"},
    ),
    "two, each with others": (
        [*moved("a", "b"), *sound("a", "c"), *sound("b", "d"), *sound("c", "d")],
        {"c": "c", "d": "c"},
    ),
    "a wander": ([age("a", "b", 2 * MS), age("b", "a", -11 * MS)], {"a": "a", "b": "a"}),
}


@pytest.mark.parametrize("case", MOVED)
def test_a_clock_that_moved_is_compared_with_none(case: str) -> None:
    """One offset would be wrong before the move or after it; the others are compared as before."""
    rows, references = MOVED[case]
    assert comparable(clock_offsets(rows)) == references


def test_who_shares_a_clock_that_moved() -> None:
    """Routers of its machine still compare with each other, and with nobody else."""
    machine = frozenset({"machine"})
    hosts = {"b": machine, "e": machine, "a": frozenset({"other"})}
    rows = [*moved("a", "b"), *sound("a", "c"), *sound("a", "e"), age("b", "e", MS)]
    assert comparable(clock_offsets(rows, hosts)) == {"a": "a", "b": "b", "c": "a", "e": "b"}


def test_an_offset_below_the_sum_of_its_errors_is_none() -> None:
    """Each step of a chain may say something, and the whole nothing."""
    second = CLOCK_DOUBT_NS
    chain = [age("a", "b", 5 * second), age("b", "a", -second)]
    chain += [age("b", "c", -second), age("c", "b", 4 * second)]
    assert comparable(clock_offsets(chain)) == {"a": "b", "b": "b", "c": "b"}
    chain += [age("c", "d", 5 * second), age("d", "c", -second)]
    assert comparable(clock_offsets(chain)) == {"a": "b", "b": "b", "c": "b"}


def test_times_compare_within_a_group_and_within_a_router() -> None:
    """Not across groups, and not where nothing is known."""
    references = {"a": "b", "b": "b", "x": "y"}
    assert one_clock(references, "a", "b")
    assert one_clock(references, "other", "other")
    assert not one_clock(references, "a", "x")
    assert not one_clock(references, "other", "another")
    assert not one_clock(references, None, None)


ONE = frozenset({"machine"})


def test_routers_of_one_machine_have_one_clock() -> None:
    """Whatever the ages say, and where no message came back; other routers are compared through any of them."""
    rows = [age("a", "b", 9 * MS), age("b", "a", MS), age("b", "c", 7 * MS), age("c", "b", -3 * MS)]
    hosts = {"a": ONE, "b": ONE, "d": ONE, "c": frozenset({"another"})}
    found = clock_offsets([*rows, age("a", "d", 4 * MS)], hosts)
    assert offsets(found) == {"a": 0, "b": 0, "d": 0, "c": 5 * MS}


def test_an_estimate_below_its_error_takes_nothing_off() -> None:
    """Clocks that agree as far as anybody can tell are left alone, and the bound says how far that is."""
    rows = [age("a", "b", 300_000), age("b", "a", 100_000)]
    found = clock_offsets(rows)
    assert offsets(found) == {"a": 0, "b": 0}
    assert found[1]["error_ns"] == 300_000
    # Two machines that are known to be two: the middle is what errs least.
    apart = clock_offsets(rows, {"a": ONE, "b": frozenset({"another"})})
    assert (apart[1]["offset_ns"], apart[1]["error_ns"]) == (100_000, 200_000)
    beyond = clock_offsets([age("a", "b", 500_000), age("b", "a", -100_000)])
    assert offsets(beyond) == {"a": 0, "b": 300_000}
