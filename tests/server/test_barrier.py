"""An unexpected exception ends the one thing that raised it. Exceptions are planted where both builds allow it."""

from __future__ import annotations

import contextlib
import socket
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
import trio

from vpnrouter import limits
from vpnrouter.core.connection import Connection
from vpnrouter.core.fault_barrier import (
    BRIDGE,
    CONNECTION,
    KINDS,
    LISTENER,
    REQUEST,
    TASK,
    TIMER,
    fault_id,
)
from vpnrouter.core.timers import TimerTarget
from vpnrouter.events.log import Event
from vpnrouter.server.net import loop
from vpnrouter.server.net.listeners import bind
from vpnrouter.server.net.loop import restarted
from vpnrouter.server.net.reactor import Acceptor, flush_ready
from vpnrouter.server.net.streams import serve_streams
from vpnrouter.server.run import Node, serve

OPEN = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: ws, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: link, bind: "127.0.0.1:0"}
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    bridges:
      from-far:
        enabled: false
        remote_msg_vpns: [{name: far, location: "127.0.0.1:9"}]
"""


class Planted(RuntimeError):
    """What nobody expects."""


class Bad(Connection):
    """Raises at the first byte, and, where `ends_badly`, the first times that it is told that it is lost."""

    def __init__(self, context: Any, ends_badly: int) -> None:
        super().__init__(context, "198.51.100.7", 1_000)
        self.left = ends_badly
        self.told: list[str] = []

    def consume(self, data: bytes, pos: int) -> int:
        raise Planted("in feed")

    def lost(self, reason: str) -> None:
        self.told.append(reason)
        if len(self.told) <= self.left:
            raise Planted("in lost")


class BadAcceptor(Acceptor):
    """Makes bad connections, or raises itself."""

    def __init__(self, node: Node, ends_badly: int = 0, *, raises: bool = False) -> None:
        self.node = node
        self.ends_badly = ends_badly
        self.raises = raises
        self.made: list[Bad] = []

    def accepted(self, peer: str) -> Connection:
        if self.raises:
            raise Planted("in accept")
        self.made.append(Bad(self.node.router.context, self.ends_badly))
        return self.made[-1]


def faults(node: Node) -> list[Event]:
    """The events of contained faults."""
    events = node.router.context.events
    assert events is not None
    return [event for event in events.newest(1_000) if event.kind.name == "SYSTEM_SYSTEM_FAULT"]


async def works(node: Node, client: Any) -> None:
    """A client that was there before hears itself."""
    await client.publish("still/there", b"x")
    assert await client.payload() == b"x"


def poll(node: Node, sock: socket.socket, acceptor: Acceptor) -> None:
    """Accept from `sock` in the nested epoll of the running router."""
    reactor = node._answering._reactor
    assert reactor is not None
    reactor.listen(sock, acceptor, 100)


@pytest.mark.parametrize("ends_badly", [0, 3, 1_000])
@pytest.mark.parametrize("host", ["epoll", "tasks"])
async def test_a_connection_that_raises(
    running: Any, client_of: Any, host: str, ends_badly: int, until: Any
) -> None:
    """Only the connection that raised is closed, even if its end raises too; one event says what, whose and where."""
    async with running(OPEN) as node, trio.open_nursery() as nursery:
        client = await client_of(node)
        await client.connect("good")
        await client.subscribe("#")
        acceptor = BadAcceptor(node, ends_badly)
        sock = bind("127.0.0.1", 0)
        if host == "epoll":
            poll(node, sock, acceptor)
        else:
            nursery.start_soon(serve_streams, node.router, sock, acceptor, 100, nursery)
        for _ in range(3):
            stream = await trio.open_tcp_stream(*sock.getsockname())
            await stream.send_all(b"boom")
            with trio.fail_after(10):
                assert await stream.receive_some() == b""
            await stream.aclose()
        await until(lambda: all(each.told for each in acceptor.made))
        await works(node, client)
        counts = node.router.context.barrier.counts
        assert set(counts) == set(KINDS)
        most = min(ends_badly, 16)
        assert counts[CONNECTION] == 3 * (1 + most)
        assert [len(each.told) for each in acceptor.made] == [min(most + 1, 16)] * 3
        first = faults(node)[0]
        # Told once, though it came three times.
        assert [event.text for event in faults(node)].count(first.text) == 1
        assert "Planted: in feed at" in first.text
        assert "test_barrier.py:" in first.text
        assert first.name == "198.51.100.7"
        assert first.kind.level_name == "error"
        nursery.cancel_scope.cancel()


class BadHeld(Bad):
    """Raises when it may go on."""

    def release(self) -> None:
        raise Planted("in release")


async def test_a_held_publisher_that_raises(running: Any, client_of: Any) -> None:
    """It is closed, and those that were held with it go on."""
    async with running(OPEN) as node:
        client = await client_of(node)
        await client.connect("good")
        await client.subscribe("#")
        context = node.router.context
        first, bad, last = Bad(context, 0), BadHeld(context, 0), Bad(context, 0)
        for each in (first, bad, last):
            context.backpressure.crowded.append(first.outbox)
            context.backpressure.hold(each, context.now_ns - limits.PUBLISHER_HELD_NS)
        flush_ready(context)
        assert [each.held for each in (first, last)] == [False, False]
        assert [len(each.told) for each in (first, bad, last)] == [0, 1, 0]
        assert "Planted: in release at" in faults(node)[0].text
        await works(node, client)


async def test_an_accept_that_raises(running: Any, client_of: Any) -> None:
    """The new connection is closed, and the next one is accepted; nobody else notices."""
    async with running(OPEN) as node:
        client = await client_of(node)
        await client.connect("good")
        await client.subscribe("#")
        sock = bind("127.0.0.1", 0)
        acceptor = BadAcceptor(node, raises=True)
        poll(node, sock, acceptor)
        for count in range(1, 4):
            stream = await trio.open_tcp_stream(*sock.getsockname())
            with trio.fail_after(10), contextlib.suppress(trio.BrokenResourceError):
                assert await stream.receive_some() == b""
            await stream.aclose()
            assert node.router.context.barrier.counts[LISTENER] == count
        await works(node, client)


class BadTimer(TimerTarget):
    """Raises the first times."""

    def __init__(self, times: int, owning_connection: Connection | None = None) -> None:
        self.left = times
        self.fired = trio.Event()
        self._owning_connection = owning_connection

    def on_timer(self, kind: int, now_ns: int) -> None:
        if self.left:
            self.left -= 1
            raise Planted("in a timer")
        self.fired.set()

    def owning_connection(self) -> Connection | None:
        return self._owning_connection


async def test_a_timer_that_raises(running: Any, client_of: Any) -> None:
    """A timer that raised is tried again a second later, and later timers fire; a connection's timer closes it."""
    async with running(OPEN) as node:
        client = await client_of(node)
        await client.connect("good")
        await client.subscribe("#")
        context = node.router.context
        bad, other = BadTimer(1), BadTimer(0)
        ended = Bad(context, 0)
        for target in (bad, BadTimer(1, ended), other):
            context.timers.arm(context.now_ns + 1, target, 0)
        with trio.fail_after(20):
            await other.fired.wait()
            assert context.barrier.counts[TIMER] == 1
            assert context.barrier.counts[CONNECTION] == 1
            assert ended.told == ["a fault of the router"]
            await bad.fired.wait()
        assert context.barrier.counts[TIMER] == 1
        await works(node, client)


async def test_a_bridge_that_raises(running: Any, client_of: Any, until: Any) -> None:
    """The task of a bridge that raised starts again after growing pauses; router, clients and other bridges go on."""
    async with running(OPEN) as node:
        client = await client_of(node)
        await client.connect("good")
        await client.subscribe("#")
        (runner,) = node.bridges
        times: list[float] = []

        def refuse(*_: object) -> bool:
            times.append(trio.current_time())
            raise Planted("in a bridge")

        work = runner.work
        runner.work = refuse
        runner._draw = lambda: 0.0
        runner.poke()
        await until(lambda: len(times) == 3)
        assert times[1] - times[0] > 0.9
        assert times[2] - times[1] > 1.9
        assert node.router.context.barrier.counts[BRIDGE] == 3
        (told,) = faults(node)
        assert (told.msg_vpn, told.name) == ("blue", "from-far")
        assert "fault F" in runner.record.inbound_failure_reason
        runner.work = work
        await until(lambda: runner.record.inbound_state.value == "disabled")
        await works(node, client)


async def test_a_listener_of_events_that_raises(running: Any, client_of: Any) -> None:
    """The code that raised the event goes on, and the other listeners hear it."""
    async with running(OPEN) as node:
        events = node.router.context.events
        assert events is not None

        def bad(event: Event) -> None:
            raise Planted("in the log")

        events.listeners.insert(0, bad)
        client = await client_of(node)
        assert (await client.connect("good")).reason_code == 0
        await client.subscribe("#")
        await works(node, client)
        assert node.router.context.barrier.counts[TASK] >= 1
        events.listeners.remove(bad)


async def test_a_task_that_raises(running: Any, autojump_clock: trio.testing.MockClock) -> None:
    """A task of the router that raised starts again after longer and longer pauses, and its faults are counted."""
    from vpnrouter.core.router import Router
    from vpnrouter.trace.recorder import Recorder

    barrier = Router("here", 7, Recorder()).context.barrier
    began: list[float] = []

    async def task() -> None:
        began.append(trio.current_time())
        if len(began) < 16:
            raise Planted("in a task")

    await restarted(barrier, "one", task)
    assert barrier.counts[TASK] == 15
    pauses = [round(after - before, 6) for before, after in pairwise(began)]
    assert pauses == sorted(pauses)
    assert pauses[0] < 0.1
    assert pauses[-1] == pytest.approx(10.0)


def test_the_same_place_has_the_same_id() -> None:
    """A fault's id depends on the kind of error and the line, not on its text; a group counts as its first error."""

    def raises(kind: type[Exception], text: str) -> None:
        raise kind(text)

    def raised(kind: type[Exception], text: str) -> Exception:
        with pytest.raises(kind) as found:
            raises(kind, text)
        return found.value

    first, again = raised(Planted, "a"), raised(Planted, "b")
    assert fault_id(first) == fault_id(again) == fault_id(ExceptionGroup("two", [first, again]))
    assert fault_id(raised(KeyError, "a")) != fault_id(first)


async def test_an_api_request_that_raises(running: Any, until: Any) -> None:
    """Its client reads 500 and the fault's id; the next request is answered, and nothing goes to stderr."""
    text = OPEN.replace("listeners:", 'listeners:\n  - {protocol: http, bind: "127.0.0.1:0"}')
    async with running(text) as node:
        port = int(dict(node.addresses)["http"].rpartition(":")[2])
        # Only requests read this: no task of the router raises the same, before or after.
        profiles: dict[str, Any] = node.router.vpns["blue"].acl_profiles
        profiles["planted"] = None
        path = "/SEMP/v2/monitor/msgVpns/blue/aclProfiles"
        answer = await _get(port, path)
        del profiles["planted"]
        assert answer.startswith(b"HTTP/1.1 500")
        events = node.router.context.events
        assert events is not None
        # The answer comes before what raised is told.
        await until(lambda: node.router.context.barrier.counts[REQUEST] == 1)
        (told,) = [
            event for event in events.newest(99) if event.kind.name == "SYSTEM_MANAGEMENT_FAULT"
        ]
        assert told.text.split()[1].rstrip(":").encode() in answer
        assert (await _get(port, path)).startswith(b"HTTP/1.1 200")
        page = await _get(port, "/metrics")
        assert b'vpnrouter_faults_total{router="here",reason="request"} 1' in page


async def _get(port: int, path: str) -> bytes:
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    await stream.send_all(head.encode())
    answer = b""
    with trio.fail_after(20):
        while data := await stream.receive_some():
            answer += data
    await stream.aclose()
    return answer


@pytest.mark.parametrize("hides", [True, False])
async def test_a_trio_that_hides_its_epoll(
    configured: Any,
    interpreter: None,
    client_of: Any,
    monkeypatch: pytest.MonkeyPatch,
    hides: bool,
    until: Any,
) -> None:
    """Where trio does not show what it waits with, that is told once, and everything is served through trio."""
    if hides:
        monkeypatch.setattr(loop, "_trio_epoll", lambda: -1)
    nodes: list[Node] = []
    config = configured(OPEN)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(serve, config, nodes.append, alone=True))
        await until(lambda: bool(nodes))
        (node,) = nodes
        client = await client_of(node)
        await client.connect("good")
        await client.subscribe("#")
        await works(node, client)
        events = node.router.context.events
        assert events is not None
        told = [event for event in events.newest(99) if "does not show" in event.text]
        assert len(told) == int(hides)
        # A look at the timers that raises costs that look, and nobody's connection.
        reactor: Any = node._answering._reactor
        assert reactor.ticks is not hides
        reactor.ended.append(None)
        await until(lambda: node.router.context.barrier.counts[TASK] > 0)
        await works(node, client)
        assert node.router.context.barrier.counts[TASK] == 1
        nursery.cancel_scope.cancel()
