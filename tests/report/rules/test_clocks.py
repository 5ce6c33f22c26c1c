"""vpnrouter.report.rules.places: wrong clocks."""

from typing import Any

from vpnrouter.report.rules.places import skewed_clocks

MS = 1_000_000


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
