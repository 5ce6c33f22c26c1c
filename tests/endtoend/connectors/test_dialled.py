"""How a connector reaches its provider: what it says before TLS begins, and from where it comes."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trustme

TARGET = "broker.example.org:8883"
LINKS = {"in": {"source": {"address": "in/#"}}}
NAME = "broker.example.org"
PATIENCE_S = 30.0


class Listening:
    """A listener with TLS for NAME that takes one connection and notes what it is asked for."""

    def __init__(self, authority: trustme.CA, offered: list[str]) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(NAME).configure_cert(context)
        context.set_alpn_protocols(offered)
        context.sni_callback = self._asked
        self._context = context
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(PATIENCE_S)
        self.port: int = self._server.getsockname()[1]
        self.names: list[str | None] = []
        self.protocol: str | None = None
        self.peer = ""
        self.first = b""
        self.served = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _asked(self, _: ssl.SSLSocket, name: str | None, __: ssl.SSLContext) -> None:
        self.names.append(name)

    def _serve(self) -> None:
        try:
            plain, address = self._server.accept()
        except OSError:
            # The test has ended, and nobody came.
            return
        self.peer = address[0]
        try:
            with self._context.wrap_socket(plain, server_side=True) as secured:
                self.protocol = secured.selected_alpn_protocol()
                self.first = secured.recv(1)
        except OSError:
            plain.close()
        self.served.set()

    def end(self) -> None:
        """Close it; who waits for a connection waits no more."""
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self._thread.join(PATIENCE_S)


@pytest.fixture
def authority(tmp_path: Path) -> trustme.CA:
    """Who issues the certificate of the provider, in the file ca.pem."""
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return made


@pytest.fixture
def listening(authority: trustme.CA) -> Iterator[Listening]:
    """A provider of a cloud, which tells MQTT from HTTPS by the protocol that is offered."""
    made = Listening(authority, ["http/1.1", "x-amzn-mqtt-ca"])
    yield made
    made.end()


def dial(sites: Any, tmp_path: Path, port: int, **provider: Any) -> None:
    """Start the router with a connector that trusts the authority."""
    sites.connect(
        LINKS,
        wait=False,
        vpn={"bridging": {"tls_server_cert": {"ca": str(tmp_path / "ca.pem")}}},
        url=f"mqtts://127.0.0.1:{port}",
        connect={"retry_delay": 3600},
        **provider,
    )


def test_a_cloud_is_told_name_and_protocol(
    sites: Any, listening: Listening, tmp_path: Path
) -> None:
    """The name that it is asked for is the one that its certificate must have, whatever the address is."""
    tls = {"server_name": NAME, "alpn": ["x-amzn-mqtt-ca", "mqtt"]}
    dial(sites, tmp_path, listening.port, tls=tls, interface="127.0.0.5")
    assert listening.served.wait(PATIENCE_S)
    assert listening.names == [NAME]
    assert listening.protocol == "x-amzn-mqtt-ca"
    # CONNECT of MQTT (1.5.4 of OASIS MQTT 5).
    assert listening.first == b"\x10"
    assert listening.peer == "127.0.0.5"


@pytest.mark.parametrize(
    ("tls", "told"),
    [
        ({}, "certificate verify failed"),
        ({"server_name": "other.example.org"}, "certificate verify failed"),
        ({"server_name": NAME, "alpn": ["amqp"]}, ""),
    ],
)
def test_what_does_not_fit(
    sites: Any, listening: Listening, tmp_path: Path, tls: dict[str, Any], told: str
) -> None:
    """A certificate of another name is refused; where no offered protocol suits, the provider decides."""
    dial(sites, tmp_path, listening.port, tls=tls)
    assert listening.served.wait(PATIENCE_S)
    if told:
        assert told in sites.state("waiting")["failure"]
        assert listening.first == b""
    else:
        assert listening.protocol is None
        assert listening.first == b"\x10"


@pytest.mark.parametrize("interface", ["nosuch0", "192.0.2.9", "::1"])
def test_an_interface_that_is_not_there(sites: Any, interface: str) -> None:
    """The reason names it, and the next attempt comes in its time."""
    sites.connect(LINKS, wait=False, interface=interface, connect={"retry_delay": 3600})
    row = sites.state("waiting")
    assert f"from {interface}: " in row["failure"]


class Tunnel:
    """A proxy for one connection: it notes what it is asked for, answers, and passes on to a port."""

    def __init__(self, answer: bytes, goal: int) -> None:
        self._answer = answer
        self._goal = goal
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(PATIENCE_S)
        self.port: int = self._server.getsockname()[1]
        self.asked: list[str] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        # The router may close the connection at any time.
        with suppress(OSError):
            here, _ = self._server.accept()
            with here:
                self._answer_to(here)

    def _answer_to(self, here: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += here.recv(4096)
        self.asked = head.decode().splitlines()
        here.sendall(self._answer)
        if b" 200 " not in self._answer or len(self._answer) > 4096:
            return
        with socket.create_connection(("127.0.0.1", self._goal)) as there:
            back = threading.Thread(target=self._pass, args=(there, here), daemon=True)
            back.start()
            self._pass(here, there)
            back.join(PATIENCE_S)

    @staticmethod
    def _pass(source: socket.socket, goal: socket.socket) -> None:
        try:
            while data := source.recv(4096):
                goal.sendall(data)
            goal.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def end(self) -> None:
        """Close it."""
        self._server.close()
        self._thread.join(PATIENCE_S)


@pytest.fixture
def tunnel(listening: Listening) -> Iterator[Any]:
    """`tunnel(answer)` begins a proxy that answers so."""
    made: list[Tunnel] = []

    def begin(answer: bytes) -> Tunnel:
        made.append(Tunnel(answer, listening.port))
        return made[-1]

    yield begin
    for one in made:
        one.end()


def by_proxy(sites: Any, tmp_path: Path, port: int, **proxy: Any) -> None:
    """Start the router with a connector that goes by a proxy, to a name that nobody here can look up."""
    sites.connect(
        LINKS,
        wait=False,
        vpn={"bridging": {"tls_server_cert": {"ca": str(tmp_path / "ca.pem")}}},
        url=f"mqtts://{TARGET}",
        connect={"retry_delay": 3600},
        proxy={"url": f"http://127.0.0.1:{port}", **proxy},
    )


ANSWERS = {
    "1.1": b"HTTP/1.1 200 Connection established\r\n\r\n",
    "1.0": b"HTTP/1.0 200 OK\r\nProxy-agent: some\r\n\r\n",
    "after a word": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_proxy_is_asked_for_the_provider(
    sites: Any, listening: Listening, tunnel: Any, tmp_path: Path, name: str
) -> None:
    """It gets the name, which it looks up itself, and the login; TLS and MQTT go through it to the provider."""
    proxy = tunnel(ANSWERS[name])
    by_proxy(sites, tmp_path, proxy.port, username="us", password="secret")
    assert listening.served.wait(PATIENCE_S), sites.row()
    assert proxy.asked[0] == f"CONNECT {TARGET} HTTP/1.1"
    assert f"Host: {TARGET}" in proxy.asked
    assert "Proxy-Authorization: Basic dXM6c2VjcmV0" in proxy.asked
    assert listening.names == [NAME]
    assert listening.first == b"\x10"
    assert "secret" not in "".join(sites.here.err)


UNHELPFUL = {
    "refuses the login": (
        b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
        "refused with status 407",
    ),
    "points elsewhere": (
        b"HTTP/1.1 302 Found\r\nLocation: http://else/\r\n\r\n",
        "refused with status 302",
    ),
    "has control characters": (
        b"HTTP/1.1 503 \x07\r\nContent-Length: 9\r\n\r\n",
        "refused with status 503",
    ),
    "is another server": (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "no HTTP"),
    "goes on without end": (b"HTTP/1.1 200 OK\r\nX: " + bytes(100_000), "no HTTP"),
    "speaks too early": (b"HTTP/1.1 201 Created\r\n\r\nmore", "spoke before it was asked"),
    "closes": (b"", "it closed the connection"),
}


@pytest.mark.parametrize("name", UNHELPFUL)
def test_a_proxy_that_does_not_help(sites: Any, tunnel: Any, tmp_path: Path, name: str) -> None:
    """The reason names the proxy, and the next attempt comes in its time."""
    answer, told = UNHELPFUL[name]
    proxy = tunnel(answer)
    by_proxy(sites, tmp_path, proxy.port)
    row = sites.state("waiting")
    assert f"proxy 127.0.0.1:{proxy.port}: " in row["failure"]
    assert told in row["failure"]


UPGRADES = {
    "another page": (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "with status 404"),
    "no HTTP": (b"AMQP\x03\x01\x00\x00\r\n\r\n", "broke the protocol of WebSocket"),
    "no key": (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        "broke the protocol of WebSocket",
    ),
    "nothing": (b"", "the remote closed the connection"),
}
"""What a server answers that is asked for a WebSocket, and what is told."""


@pytest.mark.parametrize("case", UPGRADES)
def test_a_server_that_gives_no_websocket(sites: Any, case: str) -> None:
    """The attempt fails for a reason that is told."""
    answer, told = UPGRADES[case]
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            link, _ = server.accept()
            with link:
                asked.append(link.recv(4_096))
                link.sendall(answer)
                link.shutdown(socket.SHUT_WR)
                while link.recv(4_096):
                    pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"amqpws://127.0.0.1:{server.getsockname()[1]}/a/b"
        links = {"in": {"source": {"address": "queue://q"}}}
        sites.connect(links, wait=False, url=url, connect={"retry_delay": 3600})
        sites.until_failure(told)
    assert asked[0].startswith(b"GET /a/b HTTP/1.1\r\n")
    assert b"sec-websocket-protocol: amqp" in asked[0].lower()
