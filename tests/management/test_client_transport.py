"""Pages and requests of a client."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.errors import OperationError
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


@contextmanager
def resetting(answered: list[int]) -> Iterator[str]:
    """A server that answers so many requests of each connection, then resets it; yields its URL."""
    body = b'{"data":[],"meta":{"responseCode":200,"count":0}}'
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    def run(server: socket.socket) -> None:
        for count in answered:
            with server.accept()[0] as taken:
                for _ in range(count):
                    taken.recv(65_536)
                    taken.sendall(answer)
                taken.recv(65_536)
                taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=run, args=(server,))
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        thread.join(20)


def test_a_connection_that_was_closed_meanwhile() -> None:
    """A request that changes nothing is sent once more over a new connection, and no second time."""
    with resetting([1, 1, 0]) as url, Transport(url) as transport:
        for _ in range(2):
            assert transport.page("/vpnrouter/v1/bridges").rows == []
        with pytest.raises(OperationError, match="cannot connect"):
            transport.page("/vpnrouter/v1/bridges")
