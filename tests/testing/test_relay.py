"""A relay carries bytes unchanged, and what happens to one end happens to the other."""

import socket
import threading
from collections.abc import Callable

import pytest

from vpnrouter.testing.network import FaultyLink

Pair = tuple[socket.socket, socket.socket]


def read(end: socket.socket, count: int) -> bytes:
    """Exactly `count` bytes, or fewer at the end."""
    data = b""
    while len(data) < count:
        piece = end.recv(count - len(data))
        if not piece:
            break
        data += piece
    return data


def test_it_carries_bytes_both_ways(pair: Callable[[], Pair], link: FaultyLink) -> None:
    """A megabyte each way arrives unchanged, and so does the end of each direction."""
    dialer, target = pair()
    data = bytes(range(256)) * 4096
    for sender, receiver in ((dialer, target), (target, dialer)):
        thread = threading.Thread(target=sender.sendall, args=(data,))
        thread.start()
        assert read(receiver, len(data)) == data
        thread.join()
        sender.shutdown(socket.SHUT_WR)
        assert receiver.recv(1) == b""
    assert link.passed == [len(data), len(data)]
    assert link.accepted == 1


def test_a_reset_reaches_the_other_end(pair: Callable[[], Pair], link: FaultyLink) -> None:
    """An end that is reset by its owner resets the other one as well."""
    dialer, target = pair()
    dialer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    dialer.close()
    with pytest.raises(ConnectionResetError):
        target.recv(1)
