"""One connection to a broker, against brokers that do as a script says."""

import socket
import ssl
import time
from pathlib import Path
from typing import Any

import pytest
import trustme

from vpnrouter.cli._broker_options import Broker
from vpnrouter.cli._mqtt_link import MqttLink, stamp_of
from vpnrouter.errors import OperationError
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.packets import Connack, Connect, Pingresp, Publish
from vpnrouter.wire.mqtt.properties import Properties


def opened(port: int, *, host: str = "127.0.0.1", **given: Any) -> MqttLink:
    """A connection to a scripted broker."""
    return MqttLink(Broker(host, port, "c", **given), Connect("c"))


def test_packets_however_they_are_cut(scripted: Any) -> None:
    """A large packet in many pieces, and several in one."""
    payload = bytes(range(256)) * 4_000

    def script(one: Any) -> None:
        one.heard()
        one.say(Connack())
        data = b"".join(encode(Publish(b"t", each), 5) for each in (payload, b"a", b"b"))
        for start in range(0, len(data), 100_003):
            one.link.sendall(data[start : start + 100_003])
        one.heard()

    with opened(scripted(script)) as link:
        found: list[Any] = []
        while len(found) < 3:
            found += link.receive(time.monotonic() + 20)
        assert [packet.payload for packet in found] == [payload, b"a", b"b"]


def test_pings_while_nothing_happens(scripted: Any) -> None:
    """After the keep-alive time, which the broker may set, a PINGREQ leaves."""
    heard: list[bytes] = []

    def script(one: Any) -> None:
        one.heard()
        one.say(Connack(properties=Properties(server_keep_alive=1)))
        heard.append(one.heard())
        one.say(Pingresp())
        one.heard()

    with opened(scripted(script), keep_alive_s=500) as link:
        assert link.receive(time.monotonic() + 10) == []
    assert heard == [b"\xc0\x00"]


def test_no_answer_to_a_ping(scripted: Any) -> None:
    """A broker that is silent for two keep-alive times is given up."""

    def script(one: Any) -> None:
        one.heard()
        one.say(Connack(properties=Properties(server_keep_alive=1)))
        one.heard()
        one.heard()

    with (
        opened(scripted(script)) as link,
        pytest.raises(OperationError, match="did not answer a ping within 1 s"),
    ):
        link.receive(time.monotonic() + 10)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Connack(reason_code=0x87), r"refused client c: 0x87 Not authorized; it may want --user"),
        (Publish(b"t", b""), "answered CONNECT with another packet"),
        (b"HTTP/1.1 400 Bad Request\r\n" + bytes(90), "breaks the protocol"),
        (b"", "closed the connection"),
    ],
)
def test_refused(scripted: Any, answer: Any, said: str) -> None:
    """One line says what the broker did."""

    def script(one: Any) -> None:
        one.heard()
        one.link.sendall(answer if isinstance(answer, bytes) else encode(answer, 5))

    with pytest.raises(OperationError, match=said):
        opened(scripted(script))


def test_nobody_there() -> None:
    """The line has the way out."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(
        OperationError, match=rf"^cannot connect to mqtt://127.0.0.1:{port}: .*--url"
    ):
        opened(port)


def test_tls(scripted: Any, tmp_path: Path) -> None:
    """With its authority a broker is trusted; without, the line says what to give."""
    authority = trustme.CA()
    theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(theirs)

    def script(one: Any) -> None:
        one.heard()
        one.say(Connack(), Publish(b"t", b"x"))
        one.heard()

    ours = ssl.create_default_context()
    authority.configure_trust(ours)
    with opened(scripted(script, theirs), host="localhost", tls=ours) as link:
        assert [packet.payload for packet in link.receive(time.monotonic() + 20)] == [b"x"]
    with pytest.raises(OperationError, match=r"is not trusted: .*--ca-file"):
        opened(scripted(script, theirs), host="localhost", tls=ssl.create_default_context())


def test_settled(scripted: Any) -> None:
    """A broker that has answered the ping has read what was sent before it."""
    heard: list[bytes] = []

    def script(one: Any) -> None:
        one.heard()
        one.say(Connack())
        while not heard or not heard[-1].endswith(b"\xc0\x00"):
            heard.append(one.heard())
        one.say(Publish(b"t", b""), Pingresp())
        assert one.heard() == b"\xe0\x00"

    with opened(scripted(script)) as link:
        link.send(encode(Publish(b"t", b"x"), 5))
        assert len(link.settle()) == 1
        link.end()
    assert b"".join(heard) == encode(Publish(b"t", b"x"), 5) + b"\xc0\x00"


@pytest.mark.parametrize("payload", [b"", b"@", b"@12 x", b"x@1700000000000000000 ", b"\xff" * 30])
def test_other_payloads(payload: bytes) -> None:
    """They say nothing of a time."""
    assert stamp_of(payload) == 0
