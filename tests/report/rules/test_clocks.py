"""Wrong clocks, clocks that were set or drift, and clocks of which nobody can tell."""

from __future__ import annotations

from typing import Any

import pytest

from vpnrouter.report.flows.clocks import WHOLE_TIME
from vpnrouter.report.rules.clocks import doubtful_clocks, moved_clocks, skewed_clocks

MS = 1_000_000
SECOND = 1_000_000_000


def clock(
    router: str, offset_ms: float | None, error_ms: float = 1, reference: str = "r"
) -> dict[str, Any]:
    """A row of CLOCKS."""
    offset = None if offset_ms is None else int(offset_ms * MS)
    error = None if offset is None else int(error_ms * MS)
    return {
        "router": router,
        "reference": reference,
        "offset_ns": offset,
        **WHOLE_TIME,
        "error_ns": error,
        "pairs": 1,
    }


def test_a_clock_that_is_off_is_named() -> None:
    """By how much and against whom; good ones are not."""
    (found,) = skewed_clocks([clock("r", 0, 0), clock("a", 2), clock("b", -2_500), clock("c", -3)])
    assert (found.kind, found.severity, found.router, found.peer_router) == (
        "clock_skew",
        "warning",
        "b",
        "r",
    )
    assert found.value == -2.5
    assert found.detail == (
        "The clock of b is 2.5 s behind those of most of 4 routers, give or take 1 ms."
    )


def test_the_reference_itself_may_be_wrong() -> None:
    """Then all others seem to be: the finding is the reference's, and the only one."""
    rows = [clock("a", 5_000), clock("b", 5_002), clock("c", 4_999)]
    for known in ([], [clock("r", 0, 0)]):
        (found,) = skewed_clocks([*rows, *known])
        assert (found.router, found.peer_router, found.value) == ("r", "c", -4.999)


def test_of_two_the_reference_is_right() -> None:
    """Nobody can tell; the sentence says against whom."""
    (found,) = skewed_clocks([clock("a", 250)])
    assert (found.router, found.peer_router) == ("a", "r")
    assert found.detail == "The clock of a is 250 ms ahead of that of r, give or take 1 ms."


def test_small_and_uncertain_differences_are_none() -> None:
    """Below 25 ms, within three errors, or not known."""
    rows = [
        clock("a", 24),
        clock("b", 600, 200),
        clock("c", None),
        clock("d", -24),
        clock("r", 0, 0),
    ]
    assert skewed_clocks(rows) == []
    assert len(skewed_clocks([*rows, clock("e", 601, 200)])) == 1


def test_groups_have_references_of_their_own() -> None:
    """What could not be compared is not."""
    rows = [clock("a", 5_000), clock("b", 5_000, reference="s"), clock("c", 5_000, reference="s")]
    found = skewed_clocks(rows)
    assert [(one.router, one.peer_router) for one in found] == [("a", "r"), ("s", "b")]


def ages(way: str, *least_ms: float | None) -> list[dict[str, Any]]:
    """Rows of AGES of a way "a b", one for each stretch of ten seconds; None: no message in that one."""
    origin, router = way.split()
    return [
        {"origin_router": origin, "router": router, "start_ns": at * 10 * SECOND}
        | {"least_age_ns": round(least * MS)}
        for at, least in enumerate(least_ms)
        if least is not None
    ]


MOVED = {
    "set back": (
        [*ages("a b", 2, 2, -4_998, -4_998), *ages("b a", 2, 2, 2, 5_002)],
        (
            "a",
            "b",
            4.996,
            20,
            "was set ahead by 5.0 s against that of b (or that of b the other way)",
        ),
    ),
    "set ahead": (
        [*ages("a b", 2, 2, 5_002, 5_002), *ages("b a", 2, 2, -4_998, -4_998)],
        ("a", "b", -4.996, 20, "was set back by 5.0 s"),
    ),
    "set back, seen by two": (
        [
            *(*ages("a b", 2, -4_998), *ages("b a", 2, 5_002)),
            *(*ages("c b", 3, -4_997), *ages("b c", 3, 5_003)),
        ],
        ("b", "a", -4.996, 10, "was set back by 5.0 s against that of a, c: latencies between"),
    ),
    "the one that gets on with nobody else": (
        [*ages("a b", 2, -4_998), *ages("b a", 2, 5_002), *ages("c a", 3, 3), *ages("a c", 3, 3)],
        ("b", "a", -4.996, 10, "was set back by 5.0 s against that of a: latencies between"),
    ),
    "after a wait": (
        [*ages("a b", 2, 900, 2, -4_998), *ages("b a", 2, 2, None, 5_002)],
        ("a", "b", 4.996, 30, "was set ahead by 5.0 s"),
    ),
    "within one stretch": (
        [*ages("a b", -4_998), *ages("b a", 2)],
        ("a", "b", 4.996, 0, "was set or drifted by 5.0 s against that of b"),
    ),
    "the one whose other ways show it": (
        # Between b and the others, messages went both ways only after it was set.
        [
            *(*ages("b c", 2, 2, 5_002, 5_002), *ages("c b", 2, 2, -4_998, -4_998)),
            *(*ages("a b", 3, 3, -4_997, -4_997), *ages("b a", None, None, 5_003, 5_003)),
            *(*ages("d b", 3, 3, -4_997), *ages("b d", None, None, 5_003)),
        ],
        ("b", "c", -4.996, 20, "was set back by 5.0 s against that of c: latencies between"),
    ),
    "a drift": (
        [*ages("a b", *range(2, 102, 5)), *ages("b a", *range(2, -98, -5))],
        ("a", "b", -0.091, 0, "drifted back by 91 ms in 3.2 minutes (479 millionths)"),
    ),
}


@pytest.mark.parametrize("case", MOVED)
def test_a_clock_that_moved_is_named(case: str) -> None:
    """Whose it was, by how much, which way and when; where nobody can tell whose, the sentence says so."""
    rows, (router, peer, seconds, at_s, told) = MOVED[case]
    (found,) = moved_clocks(rows, [])
    assert (found.kind, found.severity) == ("clock_moved", "warning")
    assert (found.router, found.peer_router) == (router, peer)
    assert found.value == pytest.approx(seconds)
    assert found.first_ns == at_s * SECOND
    assert told in found.detail


@pytest.mark.parametrize(
    "rows",
    [
        [*ages("a b", 2, 9, 2), *ages("b a", 2, 2, 700)],
        [*ages("a b", 42, 42), *ages("b a", -38, -38)],
        [*ages("a b", 2, -3), *ages("b a", 2, -6)],
        ages("a b", 2, -4_998),
    ],
    ids=["steady", "ahead", "wanders", "one way"],
)
def test_clocks_that_run_evenly_moved_not(rows: list[dict[str, Any]]) -> None:
    """Waits, a difference, some milliseconds of a time server; and of one way nobody can say."""
    assert moved_clocks(rows, []) == []


def least(way: str, least_ms: int) -> list[dict[str, Any]]:
    """The row of a way "a b" for the whole time."""
    origin, router = way.split()
    return [{"origin_router": origin, "router": router, "least_age_ns": least_ms * MS}]


DAY_MS = 86_400_000
DOUBTFUL = {
    "before it was sent": (
        least("a b", -DAY_MS),
        ("warning", "a", "b", 86_400.0, "ahead by as much"),
    ),
    "as long as a day": (
        least("a b", DAY_MS),
        ("info", "b", "a", 86_400.0, "or all messages waited"),
    ),
    "soon": (least("a b", 59_000), None),
    "a little before": (least("a b", -24), None),
    "both ways": ([*least("a b", -DAY_MS), *least("b a", DAY_MS)], None),
    "compared through others": (least("r a", -DAY_MS), None),
    "nobody knows from where": (
        [{"origin_router": None, "router": "b", "least_age_ns": -DAY_MS}],
        None,
    ),
    "itself": (least("a a", DAY_MS), None),
}


@pytest.mark.parametrize("case", DOUBTFUL)
def test_one_way_only(case: str) -> None:
    """What arrives before it was sent proves a clock wrong; what takes minutes may have waited."""
    rows, wanted = DOUBTFUL[case]
    found = [
        (one.severity, one.router, one.peer_router, one.value, one.detail)
        for one in doubtful_clocks(rows, [clock("r", 0, 0), clock("a", 5)])
    ]
    assert len(found) == (wanted is not None)
    for one in found:
        assert wanted is not None
        assert one[:4] == wanted[:4]
        assert wanted[4] in one[4]
        assert "not corrected" in one[4]
