"""Connections of the management API: who waits makes room, and nothing but HTTP/1.1 is spoken."""

import math
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from vpnrouter.server import management
from vpnrouter.server.management import Place, serve_management

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
SLOW = GET.replace(b"GET /", b"GET /slow")
PATIENCE_S = 20


class Application:
    """Answers at once, or for /slow when it is told to; says which HTTP it was asked by."""

    def __init__(self) -> None:
        self.asked = trio.Event()
        self.answering = trio.Event()
        self.kinds: list[tuple[str, str]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """See the ASGI specification."""
        self.kinds.append((scope["type"], scope.get("http_version", "")))
        if scope["path"] == "/slow":
            self.asked.set()
            await self.answering.wait()
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """A bound, listening, non-blocking socket."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        sock.setblocking(False)
        yield sock


@asynccontextmanager
async def serving(
    sock: socket.socket, app: Any, most: int = 100
) -> AsyncIterator[Callable[[], Awaitable[trio.SocketStream]]]:
    """Serves in this trio run; yields a function that opens a connection, closed at the end."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_management, sock, None, most, app)
        made: list[trio.SocketStream] = []

        async def connected() -> trio.SocketStream:
            made.append(await trio.open_tcp_stream("127.0.0.1", sock.getsockname()[1]))
            return made[-1]

        with trio.fail_after(PATIENCE_S):
            yield connected
        for stream in made:
            await stream.aclose()
        nursery.cancel_scope.cancel()


async def rest_of(stream: trio.SocketStream, until: bytes = b"ok") -> bytes:
    """What comes until it ends so, or the connection does."""
    said = b""
    while not said.endswith(until):
        try:
            data = await stream.receive_some()
        except trio.BrokenResourceError:
            break
        if not data:
            break
        said += bytes(data)
    return said


async def answer_to(stream: trio.SocketStream, request: bytes = GET) -> bytes:
    """What is answered to a request."""
    await stream.send_all(request)
    return await rest_of(stream)


async def test_who_waits_makes_room(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has waited longest for a request goes when there is no room; who is being served stays."""
    monkeypatch.setattr(management, "WAITED_S", 0.0)
    app = Application()
    async with serving(listening, app, most=3) as connected:
        busy, silent, half = [await connected() for _ in range(3)]
        await busy.send_all(SLOW)
        await half.send_all(GET[:10])
        await app.asked.wait()
        assert b" 200 " in await answer_to(await connected())
        assert await rest_of(silent) == b"", "it came before the other one"
        assert b" 200 " in await answer_to(await connected())
        assert await rest_of(half) == b""
        app.answering.set()
        assert b" 200 " in await rest_of(busy)


async def test_who_just_came_is_not_put_out(listening: socket.socket) -> None:
    """It may have a request on its way."""
    async with serving(listening, Application(), most=2) as connected:
        first, second = await connected(), await connected()
        assert await rest_of(await connected()) == b""
        for stream in (first, second):
            assert b" 200 " in await answer_to(stream)


@pytest.mark.parametrize(
    "fields",
    [
        b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n",
        (
            b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        ),
    ],
    ids=["h2c", "websocket"],
)
async def test_no_upgrade(listening: socket.socket, fields: bytes) -> None:
    """Whoever asks for another protocol gets its answer in this one, and the connection goes on."""
    app = Application()
    request = GET.replace(b"\r\n\r\n", b"\r\n" + fields + b"\r\n")
    async with serving(listening, app) as connected:
        stream = await connected()
        for _ in range(2):
            assert (await answer_to(stream, request)).startswith(b"HTTP/1.1 200 ")
    assert app.kinds == [("http", "1.1")] * 2


async def test_http_2_by_prior_knowledge(listening: socket.socket, capsys: Any) -> None:
    """It is a request that is none; the router says nothing of its own failing."""
    async with serving(listening, Application()) as connected:
        frames = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
        said = await answer_to(await connected(), frames + b"\0\0\x01\x01\x05\0\0\0\x01\x82")
        assert not said.startswith(b"\0")
        assert b" 200 " in await answer_to(await connected())
    assert capsys.readouterr().err == ""


async def test_who_has_gone_gives_its_place_at_once() -> None:
    """Not after the pause that a silent connection is given; whoever is served keeps it."""
    gone, served = Place(), Place()
    gone.leave()
    served.waiting_since = math.inf
    served.leave()
    assert (gone.waiting_since, served.waiting_since) == (-math.inf, math.inf)


async def test_slow_readers_that_go_while_they_are_answered(
    listening: socket.socket, capfd: pytest.CaptureFixture[str]
) -> None:
    """Clients that read nothing, that say their last, that go in the middle, and a stop: no fault is told."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-length", b"8000000")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for left in range(79, -1, -1):
            body = {"type": "http.response.body", "body": b"x" * 100_000, "more_body": left > 0}
            await send(body)

    async with serving(listening, app) as connect:
        streams = [await connect() for _ in range(30)]
        for stream in streams:
            await stream.send_all(GET)
        for number, stream in enumerate(streams):
            if number % 3 == 0:
                await stream.send_eof()
            elif number % 3 == 1:
                await stream.receive_some(10)
                await stream.aclose()
        await trio.testing.wait_all_tasks_blocked(0.05)
    assert not capfd.readouterr().err
