"""Networks that break."""

import socket
import threading
import time
from collections.abc import Callable

import pytest

from vpnrouter.testing.network import FROM_TARGET, TO_TARGET, FaultyLink, FaultyNetwork

Pair = tuple[socket.socket, socket.socket]


QUIET_S = 0.05
"""How long nothing must come where nothing may come."""


def read(end: socket.socket, count: int) -> bytes:
    """Exactly `count` bytes, or fewer at the end."""
    data = b""
    while len(data) < count:
        piece = end.recv(count - len(data))
        if not piece:
            break
        data += piece
    return data


def assert_quiet(end: socket.socket) -> None:
    """Nothing comes, and the connection stays."""
    patience_s = end.gettimeout()
    end.settimeout(QUIET_S)
    with pytest.raises(TimeoutError):
        end.recv(1)
    end.settimeout(patience_s)


def test_cut_resets_both_ends(pair: Callable[[], Pair], link: FaultyLink) -> None:
    """After `cut` both ends get a reset, and a new connection works."""
    dialer, target = pair()
    link.cut()
    for end in (dialer, target):
        with pytest.raises(ConnectionResetError):
            end.recv(1)
    dialer, target = pair()
    dialer.sendall(b"x")
    assert target.recv(1) == b"x"


def test_close_ends_both_ends(pair: Callable[[], Pair], link: FaultyLink) -> None:
    """After `close` both ends read the end, not a reset."""
    ends = pair()
    link.close()
    assert [end.recv(1) for end in ends] == [b"", b""]


def test_freeze_swallows(
    pair: Callable[[], Pair], link: FaultyLink, dial: Callable[[FaultyLink], socket.socket]
) -> None:
    """Frozen connections stay open and silent, also those made later, and after `heal`."""
    dialer, target = pair()
    link.freeze()
    late = dial(link)
    for end in (dialer, target, late):
        end.sendall(b"lost")
    for end in (dialer, target, late):
        assert_quiet(end)
    link.heal()
    for end in (dialer, target, late):
        assert_quiet(end)
    fresh, far = pair()
    fresh.sendall(b"x")
    assert far.recv(1) == b"x"


@pytest.mark.parametrize("direction", [TO_TARGET, FROM_TARGET])
def test_stall_holds_one_direction(
    pair: Callable[[], Pair], link: FaultyLink, direction: int
) -> None:
    """The stalled direction waits and loses nothing; the other one works."""
    ends = pair()
    sender, receiver = ends[direction], ends[1 - direction]
    link.stall(direction)
    sender.sendall(b"waits")
    assert_quiet(receiver)
    receiver.sendall(b"works")
    assert read(sender, 5) == b"works"
    link.heal()
    assert read(receiver, 5) == b"waits"


@pytest.mark.parametrize("direction", [TO_TARGET, FROM_TARGET])
def test_cut_after_some_bytes(pair: Callable[[], Pair], link: FaultyLink, direction: int) -> None:
    """Exactly so many bytes of the direction arrive, then the reset."""
    ends = pair()
    sender, receiver = ends[direction], ends[1 - direction]
    link.cut_after(7, direction)
    sender.sendall(b"0123456789")
    assert read(receiver, 7) == b"0123456"
    with pytest.raises(ConnectionResetError):
        receiver.recv(1)


def test_orphan_tells_the_dialer_only(pair: Callable[[], Pair], link: FaultyLink) -> None:
    """The dialler is reset, its target hears nothing, and a new connection works beside the old one."""
    dialer, target = pair()
    link.orphan()
    with pytest.raises(ConnectionResetError):
        dialer.recv(1)
    assert_quiet(target)
    again, far = pair()
    again.sendall(b"x")
    assert far.recv(1) == b"x"
    assert_quiet(target)


def test_unreachable_refuses(
    pair: Callable[[], Pair], link: FaultyLink, dial: Callable[[FaultyLink], socket.socket]
) -> None:
    """Nobody listens until `heal`, and the port is kept meanwhile."""
    dialer, _ = pair()
    link.unreachable()
    with pytest.raises(ConnectionResetError):
        dialer.recv(1)
    with pytest.raises(ConnectionRefusedError):
        dial(link)
    link.heal()
    again, far = pair()
    again.sendall(b"x")
    assert far.recv(1) == b"x"


def test_delay_and_throttle_take_time(pair: Callable[[], Pair], link: FaultyLink) -> None:
    """Bytes come later by the delay, and no faster than the rate."""
    dialer, target = pair()
    link.delay(0.1)
    began = time.monotonic()
    dialer.sendall(b"x")
    assert target.recv(1) == b"x"
    assert time.monotonic() - began >= 0.1
    link.heal()
    link.throttle(20_000)
    began = time.monotonic()
    target.sendall(bytes(4_000))
    assert len(read(dialer, 4_000)) == 4_000
    assert time.monotonic() - began >= 0.15


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
