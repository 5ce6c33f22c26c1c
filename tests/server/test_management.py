"""The management API on real sockets, and the router behind it."""

import contextlib
import importlib.util
import json
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx
import pytest
import trio
import trio.testing
import trustme

from vpnrouter import limits
from vpnrouter.config.router import Management
from vpnrouter.core.credentials import Credentials
from vpnrouter.core.router import Router
from vpnrouter.core.vpn import MessageVpn, VpnLimits
from vpnrouter.management.sources import Sources
from vpnrouter.server import management
from vpnrouter.server.management import (
    RouterMonitor,
    answer_management,
    keep_rates,
    serve_management,
)
from vpnrouter.trace.recorder import Recorder

PLACE = Path(__file__).parents[1] / "management" / "standing.py"
GET = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n"
PATIENCE_S = 20


@pytest.fixture(scope="session")
def standing() -> ModuleType:
    """The module standing.py."""
    spec = importlib.util.spec_from_file_location("management_standing", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    """A bound, listening, non-blocking socket."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        sock.setblocking(False)
        yield sock


@contextlib.asynccontextmanager
async def serving(sock: socket.socket, app: Any, tls: Any = None, most: int = 100) -> Any:
    """Serves in this trio run; yields a function that opens a connection."""

    async def connected() -> trio.SocketStream:
        return await trio.open_tcp_stream("127.0.0.1", sock_port)

    sock_port = sock.getsockname()[1]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_management, sock, tls, most, app)
        with trio.fail_after(PATIENCE_S):
            yield connected
        nursery.cancel_scope.cancel()


async def answer_to(stream: trio.abc.Stream, request: bytes = GET) -> bytes:
    """What is answered until the body of /health/live is there or the connection ends."""
    await stream.send_all(request)
    return await rest_of(stream, b'{"status":"live"}')


async def rest_of(stream: trio.abc.Stream, until: bytes = b"\0never\0") -> bytes:
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


async def test_plain(standing: ModuleType, listening: socket.socket) -> None:
    """Several requests on one connection are answered; the server does not name itself."""
    app = standing.application(standing.three_bridges())
    async with serving(listening, app) as connected, await connected() as stream:
        for _ in range(3):
            said = await answer_to(stream)
            assert said.startswith(b"HTTP/1.1 200 ")
            assert b"\r\nserver:" not in said.lower()


async def test_the_address_that_access_is_decided_by(
    standing: ModuleType, listening: socket.socket
) -> None:
    """It is that of the connection: one from this machine is served without a login."""
    app = standing.application(standing.three_bridges())
    async with serving(listening, app) as connected, await connected() as stream:
        request = GET.replace(b"/health/live", b"/vpnrouter/v1/bridges")
        await stream.send_all(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        said = await rest_of(stream)
    body = json.loads(said.partition(b"\r\n\r\n")[2])
    assert body["meta"]["count"] == 3


async def test_tls(standing: ModuleType, listening: socket.socket) -> None:
    """With a context the same is served over TLS; a context put in its place serves new connections."""
    authority = trustme.CA()
    old, new = authority.issue_cert("localhost"), authority.issue_cert("localhost")
    tls = SimpleNamespace(context=server_context(old))
    app = standing.application(standing.three_bridges())
    async with serving(listening, app, tls) as connected:
        for certificate in (old, new):
            tls.context = server_context(certificate)
            client = ssl.create_default_context()
            authority.configure_trust(client)
            stream = trio.SSLStream(
                await connected(), client, server_hostname="localhost", https_compatible=True
            )
            assert (await answer_to(stream)).startswith(b"HTTP/1.1 200 ")
            shown = ssl.DER_cert_to_PEM_cert(stream.getpeercert(binary_form=True))
            assert shown.encode().split() == certificate.cert_chain_pems[0].bytes().split()
            await stream.aclose()
        # Somebody who does not speak TLS is closed, and the next is served.
        async with await connected() as plain:
            assert b"200 " not in await answer_to(plain)


def server_context(certificate: trustme.LeafCert) -> ssl.SSLContext:
    """The context of a listener that shows `certificate`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


@pytest.mark.parametrize(
    "data",
    [b"\x10\x0c\x00\x04MQTT\x05\x02\x00\x3c\x00\x00", b"\0" * 20_000, b"GET / HTTP/9\r\n\r\n"],
)
async def test_garbage(standing: ModuleType, listening: socket.socket, data: bytes) -> None:
    """What is no HTTP ends its own connection and nothing else."""
    async with serving(listening, standing.application(standing.three_bridges())) as connected:
        async with await connected() as stream:
            with contextlib.suppress(trio.BrokenResourceError):
                assert b" 200 " not in await answer_to(stream, data)
        async with await connected() as stream:
            assert b" 200 " in await answer_to(stream)


@pytest.mark.parametrize("most", [3, limits.MANAGEMENT_CONNECTIONS + 50])
async def test_too_many_connections(
    standing: ModuleType,
    listening: socket.socket,
    most: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One beyond the bound of listener or module is closed at once; when another ends there is room again."""
    monkeypatch.setattr(management, "WAITED_S", 60.0)
    bound = min(most, limits.MANAGEMENT_CONNECTIONS)
    app = standing.application(standing.three_bridges())
    async with serving(listening, app, most=most) as connected:
        held = [await connected() for _ in range(bound)]
        for stream in (held[0], held[-1]):
            assert b" 200 " in await answer_to(stream)
        async with await connected() as beyond:
            with contextlib.suppress(trio.BrokenResourceError):
                assert await answer_to(beyond) == b""
        await held.pop().aclose()
        while True:
            async with await connected() as again:
                with contextlib.suppress(trio.BrokenResourceError):
                    if b" 200 " in await answer_to(again):
                        break
            await trio.sleep(0.01)
        for stream in held:
            await stream.aclose()


async def test_an_idle_connection_is_closed(
    standing: ModuleType, listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever says nothing, or half a request, does not keep its place."""
    monkeypatch.setattr(management, "IDLE_S", 0.05)
    async with serving(listening, standing.application(standing.three_bridges())) as connected:
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
    assert trio.current_time() - stopping_at < management.WRITE_S / 2
    await stream.aclose()


async def test_a_peer_that_does_not_read_loses_its_connection(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some time of taking nothing its answer is given up."""
    monkeypatch.setattr(management, "WRITE_S", 0.1)
    async with serving(listening, large, most=1) as connected:
        stream = await connected()
        await stream.send_all(GET)
        await stream.receive_some(1)
        await trio.testing.wait_all_tasks_blocked(2 * management.WRITE_S)
        asked_at = trio.current_time()
        assert len(await rest_of(stream)) < 100_000_000
        assert trio.current_time() - asked_at < management.IDLE_S / 2, "closed, not just idle"
        await stream.aclose()


async def test_a_fault_in_a_connection_does_not_end_the_router(
    standing: ModuleType,
    listening: socket.socket,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is told in one line, and the next connection is served."""
    faulty = [True]
    plain = management._Http.converse

    async def converse(self: Any, stream: trio.abc.Stream, place: Any) -> None:
        if faulty.pop() if faulty else False:
            raise LookupError("inside")
        await plain(self, stream, place)

    monkeypatch.setattr(management._Http, "converse", converse)
    async with serving(listening, standing.application(standing.three_bridges())) as connected:
        async with await connected() as stream:
            assert await rest_of(stream) == b""
        async with await connected() as stream:
            assert b" 200 " in await answer_to(stream)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("vpnrouter: management: LookupError: inside at ")


class Source:
    """A bridge that can be asked how it stands."""

    def __init__(self, standing: ModuleType, name: str) -> None:
        self.standing = standing
        self.name = name
        self.sampled: list[int] = []

    def status(self, now_ns: int) -> Any:
        return self.standing.bridge_status("blue", self.name, uptime=now_ns)

    def sample(self, now_ns: int) -> None:
        self.sampled.append(now_ns)


def router_of(*names: str) -> Router:
    """A router with message VPNs of these names."""
    router = Router("here", 1, Recorder())
    for name in names:
        bounds = VpnLimits(max_connection_count=5)
        router.add(MessageVpn(name, router.plane, Credentials(False), {}, {}, bounds))
    return router


def test_the_router_as_it_is_seen(standing: ModuleType) -> None:
    """Message VPNs and bridges by name, as they stand when asked."""
    router = router_of("blue", "red")
    bridges: dict[tuple[str, str], Any] = {("blue", "b"): Source(standing, "b")}
    monitor = RouterMonitor(router, bridges, lambda: 7)
    assert monitor.router_name() == "here"
    assert list(monitor.msg_vpn_names()) == ["blue", "red"]
    blue = monitor.msg_vpn("blue")
    assert blue is not None
    assert (blue.bridge_count, blue.max_connection_count, blue.state) == (1, 5, "up")
    assert (blue.rx_msg_count, blue.discarded, blue.msg_vpn_connections) == (0, {}, 0)
    router.vpns["blue"].discards.add("loop-detected", 3)
    router.vpns["blue"].discards.add("client-not-connected", 2)
    router.vpns["blue"].enabled = False
    blue = monitor.msg_vpn("blue")
    assert blue is not None
    assert (blue.discarded, blue.discarded_msg_count, blue.state) == (
        {"loop-detected": 3, "client-not-connected": 2},
        5,
        "down",
    )
    assert (blue.rx_discarded, blue.rx_discarded_msg_count) == ({"loop-detected": 3}, 3)
    assert (blue.tx_discarded, blue.tx_discarded_msg_count) == ({"client-not-connected": 2}, 2)
    assert monitor.msg_vpn("nope") is None
    assert list(monitor.bridge_names("blue")) == ["b"]
    assert list(monitor.bridge_names("red")) == []
    status = monitor.bridge("blue", "b")
    assert status is not None
    assert status.uptime == 7
    assert monitor.bridge("red", "b") is None
    bridges["red", "late"] = Source(standing, "late")
    assert list(monitor.bridge_names("red")) == ["late"]
    assert monitor.is_ready()
    monitor.stopping = True
    assert not monitor.is_ready()


async def test_rates_are_sampled(
    standing: ModuleType, autojump_clock: trio.testing.MockClock
) -> None:
    """Each bridge once a second, also one that came later."""
    sources = [Source(standing, "a")]
    with trio.move_on_after(2.5):
        await keep_rates(lambda: sources)
    assert len(sources[0].sampled) == 3
    sources.append(Source(standing, "b"))
    with trio.move_on_after(0.5):
        await keep_rates(lambda: sources)
    assert len(sources[1].sampled) == 1


def bound_as(protocol: str, sock: socket.socket) -> Any:
    """A bound listener of a configuration, as far as it matters here."""
    written = SimpleNamespace(protocol=protocol, max_connection_count=10)
    return SimpleNamespace(written=written, sock=sock, context=None)


async def test_only_listeners_of_management_are_answered(
    standing: ModuleType, listening: socket.socket
) -> None:
    """Users of the configuration are asked for on http; a listener for MQTT is left to others."""
    users = Management.model_validate({"users": {"ann": {"password": "pw"}}})
    monitor = RouterMonitor(router_of("blue"), {})
    port = listening.getsockname()[1]
    with socket.create_server(("127.0.0.1", 0)) as other:
        other.setblocking(False)
        async with trio.open_nursery() as nursery:
            bound = [bound_as("mqtt", other), bound_as("http", listening)]
            answer_management(bound, users, Sources(monitor=monitor), nursery)
            async with httpx.AsyncClient(trust_env=False) as client:
                url = f"http://127.0.0.1:{port}/SEMP/v2/monitor/msgVpns"
                assert (await client.get(url)).status_code == 401
                answer = await client.get(url, auth=("ann", "pw"))
                assert answer.json()["data"][0]["msgVpnName"] == "blue"
            nursery.cancel_scope.cancel()
        assert other.fileno() >= 0, "it is still open"


def test_nothing_is_loaded_without_a_listener() -> None:
    """Who has no http listener pays nothing for it when starting."""
    program = (
        "import sys; from vpnrouter.server.management import answer_management;"
        "answer_management([], None, None, None); import vpnrouter.server.run;"
        "print({'fastapi', 'starlette', 'hypercorn', 'httpx'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def test_served_beside_other_threads(standing: ModuleType) -> None:
    """Many clients at once get whole answers."""
    with standing.serving(standing.three_bridges()) as address:
        found: list[int] = []

        def ask() -> None:
            with httpx.Client(trust_env=False) as client:
                for _ in range(5):
                    rows = client.get(f"http://{address}/vpnrouter/v1/bridges").json()["data"]
                    found.append(len(rows))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert found == [3] * 20
