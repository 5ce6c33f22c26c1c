"""A network of several links."""

import socket
from collections.abc import Callable

import pytest

from vpnrouter.testing.network import FaultyLink, FaultyNetwork

Pair = tuple[socket.socket, socket.socket]


def test_no_target_resets(
    network: FaultyNetwork, dial: Callable[[FaultyLink], socket.socket]
) -> None:
    """A link that leads nowhere resets whoever connects; so does one whose target refuses."""
    nowhere = network.link()
    with socket.create_server(("127.0.0.1", 0)) as gone:
        refusing = network.link(gone.getsockname())
    for link in (nowhere, refusing):
        with pytest.raises(ConnectionResetError):
            dial(link).recv(1)


def test_links_fail_apart(
    network: FaultyNetwork,
    link: FaultyLink,
    server: socket.socket,
    pair: Callable[[], Pair],
    dial: Callable[[FaultyLink], socket.socket],
) -> None:
    """A fault of one link leaves the connections of another one to the same target alone."""
    other = network.link(server.getsockname())
    _, broken = pair()
    dialer = dial(other)
    target, _ = server.accept()
    with target:
        link.unreachable()
        with pytest.raises(ConnectionResetError):
            broken.recv(1)
        dialer.sendall(b"x")
        assert target.recv(1) == b"x"


def test_leaving_ends_everything(
    server: socket.socket, dial: Callable[[FaultyLink], socket.socket]
) -> None:
    """When the network ends, its connections are reset and its ports refuse."""
    with FaultyNetwork() as network:
        link = network.link(server.getsockname())
        dialer = dial(link)
        target, _ = server.accept()
    with target:
        for end in (dialer, target):
            with pytest.raises(ConnectionResetError):
                end.recv(1)
    with pytest.raises(ConnectionRefusedError):
        dial(link)
