"""vpnrouter.report.rules.links: links that come and go."""

from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter.report.rules.links import flapping_links

MakeRow = Callable[..., dict[str, Any]]
HOUR = 3_600


def spans(*downs: float, final: float | None = None) -> list[tuple[float | None, float | None]]:
    """Ups that end at each of `downs` and begin ten seconds later; the last ends at `final`, if ever."""
    starts = [0.0, *(down + 10 for down in downs)]
    return list(zip(starts, [*downs, final], strict=True))


@pytest.mark.parametrize(
    "downs",
    [
        (100, 200, 300),
        (100, 200 + HOUR, 300 + HOUR, 400 + HOUR),
        tuple(at * 3 * HOUR for at in range(1, 7)),
    ],
)
def test_links_that_go_down_all_the_time_flap(link_row: MakeRow, downs: tuple[float, ...]) -> None:
    """Three times within an hour, or six within a day."""
    rows = [link_row(up, down) for up, down in spans(*downs)]
    (found,) = flapping_links(rows)
    assert (found.kind, found.severity, found.value) == (
        "flapping_link",
        "error",
        float(len(downs)),
    )
    assert (found.router, found.peer_router, found.bridge) == ("b", "a", "way")
    assert (found.first_ns, found.last_ns) == (int(downs[0] * 1e9), int((downs[-1] + 10) * 1e9))


def test_the_sentence_says_how_often(link_row: MakeRow) -> None:
    """In all, and when it was worst."""
    (found,) = flapping_links([link_row(up, down) for up, down in spans(0, 100, 200, 20_000)])
    assert found.detail == (
        "The link of bridge way from a/x to b/y went down and came back 4 times in 5.6 hours,"
        " 3 of them within 60.0 minutes."
    )


@pytest.mark.parametrize(
    "ups",
    [
        # Two restarts, and the router's stop at the end.
        spans(100, 200, final=300),
        # A restart every night of a week.
        spans(*(day * 24 * HOUR for day in range(1, 8))),
        # One every five hours.
        spans(*(at * 5 * HOUR for at in range(1, 9))),
        # It was up before anybody watched.
        [(None, 100.0), (110.0, 200.0), (210.0, None)],
        [(900.0, None)],
    ],
)
def test_restarts_are_no_flapping(
    link_row: MakeRow, ups: list[tuple[float | None, float | None]]
) -> None:
    """Downs that are rare, or after which nothing came back."""
    assert flapping_links([link_row(up, down) for up, down in ups]) == []


def test_each_link_counts_for_itself(link_row: MakeRow) -> None:
    """A router that restarts takes down all of its links, each once."""
    rows = [
        link_row(up, down, bridge=name) for name in "abcd" for up, down in spans(100, final=None)
    ]
    assert flapping_links(rows) == []
