"""TLS and WebSocket: the same clients through layers."""

import contextlib
import select
import ssl
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
import trustme
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Ping,
    Pong,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)

from vpnrouter.config.secrets import hash_password
from vpnrouter.server.net.layers import WebSocketLayer, origin_allowed
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Connect, Publish

OPEN = "msg_vpns: {blue: {authentication: {basic: {enabled: false}}}}\n"
WS = 'listeners: [{protocol: ws, bind: "127.0.0.1:0", msg_vpn: blue}]\n' + OPEN


@pytest.fixture
def authority(tmp_path: Path) -> trustme.CA:
    """An authority, with a certificate for localhost in server.pem."""
    made = trustme.CA()
    issued = made.issue_cert("localhost")
    issued.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    return made


def mqtts(tmp_path: Path, certificate: str = "server.pem", key: str = "server.pem") -> str:
    """A configuration with one TLS listener."""
    tls = f"tls: {{certificate: {tmp_path}/{certificate}, key: {tmp_path}/{key}}}"
    return f'listeners: [{{protocol: mqtts, bind: "127.0.0.1:0", msg_vpn: blue, {tls}}}]\n' + OPEN


async def secure(port: int, authority: trustme.CA) -> Any:
    """A TLS stream to a listener, shaken hands."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    plain = await trio.open_tcp_stream("127.0.0.1", port)
    stream = trio.SSLStream(plain, context, server_hostname="localhost", https_compatible=True)
    await stream.do_handshake()
    return stream


async def test_a_stranger_at_a_tls_listener(
    running: Any, client_type: Any, port: Any, authority: trustme.CA, tmp_path: Path
) -> None:
    """Who cannot shake hands is closed and counted; the next one is served."""
    async with running(mqtts(tmp_path)) as node:
        stranger = await trio.open_tcp_stream("127.0.0.1", port(node, "mqtts"))
        await stranger.send_all(b"GET / HTTP/1.1\r\n\r\n")
        with trio.fail_after(10):
            while await stranger.receive_some():
                pass
        await stranger.aclose()
        assert node.router.protocol_errors == 1
        client = client_type(await secure(port(node, "mqtts"), authority))
        assert (await client.connect()).reason_code == 0
        await trio.aclose_forcefully(client.stream)


@pytest.mark.parametrize("host", ["epoll", "tasks"])
async def test_a_tls_client_that_never_reads_stalls_nobody(
    running: Any,
    client_type: Any,
    port: Any,
    authority: trustme.CA,
    tmp_path: Path,
    until: Any,
    host: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A slow TLS consumer costs its own messages alone, its memory has a bound, and it is still heard."""
    if host == "tasks":
        monkeypatch.delattr(select, "epoll")
    async with running(mqtts(tmp_path)) as node:
        slow, quick, publisher = [
            client_type(await secure(port(node, "mqtts"), authority)) for _ in range(3)
        ]
        for name, client in (("slow", slow), ("quick", quick), ("p", publisher)):
            await client.connect(name)
        await slow.subscribe("#")
        await quick.subscribe("#")
        outbox = node.router.vpns["blue"].clients["slow"].outbox
        outbox.set_limit(4_000_000)
        with trio.fail_after(60):
            for _ in range(200):
                await publisher.publish("a", bytes(100_000))
                assert len(await quick.payload()) == 100_000
            await slow.publish("a", b"still here")
            assert await quick.payload() == b"still here"
        assert outbox.discarded > 0
        assert outbox.size <= outbox.limit
        for client in (slow, quick, publisher):
            await trio.aclose_forcefully(client.stream)
        await until(lambda: not node.router.vpns["blue"].clients)


class Socket:
    """A WebSocket client with the methods of a stream; `events` keeps what was no binary frame."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.ws = WSConnection(ConnectionType.CLIENT)
        self.events: list[Any] = []

    @classmethod
    async def open(
        cls, port: int, subprotocols: tuple[str, ...] = ("mqtt",), origin: str = ""
    ) -> "Socket":
        """Connect and ask for the upgrade, as a page of `origin` would."""
        made = cls(await trio.open_tcp_stream("127.0.0.1", port))
        headers = [(b"Origin", origin.encode())] if origin else []
        await made.say(
            Request(
                host="localhost:8083",
                target="/mqtt",
                subprotocols=list(subprotocols),
                extra_headers=headers,
            )
        )
        while not made.events:
            await made.receive_some()
        return made

    async def say(self, event: Any) -> None:
        """Send one event."""
        await self.stream.send_all(self.ws.send(event))

    async def send_all(self, data: bytes) -> None:
        """Send a binary frame."""
        await self.say(BytesMessage(data=data))

    async def receive_some(self) -> bytes:
        """The bytes of the next binary frames, b"" at the end or when something else came."""
        data = await self.stream.receive_some()
        self.ws.receive_data(bytes(data) or None)
        found = b""
        for event in self.ws.events():
            if isinstance(event, BytesMessage):
                found += bytes(event.data)
            else:
                self.events.append(event)
        return found

    async def until(self, kind: type[Any]) -> Any:
        """The first event of a kind, waited for."""
        with trio.fail_after(10):
            while not (found := [event for event in self.events if isinstance(event, kind)]):
                await self.receive_some()
        return found[0]

    async def aclose(self) -> None:
        """Close at once."""
        await trio.aclose_forcefully(self.stream)


async def test_mqtt_over_websocket(running: Any, client_type: Any, port: Any) -> None:
    """The `mqtt` subprotocol is taken, and packets may be cut into frames anywhere (MQTT-6.0.0-3)."""
    async with running(WS) as node:
        sock = await Socket.open(port(node, "ws"), ("other", "mqtt"))
        (accepted,) = sock.events
        assert isinstance(accepted, AcceptConnection)
        assert accepted.subprotocol == "mqtt"
        for byte in encode(Connect("c"), 5):
            await sock.send_all(bytes((byte,)))
        client = client_type(sock)
        assert (await client.packet()).reason_code == 0
        await client.subscribe("#")
        both = encode(Publish(b"a", b"1"), 5) + encode(Publish(b"a", b"2"), 5)
        await sock.send_all(both)
        assert [await client.payload(), await client.payload()] == [b"1", b"2"]
        await sock.aclose()


@pytest.mark.parametrize(
    ("subprotocols", "taken"),
    [
        ((), ""),
        (("mqttv3.1",), "mqttv3.1"),
        (("mqttv3.1", "mqtt"), "mqtt"),
        (("chat", "mqttv3.1"), "mqttv3.1"),
        (("chat",), None),
        (("MQTT",), None),
        (("amqp",), None),
    ],
)
async def test_other_subprotocols(
    running: Any, client_type: Any, port: Any, subprotocols: tuple[str, ...], taken: str | None
) -> None:
    """Old clients offer `mqttv3.1`, or nothing; who offers none that is MQTT's is refused."""
    async with running(WS) as node:
        sock = await Socket.open(port(node, "ws"), subprotocols)
        answer = sock.events[0]
        if taken is None:
            assert isinstance(answer, RejectConnection)
            assert answer.status_code == 400
        else:
            assert isinstance(answer, AcceptConnection)
            assert (answer.subprotocol or "") == taken
            client = client_type(sock)
            await client.connect()
        await sock.aclose()


async def test_a_text_frame(running: Any, client_type: Any, port: Any) -> None:
    """A text frame closes the connection with 1003 (MQTT-6.0.0-1)."""
    async with running(WS) as node:
        sock = await Socket.open(port(node, "ws"))
        await client_type(sock).connect()
        await sock.say(TextMessage(data="hello"))
        close = await sock.until(CloseConnection)
        assert close.code == 1003
        await sock.aclose()
        with trio.fail_after(5):
            while node.router.vpns["blue"].clients:
                await trio.testing.wait_all_tasks_blocked(0.01)


async def test_a_ping(running: Any, client_type: Any, port: Any) -> None:
    """A WebSocket ping is answered with what it carried, beside the MQTT packets."""
    async with running(WS) as node:
        sock = await Socket.open(port(node, "ws"))
        await client_type(sock).connect()
        await sock.say(Ping(payload=b"are you there"))
        pong = await sock.until(Pong)
        assert bytes(pong.payload) == b"are you there"
        await sock.aclose()


async def test_a_broken_frame(running: Any, client_type: Any, port: Any) -> None:
    """Bytes that are no WebSocket frame end that connection alone."""
    async with running(WS) as node:
        bad, good = [await Socket.open(port(node, "ws")) for _ in range(2)]
        await client_type(bad).connect("bad")
        client = client_type(good)
        await client.connect("good")
        await bad.stream.send_all(b"\xff" * 32)
        with trio.fail_after(5):
            while "bad" in node.router.vpns["blue"].clients:
                await trio.testing.wait_all_tasks_blocked(0.01)
        await client.subscribe("#")
        await client.publish("a", b"x")
        assert await client.payload() == b"x"
        await bad.aclose()
        await good.aclose()


UPGRADE = (
    b"GET /mqtt HTTP/1.1\r\nHost: %b\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n%b\r\n"
)

UNREADABLE = {
    "subprotocol": UPGRADE % (b"h", b"Sec-WebSocket-Protocol: \xff\r\n"),
    "extensions": UPGRADE
    % (b"h", b"Sec-WebSocket-Protocol: mqtt\r\nSec-WebSocket-Extensions: a;\xff\r\n"),
    "host": UPGRADE % (b"\xff\xfe", b"Sec-WebSocket-Protocol: mqtt\r\n"),
    "punycode": UPGRADE % (b"xn--99999999", b"Sec-WebSocket-Protocol: mqtt\r\n"),
    "origin": UPGRADE % (b"h", b"Sec-WebSocket-Protocol: mqtt\r\nOrigin: http://[\xff\r\n"),
    "nothing like it": b"\x00\xff\r\n\r\n" * 9,
    "no upgrade": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
}


@pytest.mark.parametrize("protocol", ["ws", "wss"])
@pytest.mark.parametrize("what", UNREADABLE)
async def test_an_upgrade_that_cannot_be_read(
    running: Any,
    client_type: Any,
    port: Any,
    authority: trustme.CA,
    tmp_path: Path,
    what: str,
    protocol: str,
) -> None:
    """A request with bytes that are no ASCII, names that are none and the like is refused; others go on."""
    tls = f"tls: {{certificate: {tmp_path}/server.pem, key: {tmp_path}/server.pem}}"
    text = (
        f"listeners:\n"
        f'  - {{protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}}\n'
        f'  - {{protocol: ws, bind: "127.0.0.1:0", msg_vpn: blue}}\n'
        f'  - {{protocol: wss, bind: "127.0.0.1:0", msg_vpn: blue, {tls}}}\n'
    )
    async with running(text + OPEN) as node:
        plain = await trio.open_tcp_stream("127.0.0.1", port(node, "mqtt"))
        client = client_type(plain)
        await client.connect("good")
        if protocol == "wss":
            stream = await secure(port(node, "wss"), authority)
        else:
            stream = await trio.open_tcp_stream("127.0.0.1", port(node, "ws"))
        await stream.send_all(UNREADABLE[what])
        answer = b""
        with trio.fail_after(10):
            while chunk := await stream.receive_some():
                answer += chunk
        assert not answer or answer.startswith(b"HTTP/1.1 4")
        await trio.aclose_forcefully(stream)
        await client.subscribe("#")
        await client.publish("a", b"x")
        assert await client.payload() == b"x"
        assert node.router.protocol_errors == 1
        await plain.aclose()


@pytest.mark.parametrize(
    ("allowed", "origin", "status"),
    [
        ("", "", 101),
        ("", "http://localhost", 101),
        ("", "https://LOCALHOST:8443", 101),
        ("", "https://elsewhere.example", 403),
        ("", "http://localhost.elsewhere.example", 403),
        ("", "null", 403),
        ("allowed_origins: [],", "", 101),
        ("allowed_origins: [],", "http://localhost", 403),
        ('allowed_origins: ["*"],', "https://elsewhere.example", 101),
        ("allowed_origins: [https://app.example],", "https://app.example", 101),
        ("allowed_origins: [https://app.example],", "https://app.example:444", 403),
        ("allowed_origins: [https://app.example],", "http://localhost", 403),
    ],
)
async def test_origins(running: Any, port: Any, allowed: str, origin: str, status: int) -> None:
    """Pages of the same host connect, and of others that are listed; who names no origin always."""
    listener = f'{{protocol: ws, bind: "127.0.0.1:0", {allowed} msg_vpn: blue}}'
    async with running(f"listeners: [{listener}]\n{OPEN}") as node:
        sock = await Socket.open(port(node, "ws"), origin=origin)
        (answer,) = [each for each in sock.events if not isinstance(each, RejectData)]
        if status == 101:
            assert isinstance(answer, AcceptConnection)
        else:
            assert isinstance(answer, RejectConnection)
            assert answer.status_code == status
        await sock.aclose()


@pytest.mark.parametrize(
    ("host", "taken"),
    [
        ("localhost", True),
        ("app.localhost", True),
        ("127.0.0.1", True),
        ("[::1]", True),
        ("192.0.2.7", True),
        ("router.example", True),
        ("ROUTER.example", True),
        ("rebound.example", False),
        ("router.example.rebound.example", False),
        ("rebound.example.", False),
        ("127.0.0.1.rebound.example", False),
        ("localhost.rebound.example", False),
        ("localhost@rebound.example", False),
    ],
)
@pytest.mark.parametrize("port", ["", ":8083"])
def test_the_same_host_is_one_that_the_listener_has(host: str, taken: bool, port: str) -> None:
    """A page of the request's own host connects where that is an address, localhost, or named; TLS proves any."""
    origin = f"http://{host}:80"
    own = frozenset({"router.example"})
    assert origin_allowed(origin, f"{host}{port}", ["same-host"], own) is taken
    assert origin_allowed(origin, f"{host}{port}", ["same-host"], None)
    assert not origin_allowed(origin, f"other.example{port}", ["same-host"], own)
    assert not origin_allowed(origin, f"{host}{port}", [], own)
    assert origin_allowed(origin, f"{host}{port}", [origin], own)


@pytest.mark.parametrize(
    ("host", "status"), [("router.example", b"101"), ("rebound.example", b"403")]
)
async def test_hosts_of_a_listener(running: Any, port: Any, host: str, status: bytes) -> None:
    """The names that a listener without TLS has are those that are configured."""
    listener = '{protocol: ws, bind: "127.0.0.1:0", hosts: [Router.example], msg_vpn: blue}'
    async with running(f"listeners: [{listener}]\n{OPEN}") as node:
        stream = await trio.open_tcp_stream("127.0.0.1", port(node, "ws"))
        await stream.send_all(
            f"GET / HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n".encode()
        )
        with trio.fail_after(10):
            answer = bytes(await stream.receive_some())
        assert answer.split()[1] == status
        await trio.aclose_forcefully(stream)


LAYERED = """
listeners:
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: ws, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: mqtts, bind: "127.0.0.1:0", msg_vpn: blue, tls: {certificate: %(pem)s, key: %(pem)s}}
msg_vpns:
  blue:
    client_usernames: {ann: {password: "%(hash)s"}, bob: {password: plain}}
"""


@pytest.mark.parametrize("protocol", ["ws", "mqtts"])
async def test_all_that_a_client_said_before_it_left(
    running: Any,
    client_of: Any,
    port: Any,
    authority: trustme.CA,
    tmp_path: Path,
    until: Any,
    protocol: str,
) -> None:
    """A client may say everything and close while its password is verified: nothing of it is lost."""
    text = LAYERED % {
        "pem": tmp_path / "server.pem",
        "hash": hash_password("secret", bytes(16)),
    }
    said = encode(Connect("c", username="ann", password=b"secret"), 5)
    for number in range(3):
        said += encode(Publish(b"bye", b"%d" % number), 5)
    async with running(text) as node:
        hears = await client_of(node)
        await hears.connect("hears", username="bob", password=b"plain")
        await hears.subscribe("bye")
        if protocol == "ws":
            sock = await Socket.open(port(node, "ws"))
            plain = sock.stream
            last = sock.ws.send(BytesMessage(data=said)) + sock.ws.send(CloseConnection(1000))
        else:
            stream = await secure(port(node, "mqtts"), authority)
            plain = stream.transport_stream
            layer = stream._ssl_object
            layer.write(said)
            with contextlib.suppress(ssl.SSLWantReadError):
                layer.unwrap()
            last = stream._outgoing.read()
        await plain.send_all(last)
        assert [await hears.payload() for _ in range(3)] == [b"0", b"1", b"2"]
        await until(lambda: set(node.router.vpns["blue"].clients) == {"hears"})
        await plain.aclose()


async def test_pings_without_end(running: Any, client_type: Any, port: Any, until: Any) -> None:
    """Who asks and never reads the answers is closed: what waits for it has a bound."""
    async with running(WS) as node:
        sock = await Socket.open(port(node, "ws"))
        await client_type(sock).connect("asks")
        pings = b"".join(sock.ws.send(Ping(payload=bytes(125))) for _ in range(500))

        async def ask() -> None:
            while True:
                await sock.stream.send_all(pings)

        with trio.fail_after(60), pytest.raises(trio.BrokenResourceError):
            await ask()
        await until(lambda: not node.router.vpns["blue"].clients)
        await sock.aclose()


def test_a_flood_of_pings_is_taken_in_small_parts() -> None:
    """Until something else comes, less is received at a time (`Layer.laborious`)."""
    layer = WebSocketLayer()
    layer.receive(UPGRADE % (b"h", b"Sec-WebSocket-Protocol: mqtt\r\n"))
    assert layer.ready
    ping = b"\x89\x80" + bytes(4)
    for data, laborious in ((ping, False), (ping * 1_000, True), (b"\x82\x81" + bytes(5), False)):
        layer.receive(data)
        assert layer.laborious == laborious
