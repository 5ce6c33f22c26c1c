"""How a connector logs in: which version of MQTT it speaks, and what a broker without QoS 2 is told."""

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.fields import frame_at
from vpnrouter.wire.mqtt.packets import (
    Ack,
    Connack,
    Connect,
    Disconnect,
    Packet,
    Pingreq,
    Pingresp,
    Publish,
    Suback,
    Subscribe,
    Unsubscribe,
)
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBACK, PUBCOMP, PUBREC, PUBREL


class Broker:
    """A broker that answers as `answers` says: packets for a packet, None to close. `got` are the packets."""

    def __init__(self, port: int, answers: Callable[[Packet], list[bytes] | None]) -> None:
        self.got: list[Packet] = []
        self.protocol_levels: list[int] = []
        self._answers = answers
        self._server = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                link, _ = self._server.accept()
            except OSError:
                return
            # The connector may be gone at any moment: some tests end it while it is answered.
            with link, contextlib.suppress(ConnectionError):
                self._serve(link)

    def _serve(self, link: socket.socket) -> None:
        data, level = b"", 5
        while chunk := link.recv(65_536):
            data += chunk
            while size := frame_at(data, 0, len(data), 100_000):
                if data[0] == 0x10:
                    level = data[8]
                    self.protocol_levels.append(level)
                    data = data[:8] + bytes([level & 0x7F]) + data[9:]
                packet = decode(data, 0, size, level & 0x7F)
                self.got.append(packet)
                data = data[size:]
                answers = self._answers(packet)
                if answers is None:
                    return
                for answer in answers:
                    link.sendall(answer)

    def close(self) -> None:
        """End it."""
        self._server.close()


@pytest.fixture
def broker(sites: Any) -> Any:
    """`broker(answers)`: a broker at the address that the connector dials."""
    made: list[Broker] = []

    def make(answers: Callable[[Packet], list[bytes] | None]) -> Broker:
        made.append(Broker(sites.port, answers))
        return made[-1]

    yield make
    for each in made:
        each.close()


IN = {"in": {"source": {"address": "in/#"}}}


@pytest.mark.parametrize("refusal", ["return code", "silence"])
@pytest.mark.parametrize("levels", [(0x84,), (4,)])
def test_older_versions(sites: Any, broker: Any, levels: tuple[int, ...], refusal: str) -> None:
    """A broker without MQTT 5 gets 3.1.1: with the mark of a bridge first, then without it."""
    found: Broker

    def answers(packet: Packet) -> list[bytes] | None:
        if isinstance(packet, Connect):
            if found.protocol_levels[-1] in levels:
                return [encode(Connack(False, 0), 4)]
            return [b"\x20\x02\x00\x01"] if refusal == "return code" else None
        if isinstance(packet, Subscribe):
            return [encode(Suback(packet.packet_id, [1]), 4)]
        return [encode(Pingresp(), 4)] if isinstance(packet, Pingreq) else []

    found = broker(answers)
    sites.connect(IN)
    tried = [5, 0x84, 4]
    assert found.protocol_levels == tried[: tried.index(levels[0]) + 1]
    assert sites.row()["protocol"] == "MQTT 3.1.1"


def test_a_broker_that_grants_less(sites: Any, broker: Any, patiently: Any) -> None:
    """A link whose quality of service the broker cannot keep carries nothing, and says why; others work."""

    def answers(packet: Packet) -> list[bytes]:
        if isinstance(packet, Connect):
            return [encode(Connack(False, 0), 5)]
        if isinstance(packet, Subscribe):
            code = 0x87 if packet.requests[0].filter == "no/#" else 1
            return [encode(Suback(packet.packet_id, [code]), 5)]
        return [encode(Pingresp(), 5)] if isinstance(packet, Pingreq) else []

    found = broker(answers)
    once = {"source": {"address": "once/#"}, "quality_of_service": "once-and-only-once"}
    here = sites.connect({**IN, "once": once, "no": {"source": {"address": "no/#"}}})
    here.says("link once: the provider grants QoS 1 for once/#, less than its quality of service")
    here.says("link no: the provider refused no/#: 0x87 Not authorized")
    given_up = [each for each in found.got if isinstance(each, Unsubscribe)]
    assert [each.filters for each in given_up] == [["once/#"]]
    links = {link["linkName"]: link["stateReason"] for link in sites.row()["links"]}
    assert links["in"] == ""
    assert "0x87" in links["no"]


def test_a_broker_without_qos_2(sites: Any, broker: Any) -> None:
    """Nothing is sent that the broker says that it cannot take."""
    answer = Connack(False, 0, Properties(maximum_qos=1))
    broker(lambda packet: [encode(answer, 5)] if isinstance(packet, Connect) else [])
    out = {"source": {"topic": "out/>"}, "quality_of_service": "once-and-only-once"}
    sites.connect({"out": out, "other": {"source": {"topic": "other/>"}}})
    links = {link["linkName"]: link for link in sites.row()["links"]}
    assert links["out"]["state"] == "refused"
    assert "the provider knows no QoS 2" in links["out"]["stateReason"]
    assert (links["other"]["state"], links["other"]["stateReason"]) == ("up", "")


UNKNOWN = {
    "no/#": (Properties(wildcard_subscription_available=0), "takes no filters with wildcards"),
    "$share/g/no": (Properties(shared_subscription_available=0), "knows no shared subscriptions"),
}


@pytest.mark.parametrize("address", UNKNOWN)
def test_a_broker_that_says_what_it_does_not_know(sites: Any, broker: Any, address: str) -> None:
    """It is not asked for that; other links work."""
    properties, told = UNKNOWN[address]

    def answers(packet: Packet) -> list[bytes] | None:
        if isinstance(packet, Connect):
            return [encode(Connack(False, 0, properties), 5)]
        if isinstance(packet, Subscribe):
            wrong = packet.requests[0].filter == address
            return None if wrong else [encode(Suback(packet.packet_id, [1]), 5)]
        return [encode(Pingresp(), 5)] if isinstance(packet, Pingreq) else []

    broker(answers)
    here = sites.connect(
        {"in": {"source": {"address": "in"}}, "no": {"source": {"address": address}}}
    )
    here.says(f"link no: the provider {told}")
    sites.until_link("in", state="up", stateReason="")


def test_a_broker_that_keeps_no_session(sites: Any, broker: Any) -> None:
    """What needs it is refused."""
    answer = Connack(False, 0, Properties(session_expiry_interval=0))
    broker(lambda packet: [encode(answer, 5)] if isinstance(packet, Connect) else [])
    out = {"source": {"topic": "out/>"}, "quality_of_service": "once-and-only-once"}
    sites.connect({"out": out, "other": {"source": {"topic": "other/>"}}})
    sites.until_link("other", state="up", stateReason="")
    sites.until_link(
        "out",
        state="refused",
        stateReason="the provider keeps no session, which its quality of service needs",
    )


@pytest.mark.parametrize("level", [4, 5])
@pytest.mark.parametrize("refused", ["first", "last"])
def test_a_broker_that_closes_for_a_subscription(
    sites: Any, broker: Any, paho: Any, level: int, refused: str
) -> None:
    """That link is refused after some connections, and says why; the others carry messages, either way."""

    def answers(packet: Packet) -> list[bytes] | None:
        if isinstance(packet, Connect):
            return [encode(Connack(False, 0), level)]
        if isinstance(packet, Subscribe):
            wrong = packet.requests[0].filter == "no/#"
            return None if wrong else [encode(Suback(packet.packet_id, [1]), level)]
        if isinstance(packet, Publish):
            return [encode(Ack(PUBACK, packet.packet_id), level)]
        return [encode(Pingresp(), level)] if isinstance(packet, Pingreq) else []

    broker(answers)
    no = {"no": {"source": {"address": "no/#"}}}
    links = {**no, **IN} if refused == "first" else {**IN, **no}
    links["out"] = {"source": {"queue": "work"}}
    here = sites.connect(
        links,
        queues={"work": {"subscriptions": ["w/>"]}},
        mqtt_version="5" if level == 5 else "3.1.1",
    )
    ours = paho(here.port("mqtt"), "ours")
    ours.client.publish("w/1", b"1", qos=1).wait_for_publish(20)
    sites.until_link("no", state="refused")
    here.says("instead of an answer to the subscription to no/#")
    sites.until_link("in", state="up", stateReason="")
    sites.until_link("out", state="up", deliveredMsgCount=1, deadLetterMsgCount=0)


@pytest.mark.parametrize("level", [4, 5])
def test_it_logs_out(sites: Any, broker: Any, level: int) -> None:
    """A router that stops ends its connection as a client does, and once."""

    def answers(packet: Packet) -> list[bytes]:
        if isinstance(packet, Connect):
            return [encode(Connack(False, 0), level)]
        if isinstance(packet, Subscribe):
            return [encode(Suback(packet.packet_id, [1]), level)]
        return [encode(Pingresp(), level)] if isinstance(packet, Pingreq) else []

    found = broker(answers)
    here = sites.connect(IN, mqtt_version="5" if level == 5 else "3.1.1")
    assert here.stop() == 0
    said = [each for each in found.got if isinstance(each, Disconnect)]
    assert said == [Disconnect(0)]
    assert found.got[-1] is said[0]


@pytest.mark.parametrize("level", [4, 5])
def test_a_connector_that_is_renamed(
    sites: Any, broker: Any, paho: Any, patiently: Any, level: int
) -> None:
    """Where its login stays, its session goes on: what has left a queue is released, and nothing ends the session."""
    logins = 0

    def answers(packet: Packet) -> list[bytes]:
        nonlocal logins
        if isinstance(packet, Connect):
            logins += 1
            return [encode(Connack(logins > 1, 0), level)]
        if isinstance(packet, Publish):
            return [encode(Ack(PUBREC, packet.packet_id), level)]
        if isinstance(packet, Ack) and packet.packet_type == PUBREL and logins > 1:
            # Not before the connector was renamed.
            return [encode(Ack(PUBCOMP, packet.packet_id), level)]
        return [encode(Pingresp(), level)] if isinstance(packet, Pingreq) else []

    found = broker(answers)
    links = {"out": {"source": {"queue": "work"}, "quality_of_service": "once-and-only-once"}}
    options = {
        "queues": {"work": {"subscriptions": ["w/>"]}},
        "client_id": "fixed",
        "mqtt_version": "5" if level == 5 else "3.1.1",
    }
    here = sites.connect(links, **options)
    ours = paho(here.port("mqtt"), "ours")
    ours.client.publish("w/1", b"1", qos=2).wait_for_publish(20)

    def releases() -> list[Packet]:
        return [each for each in found.got if isinstance(each, Ack)]

    patiently(lambda: len(releases()) == 1, "it is released")
    sites.change(links, name="renamed", **options)
    patiently(lambda: len(releases()) == 2, "it is released again")
    patiently(lambda: sites.row()["connectorName"] == "renamed", "it is renamed")
    assert sites.row()["links"][0]["deliveredMsgCount"] == 0
    ours.client.publish("w/2", b"2", qos=2).wait_for_publish(20)
    patiently(lambda: len(releases()) == 3, "the next one crosses")
    connects = [each for each in found.got if isinstance(each, Connect)]
    assert [(each.client_id, each.clean_start) for each in connects] == [("fixed", False)] * 2
    payloads = [each.payload for each in found.got if isinstance(each, Publish)]
    assert payloads == [b"1", b"2"]


def test_without_a_spool(sites: Any, start: Any) -> None:
    """A router without guaranteed messaging carries what is at most once, and says so of the rest."""
    sites.provide()
    text = sites.text(
        {**IN, "direct": {"source": {"address": "d/#"}, "quality_of_service": "at-most-once"}}
    )
    sites.here = start(f"{text}guaranteed_msging: {{enabled: false}}\n", "here")
    sites.state("up")
    links = {link["linkName"]: link["stateReason"] for link in sites.row()["links"]}
    assert links == {"in": "guaranteed messages are disabled here", "direct": ""}


@pytest.mark.parametrize(
    "garbage",
    [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x20\xff\xff\xff\xff\xff", b"\x30\x03\x00\x01a"],
)
def test_what_is_no_mqtt(sites: Any, broker: Any, garbage: bytes) -> None:
    """It costs this connection, with a reason, and the router goes on."""
    broker(lambda _: [garbage])
    here = sites.connect(IN, wait=False, mqtt_version="5")
    here.says("connector there down: ")
    assert not here.told("Traceback")
    assert not here.told("FAULT")
