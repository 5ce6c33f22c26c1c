"""A faulty link with a server behind it."""

import socket
from collections.abc import Callable, Iterator

import pytest

from vpnrouter.testing.network import FaultyLink, FaultyNetwork

PATIENCE_S = 10.0

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def network() -> Iterator[FaultyNetwork]:
    """A network that ends with the test."""
    with FaultyNetwork() as made:
        yield made


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """The target."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.settimeout(PATIENCE_S)
        yield made


@pytest.fixture
def link(network: FaultyNetwork, server: socket.socket) -> FaultyLink:
    """A link to the server."""
    return network.link(server.getsockname())


@pytest.fixture
def dial() -> Iterator[Callable[[FaultyLink], socket.socket]]:
    """`dial(link)`: a connection to it, closed with the test."""
    made: list[socket.socket] = []

    def connect(link: FaultyLink) -> socket.socket:
        made.append(socket.create_connection(("127.0.0.1", link.port), PATIENCE_S))
        return made[-1]

    yield connect
    for each in made:
        each.close()


@pytest.fixture
def pair(
    link: FaultyLink, server: socket.socket, dial: Callable[[FaultyLink], socket.socket]
) -> Iterator[Callable[[], Pair]]:
    """`pair()`: a connection through the link, as its dialler and its target hold it."""
    made: list[socket.socket] = []

    def connect() -> Pair:
        dialer = dial(link)
        target, _ = server.accept()
        target.settimeout(PATIENCE_S)
        made.append(target)
        return dialer, target

    yield connect
    for each in made:
        each.close()
