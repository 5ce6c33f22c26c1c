"""Connectors over MQTT, with real routers as both ends: what crosses, under which topic, and what waits."""

import socket
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from vpnrouter.server.connectors.connection_runner import QUICK_RETRIES
from vpnrouter.wire.mqtt.decode import decode
from vpnrouter.wire.mqtt.encode import encode
from vpnrouter.wire.mqtt.fields import frame_at
from vpnrouter.wire.mqtt.packets import Ack, Connack, Connect, Packet, Pingreq, Pingresp, Publish
from vpnrouter.wire.mqtt.properties import Properties
from vpnrouter.wire.mqtt.reason import PUBCOMP, PUBREC, PUBREL

QUALITIES = ("at-most-once", "duplicates-ok", "once-and-only-once")


@pytest.mark.parametrize("version", ["5", "3.1.1"])
@pytest.mark.parametrize("quality", QUALITIES)
def test_both_ways(sites: Any, paho: Any, quality: str, version: str) -> None:
    """Each message is delivered once at either side, though the same topics go in and out."""
    sites.provide()
    both = {
        "in": {"source": {"address": "t/#"}, "quality_of_service": quality},
        "out": {"source": {"topic": "t/>"}, "quality_of_service": quality},
    }
    if version != "5":
        # A broker of 3.1.1 that knows no bridges echoes: only other topics may come back.
        both["in"]["source"]["address"] = "u/#"
    here = sites.connect(both, mqtt_version=version)
    assert sites.row()["protocol"] == f"MQTT {version}"
    inward = "t/in" if version == "5" else "u/in"
    ours, theirs = paho(here.port("mqtt"), "ours"), paho(sites.port, "theirs")
    for client in (ours, theirs):
        client.subscribe("#", 2)
    theirs.client.publish(inward, b"1", qos=2).wait_for_publish(20)
    assert ours.next() == (inward, b"1")
    assert theirs.next() == (inward, b"1")
    ours.client.publish("t/out", b"2", qos=2).wait_for_publish(20)
    assert theirs.next() == ("t/out", b"2")
    assert ours.next() == ("t/out", b"2")
    # What comes behind shows that nothing else came before.
    ours.client.publish("t/last", b"3", qos=2).wait_for_publish(20)
    assert (ours.next(), theirs.next()) == (("t/last", b"3"), ("t/last", b"3"))


def test_targets(sites: Any, paho: Any) -> None:
    """Links rename by the wildcards of their sources, give to a queue, and take from one."""
    sites.provide()
    links = {
        "renamed-in": {"source": {"address": "a/+/b/#"}, "target": {"topic": "in/{2}/{1}"}},
        "to-queue": {"source": {"address": "q/#"}, "target": {"queue": "work"}},
        "renamed-out": {"source": {"topic": "c/*"}, "target": {"address": "out/{1}"}},
        "from-queue": {"source": {"queue": "work"}, "target": {"address": "done/{1}"}},
        "picked": {"source": {"topic": "d/>", "selector": "colour = 'red'"}},
    }
    here = sites.connect(links, queues={"work": {"subscriptions": ["w/>"]}})
    ours, theirs = paho(here.port("mqtt"), "ours"), paho(sites.port, "theirs")
    ours.subscribe("#", 1)
    theirs.subscribe("#", 1)
    theirs.client.publish("a/1/b/x/y", b"1", qos=1).wait_for_publish(20)
    assert ours.next() == ("in/x/y/1", b"1")
    assert theirs.next() == ("a/1/b/x/y", b"1")
    ours.client.publish("w/2", b"2", qos=1).wait_for_publish(20)
    assert theirs.next() == ("done/w/2", b"2")
    # What comes in by the queue has been at the provider, and does not go back to it.
    theirs.client.publish("q/1", b"2", qos=1).wait_for_publish(20)
    assert theirs.next() == ("q/1", b"2")
    ours.client.publish("c/3", b"3", qos=1).wait_for_publish(20)
    assert theirs.next() == ("out/3", b"3")
    ours.client.publish("w/4", b"4", qos=1).wait_for_publish(20)
    assert theirs.next() == ("done/w/4", b"4")
    for colour in ("green", "red"):
        properties = paho_properties(colour)
        ours.client.publish("d/5", colour, qos=1, properties=properties).wait_for_publish(20)
    assert theirs.next() == ("d/5", b"red")


def paho_properties(colour: str) -> Any:
    """Properties of a PUBLISH with a user property."""
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    properties = Properties(PacketTypes.PUBLISH)
    properties.UserProperty = ("colour", colour)
    return properties


def test_retained(sites: Any, paho: Any) -> None:
    """RETAIN is kept or cleared as the link says, and what came with it is not echoed."""
    sites.provide()
    links = {
        "keep-in": {"source": {"address": "k/in/#"}},
        "clear-in": {"source": {"address": "c/in/#"}, "retained": "clear"},
        "keep-out": {"source": {"topic": "k/out/>"}},
        "clear-out": {"source": {"topic": "c/out/>"}, "retained": "clear"},
    }
    here = sites.connect(links)
    ours, theirs = paho(here.port("mqtt"), "ours"), paho(sites.port, "theirs")
    for client, way in ((theirs, "in"), (ours, "out")):
        for kind in "kc":
            client.client.publish(f"{kind}/{way}/1", b"1", qos=1, retain=True).wait_for_publish(20)
    for client, way in ((ours, "in"), (theirs, "out")):
        client.subscribe(f"+/{way}/#", 1)
        # The other one crossed before the subscription, or crosses now and is not retained.
        found = {client.next()[0]}
        if found == {f"c/{way}/1"}:
            found = {client.next()[0]}
        assert found == {f"k/{way}/1"}


def test_what_waits(sites: Any, paho: Any) -> None:
    """Guaranteed messages wait at either side while the other one is away, restarts included."""
    links = {
        "in": {"source": {"address": "in/#"}},
        "out": {"source": {"topic": "out/>"}},
        "queue": {"source": {"queue": "work"}, "quality_of_service": "once-and-only-once"},
    }
    queues = {"work": {"subscriptions": ["work/>"]}}
    here = sites.connect(links, wait=False, queues=queues)
    sites.until_failure("cannot connect")
    ours = paho(here.port("mqtt"), "ours")
    for count in range(10):
        for topic in ("out/x", "work/x"):
            ours.client.publish(topic, b"%d" % count, qos=1).wait_for_publish(20)
    assert sites.row()["waitingMsgCount"] == 20
    assert here.stop() == 0
    here = sites.connect(links, wait=False, queues=queues)
    assert sites.row()["waitingMsgCount"] == 20
    sites.provide(queues={"arrived": {"subscriptions": ["out/>", "work/>"]}})
    sites.state("up", waitingMsgCount=0)
    sites.there.holds("red", "arrived", 20)
    assert here.stop() == 0
    theirs = paho(sites.port, "theirs")
    for count in range(10):
        theirs.client.publish("in/x", b"%d" % count, qos=1).wait_for_publish(20)
    here = sites.connect(links, wait=False, queues={**queues, "in": {"subscriptions": ["in/>"]}})
    here.holds("blue", "in", 10)


def test_a_message_that_is_refused_waits(sites: Any, paho: Any) -> None:
    """What the message VPN has no room for stays at the provider, and comes in order when there is room."""
    sites.provide()
    full = {
        "subscriptions": ["in/>"],
        "max_spooled_msg_count": 3,
        "reject_msg_to_sender_on_discard_behavior": "always",
    }
    links = {"in": {"source": {"address": "in/#"}}, "other": {"source": {"topic": "out/>"}}}
    here = sites.connect(links, queues={"full": full})
    theirs = paho(sites.port, "theirs")
    theirs.subscribe("out/#", 1)
    for count in range(10):
        theirs.client.publish("in/x", b"%d" % count, qos=1).wait_for_publish(20)
    here.holds("blue", "full", 3)
    ours = paho(here.port("mqtt"), "ours")
    ours.client.publish("out/x", b"goes on", qos=1).wait_for_publish(20)
    assert theirs.next() == ("out/x", b"goes on")
    ours.subscribe("$queue/full", 1)
    assert [ours.next()[1] for _ in range(10)] == [b"%d" % count for count in range(10)]


def test_changes(sites: Any, paho: Any) -> None:
    """Links come and go with the configuration; what no link brings in any more does not come."""
    sites.provide()
    here = sites.connect({"in": {"source": {"address": "in/#"}}})
    ours, theirs = paho(here.port("mqtt"), "ours"), paho(sites.port, "theirs")
    ours.subscribe("#", 1)

    sites.change({"other": {"source": {"address": "other/#"}}})
    sites.until_link("other", enabled=True)
    sites.state("up")
    theirs.client.publish("in/1", b"no", qos=1).wait_for_publish(20)
    theirs.client.publish("other/1", b"yes", qos=1).wait_for_publish(20)
    assert ours.next() == ("other/1", b"yes")
    sites.change({"other": {"source": {"address": "other/#"}, "enabled": False}})
    sites.until_link("other", enabled=False)
    theirs.client.publish("other/2", b"not now", qos=1).wait_for_publish(20)
    sites.change({"out": {"source": {"topic": "out/>"}}})
    sites.until_link("out", enabled=True)
    sites.state("up")
    theirs.subscribe("out/#", 1)
    ours.client.publish("out/3", b"3", qos=1).wait_for_publish(20)
    assert theirs.next() == ("out/3", b"3")
    assert ours.next() == ("out/3", b"3")
    # What a link that is disabled would take out is kept, and what one that is removed has kept stays.
    sites.change({"out": {"source": {"topic": "out/>"}, "enabled": False}})
    sites.until_link("out", enabled=False)
    ours.client.publish("out/4", b"4", qos=1).wait_for_publish(20)
    here.holds("blue", "#connector/there/out", 1)
    sites.change({"out": {"source": {"topic": "out/>"}}})
    assert theirs.next() == ("out/4", b"4")
    sites.change({"out": {"source": {"topic": "out/>"}, "enabled": False}})
    sites.until_link("out", enabled=False, waitingMsgCount=0)
    ours.client.publish("out/5", b"5", qos=1).wait_for_publish(20)
    sites.change({"in": {"source": {"address": "in/#"}}})
    here.says("connector-link there/out of message VPN blue is not configured any more")
    here.holds("blue", "#connector/there/out", 1)


def test_at_most_once_from_a_queue(sites: Any, paho: Any) -> None:
    """What was sent has left the queue, whether the provider has it or not."""
    sites.provide()
    link = {"source": {"queue": "work"}, "quality_of_service": "at-most-once"}
    here = sites.connect({"out": link}, queues={"work": {"subscriptions": ["work/>"]}})
    ours, theirs = paho(here.port("mqtt"), "ours"), paho(sites.port, "theirs")
    theirs.subscribe("#", 2)
    for count in range(100):
        ours.client.publish("work/x", b"%d" % count, qos=1).wait_for_publish(20)
    assert [theirs.next()[1] for _ in range(100)] == [b"%d" % count for count in range(100)]
    here.holds("blue", "work", 0)


@pytest.mark.parametrize(
    ("provider", "failure"),
    [
        ({"username": "nobody", "password": "wrong"}, "the provider refused the login: 0x86"),
        ({"url": "mqtts://127.0.0.1:{port}"}, "does not speak TLS"),
    ],
)
def test_a_login_that_fails(sites: Any, provider: dict[str, Any], failure: str) -> None:
    """It is told once with its reason, and the connector gives up after so many attempts."""
    sites.provide(
        authentication={"basic": {"enabled": True}},
        client_usernames={"nobody": {"password": "right"}},
    )
    given = {key: text.format(port=sites.port) for key, text in provider.items()}
    here = sites.connect(
        {"in": {"source": {"address": "in/#"}}},
        wait=False,
        connect={"retry_delay": 0, "retry_count": 3},
        **given,
    )
    row = sites.state("stopped")
    assert row["failure"].startswith("gave up after 4 attempts: ")
    assert failure in row["failure"]
    assert len(here.told("connector there down")) == 2
    assert "right" not in "".join(here.err)
    assert "wrong" not in "".join(here.err)


def test_fail_over(sites: Any, free_port: Any) -> None:
    """The next address is taken at once where the first one cannot be reached."""
    sites.provide()
    here = sites.connect(
        {"in": {"source": {"address": "in/#"}}},
        wait=False,
        url=f"mqtt://127.0.0.1:{free_port()}",
        failover_urls=[f"mqtt://127.0.0.1:{sites.port}"],
        connect={"retry_delay": 3600},
    )
    row = sites.state("up")
    assert row["provider"] == f"mqtt://127.0.0.1:{sites.port}"
    here.says("connector there up")


def _packets(connection: socket.socket) -> Iterator[Packet]:
    """Packets of MQTT 5 that a connection brings; logins and PINGREQs are answered."""
    data = b""
    pings = 0
    while more := connection.recv(4096):
        data += more
        while size := frame_at(data, 0, len(data), 1 << 20):
            packet = decode(data, 0, size, 5)
            data = data[size:]
            if isinstance(packet, Connect):
                connection.sendall(encode(Connack(True, 0, Properties()), 5))
            elif isinstance(packet, Pingreq):
                pings += 1
                # One comes with the login, the others after seconds of silence.
                assert pings < 5, "nothing comes"
                connection.sendall(encode(Pingresp(), 5))
            else:
                yield packet


def test_a_provider_that_is_started_anew(sites: Any, paho: Any, patiently: Any) -> None:
    """A message that was out when the provider went, however often, crosses when the provider is there again."""
    address = ("127.0.0.1", sites.port)
    link = {
        "source": {"topic": "out/>"},
        "quality_of_service": "once-and-only-once",
        "reject_attempts": 1,
    }
    server = socket.create_server(address)
    here = sites.connect(
        {"out": link},
        wait=False,
        queues={"#DEAD_MSG_QUEUE": {}},
        mqtt_version="5",
        connect={"retry_delay": 1},
    )
    ours = paho(here.port("mqtt"), "ours")
    ours.client.publish("out/a", b"1", qos=1).wait_for_publish(20)
    for restarts in range(1, QUICK_RETRIES + 2):
        # The port is closed before the connection is reset, as with the end of a process.
        with server:
            connection, _ = server.accept()
            assert isinstance(next(_packets(connection)), Publish)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        patiently(lambda many=restarts: len(here.told("connector there down")) == many, "down")
        server = socket.create_server(address)
    crossed = []
    with server:
        connection, _ = server.accept()
    with connection:
        for packet in _packets(connection):
            if isinstance(packet, Publish):
                crossed.append((packet.payload, packet.dup))
                connection.sendall(encode(Ack(PUBREC, packet.packet_id), 5))
            elif isinstance(packet, Ack) and packet.packet_type == PUBREL:
                connection.sendall(encode(Ack(PUBCOMP, packet.packet_id), 5))
                break
        assert crossed == [(b"1", True)]
        sites.until_link("out", deliveredMsgCount=1)
    here.holds("blue", "#DEAD_MSG_QUEUE", 0)
    assert here.told("a message was") == []
