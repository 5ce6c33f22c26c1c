"""Binding addresses: what is listened on, and clear words when it cannot be."""

import contextlib
import os
import resource
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
import trio

from vpnrouter.bridges.look import oldest_age_ms
from vpnrouter.config.settings_models import Listener
from vpnrouter.core.credentials import Credentials
from vpnrouter.core.router import Router
from vpnrouter.core.vpn import MessageVpn
from vpnrouter.errors import OperationError, SpoolError
from vpnrouter.server.net import streams
from vpnrouter.server.net.descriptors import raise_limit
from vpnrouter.server.net.listeners import (
    MqttAcceptor,
    bind,
    bind_all,
    keyed,
)
from vpnrouter.server.net.reactor import Reactor
from vpnrouter.server.net.streams import linger
from vpnrouter.trace.recorder import Recorder

OPEN = "msg_vpns: {blue: {authentication: {basic: {enabled: false}}}}\n"


def test_both_families_on_one_port() -> None:
    """An IPv6 listener takes IPv6 alone, so that IPv4 may have the same port."""
    for _ in range(20):
        with bind("0.0.0.0", 0) as four:
            port = four.getsockname()[1]
            # Something else may have the port of IPv6.
            with contextlib.suppress(OperationError), bind("::", port) as six:
                assert six.getsockname()[1] == port
                return
    pytest.fail("no port was free in both families, or they exclude one another")


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("192.0.2.1", "192.0.2.1:5"),
        ("2001:db8::1", r"\[2001:db8::1\]:5"),
        ("no-such-host.invalid", "no-such-host.invalid:5"),
        ("a" * 64, "a" * 64 + ":5"),
        ("a..b", "a..b:5"),
    ],
)
def test_addresses_that_cannot_be_bound(host: str, shown: str) -> None:
    """Foreign addresses and names of nobody are one OperationError that shows the address."""
    with pytest.raises(OperationError, match=rf"^cannot listen on {shown}: \S"):
        bind(host, 5)


def test_all_or_none(configured: Any) -> None:
    """When one address is taken, those bound before are free again."""
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        free = other.getsockname()[1]
        other.close()
        config = configured(
            f"""
listeners:
  - {{protocol: mqtt, bind: "127.0.0.1:{free}"}}
  - {{protocol: link, bind: "127.0.0.1:{taken.getsockname()[1]}"}}
"""
            + OPEN
        )
        with pytest.raises(OperationError):
            bind_all(config.listeners)
        bind("127.0.0.1", free).close()


# -- answer ----------------------------------------------------------------------------------------


def listener(protocol: str, bind: str, **more: object) -> Listener:
    """A listener as written."""
    return Listener.model_validate({"protocol": protocol, "bind": bind, **more})


def test_alike_listeners_are_counted() -> None:
    """Listeners with one protocol and address are told apart by their place."""
    first = listener("mqtt", "127.0.0.1:0")
    other = listener("link", "127.0.0.1:0")
    second = listener("mqtt", "127.0.0.1:0", msg_vpn="blue")
    found = keyed([first, other, second])
    assert [str(key) for key in found] == [
        "[mqtt 127.0.0.1:0]",
        "[link 127.0.0.1:0]",
        "[mqtt 127.0.0.1:0 #2]",
    ]
    assert list(found.values()) == [first, other, second]


# -- handshake -------------------------------------------------------------------------------------


async def pair() -> tuple[trio.SocketStream, trio.SocketStream]:
    """Two connected streams."""
    with trio.socket.socket() as listening:
        await listening.bind(("127.0.0.1", 0))
        listening.listen(1)
        one = await trio.open_tcp_stream(*listening.getsockname())
        other, _ = await listening.accept()
    return one, trio.SocketStream(other)


@pytest.mark.parametrize("talks", [True, False])
async def test_lingering_has_an_end(monkeypatch: pytest.MonkeyPatch, talks: bool) -> None:
    """A peer that goes on talking, or says nothing, is left after LINGER_BYTES or LINGER_S."""
    monkeypatch.setattr(streams, "LINGER_S", 30.0 if talks else 0.05)
    ours, theirs = await pair()

    async def talk() -> None:
        while talks:
            await theirs.send_all(bytes(streams.LINGER_BYTES))

    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(talk)
            await linger(ours)
            nursery.cancel_scope.cancel()
    # The peer saw the end at once, before we stopped listening.
    assert await theirs.receive_some() == b""
    for stream in (ours, theirs):
        await stream.aclose()


# -- descriptors -----------------------------------------------------------------------------------


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


# -- acceptor --------------------------------------------------------------------------------------


# -- backlog ---------------------------------------------------------------------------------------


TWO = "msg_vpns: {blue: {queues: {q: {subscriptions: [a]}, p: {subscriptions: [a, b]}}}}"


def test_ages(stored: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the oldest message of all; a store that cannot be read has none to tell."""
    one = stored(TWO)
    q, p = (one.router.vpns["blue"].endpoints[0, name] for name in "qp")
    second = 1_000_000_000
    one.router.tick(second, 10 * second)
    assert oldest_age_ms([q, p]) == -1
    one.publish("b")
    one.router.tick(3 * second, 12 * second)
    one.publish("a")
    one.router.tick(4 * second, 13 * second)
    assert [oldest_age_ms([each]) for each in (q, p)] == [1_000, 3_000]
    assert oldest_age_ms([q, p]) == 3_000

    def broken(*_: Any) -> Any:
        raise SpoolError("no", "io")

    monkeypatch.setattr("vpnrouter.core.guaranteed.endpoint.Endpoint.browse", broken)
    assert oldest_age_ms([q, p]) == -1
