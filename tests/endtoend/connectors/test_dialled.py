"""How a connector reaches its provider: what it says before TLS begins, and from where it comes."""

import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

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
        plain, address = self._server.accept()
        self.peer = address[0]
        try:
            with self._context.wrap_socket(plain, server_side=True) as secured:
                self.protocol = secured.selected_alpn_protocol()
                self.first = secured.recv(1)
        except OSError:
            plain.close()
        self.served.set()

    def end(self) -> None:
        """Close it."""
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
