"""Connections of the management API: who waits makes room, faults stay where they are."""

import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from starlette.requests import ClientDisconnect

from vpnrouter import limits
from vpnrouter.core.fault_barrier import FaultBarrier
from vpnrouter.core.router import Router
from vpnrouter.management.places import Places, Turns
from vpnrouter.server.net import http
from vpnrouter.server.net.http import serve_http
from vpnrouter.trace.recorder import Recorder

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
SLOW = GET.replace(b"GET /", b"GET /slow")
PATIENCE_S = 20


class Application:
    """Answers at once, or for /slow when it is told to."""

    def __init__(self) -> None:
        self.asked = trio.Event()
        self.answering = trio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """See the ASGI specification."""
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
    sock: socket.socket,
    app: Any,
    most: int = 100,
    barrier: FaultBarrier | None = None,
) -> AsyncIterator[Callable[[], Awaitable[trio.SocketStream]]]:
    """Serves in this trio run; yields a function that opens a connection, closed at the end."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_http, sock, None, most, app, barrier or a_barrier())
        made: list[trio.SocketStream] = []

        async def connected() -> trio.SocketStream:
            made.append(await trio.open_tcp_stream("127.0.0.1", sock.getsockname()[1]))
            return made[-1]

        with trio.fail_after(PATIENCE_S):
            yield connected
        for stream in made:
            await stream.aclose()
        nursery.cancel_scope.cancel()


async def rest_of(stream: trio.abc.Stream, until: bytes = b"ok") -> bytes:
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


async def answer_to(stream: trio.abc.Stream, request: bytes = GET) -> bytes:
    """What is answered to a request."""
    await stream.send_all(request)
    return await rest_of(stream)


async def test_who_waits_makes_room(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without room for one more, whoever has waited longest for a request goes; who is being served stays."""
    monkeypatch.setattr(limits, "MANAGEMENT_STRANGERS", 2)
    app = Application()
    async with serving(listening, app) as connected:
        busy = await connected()
        await busy.send_all(SLOW)
        await app.asked.wait()
        silent, half = await connected(), await connected()
        await half.send_all(GET[:10])
        assert b" 200 " in await answer_to(await connected())
        assert await rest_of(silent) == b"", "it came before the other one"
        assert b" 200 " in await answer_to(await connected())
        assert await rest_of(half) == b""
        app.answering.set()
        assert b" 200 " in await rest_of(busy)


POST = b"POST /%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nab"

UNFINISHED = {
    "silence": b"",
    "a method": b"GET",
    "half a line": b"GET /metrics HTTP",
    "half a header": b"GET /metrics HTTP/1.1\r\nHost:",
    "an idle connection": GET,
    "a body that does not come": POST % b"echo",
    "a body that is announced": POST[:-2].replace(b"10", b"10\r\nExpect: 100-continue") % b"echo",
    "an answer that is not read": GET.replace(b"/", b"/large", 1),
    "more requests than are read": GET.replace(b"/", b"/large", 1) * 500,
    "a body for a probe": POST % b"health/live",
    "a probe that is not read": GET.replace(b"/", b"/metrics?large", 1),
}


BULK = bytes(400_000)
"""More than the buffers of two sockets take where the client's is small."""


async def all_kinds(scope: Any, receive: Any, send: Any) -> None:
    """An application that reads bodies, gives large answers, or says ok."""
    if scope["method"] == "POST":
        await echo(scope, receive, send)
    elif scope["path"] == "/large" or scope["query_string"] == b"large":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": BULK})
    else:
        await Application()(scope, receive, send)


@pytest.mark.parametrize("begun", UNFINISHED.values(), ids=UNFINISHED)
async def test_what_is_never_finished_keeps_nobody_out(
    listening: socket.socket, begun: bytes
) -> None:
    """Whoever begins more of it than there are places, one address or all of them, keeps no request from an answer."""
    most = limits.MANAGEMENT_CONNECTIONS + limits.MANAGEMENT_STRANGERS + 50
    port = listening.getsockname()[1]
    with contextlib.ExitStack() as held:
        async with serving(listening, all_kinds) as connected:
            for number in range(most):
                source = f"127.0.{number % 50}.9" if number % 2 else "127.0.0.9"
                sock = held.enter_context(trio.socket.socket())
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
                await sock.bind((source, 0))
                await sock.connect(("127.0.0.1", port))
                with contextlib.suppress(OSError):
                    await sock.send(begun)
            for path in (b"/health/live", b"/metrics", b"/"):
                stream = await connected()
                assert b" 200 " in await answer_to(stream, GET.replace(b"/", path, 1))
            stream = await connected()
            await stream.send_all(POST % b"echo" + b"12345678")
            assert b" 200 " in await rest_of(stream, b"0\r\n\r\n")


async def test_probes_have_places_of_their_own(listening: socket.socket) -> None:
    """While the router works at all the requests that it may, others get 503, and health and metrics are answered."""
    app = Application()
    async with serving(listening, app, most=2) as connected:
        slow = [await connected() for _ in range(2)]
        for stream in slow:
            await stream.send_all(SLOW)
        await trio.testing.wait_all_tasks_blocked(0.01)
        said = await answer_to(await connected())
        assert said.startswith(b"HTTP/1.1 503 ")
        for path in (b"/health/live", b"/metrics"):
            assert b" 200 " in await answer_to(await connected(), GET.replace(b"/", path, 1))
        app.answering.set()
        for stream in slow:
            assert b" 200 " in await rest_of(stream)
        assert b" 200 " in await answer_to(await connected())


async def test_addresses_have_shares(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address that takes all the places it can get closes its own connections, and no other's."""
    monkeypatch.setattr(limits, "MANAGEMENT_STRANGERS", 4)
    monkeypatch.setattr(limits, "MANAGEMENT_STRANGERS_OF_ADDRESS", 3)
    port = listening.getsockname()[1]
    with contextlib.ExitStack() as held:
        async with serving(listening, Application()) as connected:
            quiet = await connected()
            for _ in range(20):
                sock = held.enter_context(trio.socket.socket())
                await sock.bind(("127.0.0.9", 0))
                await sock.connect(("127.0.0.1", port))
            assert b" 200 " in await answer_to(quiet)


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


@pytest.mark.parametrize(
    "data",
    [b"\x10\x0c\x00\x04MQTT\x05\x02\x00\x3c\x00\x00", b"\0" * 20_000, b"GET / HTTP/9\r\n\r\n"],
)
async def test_garbage(listening: socket.socket, data: bytes) -> None:
    """What is no HTTP ends its own connection and nothing else."""
    async with serving(listening, Application()) as connected:
        async with await connected() as stream:
            with contextlib.suppress(trio.BrokenResourceError):
                assert b" 200 " not in await answer_to(stream, data)
        async with await connected() as stream:
            assert b" 200 " in await answer_to(stream)


async def test_an_idle_connection_is_closed(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever says nothing, or half a request, does not keep its place."""
    monkeypatch.setattr(http, "IDLE_S", 0.05)
    async with serving(listening, Application()) as connected:
        for begun in (b"", b"GET /health"):
            async with await connected() as stream:
                await stream.send_all(begun)
                assert b" 200 " not in await rest_of(stream)


async def large(scope: Any, receive: Any, send: Any) -> None:
    """An application whose answer no socket buffer holds."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x" * 100_000_000})


async def test_a_peer_that_does_not_read_does_not_keep_the_router_from_stopping(
    listening: socket.socket,
) -> None:
    """Its connection is closed under the write that waits for it, long before the write gives up."""
    async with serving(listening, large) as connected:
        stream = await connected()
        await stream.send_all(GET)
        await stream.receive_some(1)
        await trio.testing.wait_all_tasks_blocked(0.05)
        stopping_at = trio.current_time()
    assert trio.current_time() - stopping_at < http.WRITE_S / 2
    await stream.aclose()


async def test_a_peer_that_does_not_read_loses_its_connection(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some time of taking nothing its answer is given up."""
    monkeypatch.setattr(http, "WRITE_S", 0.1)
    async with serving(listening, large, most=1) as connected:
        stream = await connected()
        await stream.send_all(GET)
        await stream.receive_some(1)
        await trio.testing.wait_all_tasks_blocked(2 * http.WRITE_S)
        asked_at = trio.current_time()
        assert len(await rest_of(stream)) < 100_000_000
        assert trio.current_time() - asked_at < http.IDLE_S / 2, "closed, not just idle"
        await stream.aclose()


def a_barrier() -> FaultBarrier:
    """The barrier of a router."""
    return Router("here", 1, Recorder()).context.barrier


@pytest.mark.parametrize("begun", [False, True])
async def test_a_fault_in_a_request_does_not_end_the_router(
    listening: socket.socket, begun: bool
) -> None:
    """It is counted, its connection ends, with status 500 where nothing was answered; the next one is served."""
    plain, barrier = Application(), a_barrier()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/slow":
            if begun:
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": "http.response.body", "body": b"x", "more_body": True})
            raise LookupError("inside")
        await plain(scope, receive, send)

    async with serving(listening, app, barrier=barrier) as connected:
        said = await answer_to(await connected(), SLOW)
        assert said.startswith(b"HTTP/1.1 200 " if begun else b"HTTP/1.1 500 ")
        assert b" 200 " in await answer_to(await connected())
    assert barrier.counts["request"] == 1


INSIDE = {
    "the address": (http, "origin_of"),
    "the connection": (http.HttpConnection, "__init__"),
    "a place that is taken": (Places, "take"),
    "who waits": (Places, "waits"),
    "who is served": (Places, "works"),
    "a place that is left": (Places, "leave"),
    "a turn that is left": (Turns, "leave"),
    "what all requests have": (http.HttpConnection, "_scope"),
}


@pytest.mark.parametrize("where", INSIDE)
async def test_a_fault_in_a_connection_does_not_end_the_router(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """It is counted, and that connection alone ends, wherever it raises; the next one is served."""
    barrier = a_barrier()
    inner = getattr(*INSIDE[where])
    asked = 0

    def raises_once(*given: Any, **named: Any) -> Any:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise LookupError("inside")
        return inner(*given, **named)

    async with serving(listening, Application(), barrier=barrier) as connected:
        with monkeypatch.context() as patched:
            patched.setattr(*INSIDE[where], raises_once)
            stream = await connected()
            with contextlib.suppress(trio.BrokenResourceError):
                await answer_to(stream)
            await stream.aclose()
            with trio.fail_after(PATIENCE_S):
                while not barrier.counts["request"]:  # noqa: ASYNC110 - a counter tells nobody
                    await trio.sleep(0.001)
        assert b" 200 " in await answer_to(await connected())
    assert asked > 0
    assert barrier.counts["request"] == 1


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """An application that answers with the body it was sent, and ok."""
    body = b""
    while (message := await receive())["type"] == "http.request":
        body += message["body"]
        if not message["more_body"]:
            break
    else:
        raise ClientDisconnect
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    await send({"type": "http.response.body", "body": b"ok"})


PUT = b"PUT / HTTP/1.1\r\nHost: localhost\r\n"


async def test_bodies(listening: socket.socket) -> None:
    """Of a length, in chunks, none, and two requests at once: all on one connection, answered in order."""
    chunked = PUT + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    length = PUT + b"Content-Length: 5\r\n\r\nfghij"
    async with serving(listening, echo) as connected:
        stream = await connected()
        await stream.send_all(chunked[:-8])
        await trio.testing.wait_all_tasks_blocked(0.01)
        await stream.send_all(chunked[-8:] + length + GET)
        said = await rest_of(stream, b"2\r\nok\r\n0\r\n\r\n")
        while said.count(b"HTTP/1.1 200 ") < 3:
            said += await rest_of(stream, b"2\r\nok\r\n0\r\n\r\n")
        assert said.index(b"abcde") < said.index(b"fghij")


async def test_a_body_that_is_to_be_asked_for(listening: socket.socket) -> None:
    """A client that waits for it is told to go on (RFC 9110 10.1.1)."""
    async with serving(listening, echo) as connected:
        stream = await connected()
        await stream.send_all(PUT + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        assert (await rest_of(stream, b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        await stream.send_all(b"abc")
        assert b"abc" in await rest_of(stream, b"0\r\n\r\n")


@pytest.mark.parametrize("rest", [b"", b"no chunk\r\n"])
async def test_a_body_that_breaks_off(listening: socket.socket, rest: bytes) -> None:
    """It is refused where there is somebody to hear it, and no fault of the router."""
    barrier = a_barrier()
    async with serving(listening, echo, barrier=barrier) as connected:
        stream = await connected()
        await stream.send_all(PUT + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n" + rest)
        if not rest:
            await stream.send_eof()
        assert b" 400 " in await rest_of(stream)
    assert barrier.counts["request"] == 0


async def test_head(listening: socket.socket) -> None:
    """The answer says what a GET would be answered with, has no body, and names no server."""
    async with serving(listening, Application()) as connected:
        stream = await connected()
        for _ in range(2):
            said = await rest_of_head(stream, GET.replace(b"GET", b"HEAD"))
            assert said.startswith(b"HTTP/1.1 200 ")
            assert b"\r\ncontent-length: 2\r\n" in said.lower()
            assert b"\r\nserver:" not in said.lower()
        assert (await answer_to(stream)).startswith(b"HTTP/1.1 200 ")


async def rest_of_head(stream: trio.SocketStream, request: bytes) -> bytes:
    """What is answered to a request whose answer has no body."""
    await stream.send_all(request)
    return await rest_of(stream, b"\r\n\r\n")


async def test_who_asks(listening: socket.socket) -> None:
    """The application is told the address of the connection, its own, and the path as it was sent."""
    found: list[Any] = []
    plain = Application()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        found.append(scope)
        await plain(scope, receive, send)

    async with serving(listening, app) as connected:
        stream = await connected()
        await answer_to(stream, GET.replace(b"GET /", b"GET /a%2Fb%20c?x=%20"))
        (scope,) = found
        assert tuple(scope["client"]) == stream.socket.getsockname()
        assert tuple(scope["server"]) == listening.getsockname()
    assert (scope["raw_path"], scope["query_string"]) == (b"/a%2Fb%20c", b"x=%20")
    assert (scope["path"], scope["scheme"], scope["method"]) == ("/a/b c", "http", "GET")
