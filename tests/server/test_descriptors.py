"""File descriptors: the limit, and what happens where there is none left."""

import contextlib
import os
import resource
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest

from vpnrouter.core.credentials import Credentials
from vpnrouter.core.router import Router
from vpnrouter.core.vpn import MessageVpn
from vpnrouter.server.net.descriptors import SpareDescriptor, raise_limit
from vpnrouter.server.net.listeners import MqttAcceptor, bind
from vpnrouter.server.net.reactor import Reactor
from vpnrouter.trace.recorder import Recorder


@pytest.fixture
def limited() -> Iterator[None]:
    """Puts the limit of open files back."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("limited")
def test_the_limit_is_raised() -> None:
    """The soft limit becomes the hard one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard // 2, hard))
    most = raise_limit()
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == most
    assert most > hard // 2


def test_the_table_of_descriptors_does_not_grow() -> None:
    """The kernel has room for all descriptors before the first connection comes, so that nobody waits for it."""
    program = """
        from pathlib import Path
        from vpnrouter.server.net.descriptors import raise_limit
        most = raise_limit()
        status = Path("/proc/self/status").read_text()
        size = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("FDSize"))
        print(size >= min(most, 200_000))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "True"


@pytest.mark.usefixtures("limited")
def test_no_descriptor_is_left() -> None:
    """Where the system has none left, those who knock are closed and not left waiting; then it goes on."""
    router = Router("here", 1, Recorder())
    router.add(MessageVpn("blue", router.context, Credentials(basic_enabled=False), {}, {}))
    reactor = Reactor(router)
    reactor.set_clocks()
    sock = bind("127.0.0.1", 0)
    reactor.listen(sock, MqttAcceptor(router, "blue"), 10)
    peers = [socket.create_connection(sock.getsockname()) for _ in range(2)]
    taken: list[int] = []
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(peer.fileno() for peer in peers) + 40, hard))
    with contextlib.suppress(OSError):
        while True:
            taken.append(os.dup(0))
    try:
        reactor.round(1.0)
        assert reactor.accept_errors == 1
        peers[0].settimeout(5)
        with contextlib.suppress(ConnectionResetError):
            assert peers[0].recv(1) == b""
        assert len(reactor) == 0
        assert reactor.round() is False
    finally:
        for fd in taken:
            os.close(fd)
    reactor.tick()
    while len(reactor) == 0:
        reactor.round(1.0)
    # Now a stranger is there, who makes room.
    more = socket.create_connection(sock.getsockname())
    assert router.pre_login_limits.out_of_descriptors(shortage=True) is False
    assert len(reactor) == 0
    more.close()
    for peer in peers:
        peer.close()
    reactor.close_all()


def test_a_spare() -> None:
    """The spare releases its descriptor to refuse one connection, and has one again afterwards."""
    sock = bind("127.0.0.1", 0)
    spare = SpareDescriptor()
    peer = socket.create_connection(sock.getsockname())
    spare.refuse(sock)
    with contextlib.suppress(ConnectionResetError):
        assert peer.recv(1) == b""
    spare.refuse(sock)
    spare.close()
    spare.close()
    peer.close()
    sock.close()
