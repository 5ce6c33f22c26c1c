"""Pages and requests of a client."""

from typing import Any

from vpnrouter import limits
from vpnrouter.management.client_transport import Transport

MOST = limits.MANAGEMENT_PAGE_ROWS


def served(standing: Any, count: int) -> Any:
    """A router with `count` bridges."""
    names = [f"b{number:03}" for number in range(count)]
    return standing.Still(["blue"], [standing.bridge_status("blue", name) for name in names])


def test_pages(standing: Any) -> None:
    """A page says how many there are in all, and where the next one begins."""
    with (
        standing.serving(served(standing, MOST + 5)) as address,
        Transport(f"http://{address}/") as transport,
    ):
        assert transport.url == f"http://{address}"
        first = transport.page("/vpnrouter/v1/bridges")
        assert (len(first.rows), first.total) == (MOST, MOST + 5)
        rest = transport.page("/vpnrouter/v1/bridges", cursor=first.cursor)
        assert (rest.rows[0]["bridgeName"], rest.cursor) == (f"b{MOST}", "")


def test_rows_are_asked_for_as_they_are_taken(standing: Any) -> None:
    """Who takes few costs the router few; a condition is the router's to look at."""
    still = served(standing, 2 * MOST)
    with standing.serving(still) as address, Transport(f"http://{address}") as transport:
        rows = transport.rows("/vpnrouter/v1/bridges")
        next(rows)
        assert still.looked <= MOST
        taken = [row["bridgeName"] for row in transport.rows("/vpnrouter/v1/bridges", wanted=3)]
        assert taken == ["b000", "b001", "b002"]
        found = transport.rows(
            "/vpnrouter/v1/bridges", where="bridgeName==b1*", select="bridgeName"
        )
        assert {tuple(row) for row in found} == {("bridgeName",)}
