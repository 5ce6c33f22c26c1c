"""Reaching a remote router: names, addresses, sockets, and what is told when it does not work."""

import socket
from typing import Any

import pytest
import trio

from vpnrouter.errors import OperationError
from vpnrouter.server.net import dial
from vpnrouter.server.net.dial import Connector


class Served:
    """Keeps the sockets that are to be served."""

    def __init__(self) -> None:
        self.added: list[Any] = []

    def add(self, sock: socket.socket, connection: object) -> None:
        self.added.append((sock, connection))

    def set_clocks(self) -> None:
        self.added.append("clocks")


def connector(served: Served) -> Connector:
    """A connector without a router; nothing here is served."""
    nobody: Any = None
    host: Any = served
    return Connector(nobody, host, nobody)


async def test_a_plain_connection() -> None:
    """An address is connected to without a look-up, told in between, and handed to the host."""
    served = Served()
    made = connector(served)
    told: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        sock = await made.open("127.0.0.1", port, None, lambda: told.append("resolved"))
        assert isinstance(sock, socket.socket)
        assert told == ["resolved"]
        assert sock.getpeername() == ("127.0.0.1", port)
        connection: Any = object()
        made.set_clocks()
        made.serve(sock, connection)
        assert served.added == ["clocks", (sock, connection)]
        await made.drop(sock)
        assert sock.fileno() == -1


async def test_nobody_there() -> None:
    """A port that nobody listens at is named with its address, IPv6 in brackets."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(OperationError) as told:
            await connector(Served()).open("127.0.0.1", port, None, lambda: None)
        assert str(told.value) == f"cannot connect to 127.0.0.1:{port}: Connection refused"


async def test_a_name_that_hangs(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """A name server that never answers is given up, and the name told."""

    async def never(*args: Any, **kwargs: Any) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(trio.to_thread, "run_sync", never)
    with pytest.raises(OperationError) as told:
        await connector(Served()).open("no-such-host.invalid", 1, None, lambda: None)
    assert str(told.value) == "cannot look up no-such-host.invalid: no answer within 10 s"


async def test_an_address_that_never_answers(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """A connection that does not come about in time is given up, its socket closed."""
    made: list[Any] = []

    class Silent:
        closed = False

        async def connect(self, address: object) -> None:
            await trio.sleep_forever()

        def close(self) -> None:
            self.closed = True

    def silent(*args: object) -> Silent:
        made.append(Silent())
        return made[-1]

    monkeypatch.setattr(dial.trio.socket, "socket", silent)
    with pytest.raises(OperationError) as told:
        await connector(Served()).open("192.0.2.1", 5, None, lambda: None)
    assert str(told.value) == "cannot connect to 192.0.2.1:5: no answer within 10 s"
    assert [sock.closed for sock in made] == [True]
