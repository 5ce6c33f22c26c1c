"""AMQP clients of other makers and MQTT clients exchange messages over a router as a process."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.slow

CONFIG = """
listeners:
  - {protocol: amqp, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: mqtt, bind: "127.0.0.1:0", msg_vpn: blue}
  - {protocol: http, bind: "127.0.0.1:0"}
msg_vpns:
  blue:
    authentication: {basic: {enabled: false}}
    queues:
      orders: {}
      tx: {}
      all: {subscriptions: ["t/>"]}
"""

NAMES = ["jms", "proton", "rhea", "go"]


@pytest.fixture
def site(start: Any, peers: Any) -> tuple[Any, Any]:
    """A router and the peers that it serves."""
    router = start(CONFIG)
    return router, peers(router.port("amqp"))


def test_the_jms_program(site: tuple[Any, Any]) -> None:
    """Selector, temporary queue, delay, browser, transaction, durable and shared subscription of Qpid JMS."""
    router, client = site
    command = client.command("jms")
    command[command.index("JmsPeer")] = "Jms"
    lines = client.run(command)
    said = dict(line.split(": ", 1) for line in lines)
    delay = said.pop("delayed")
    assert delay.startswith("late after ms ")
    assert int(delay.rpartition(" ")[2]) >= 290
    assert said.pop("temporary").startswith("queue://")
    assert said == {
        "selector": "two",
        "rest": "one",
        "browse has more": "false",
        "transaction": "kept",
        "durable": "while away",
        "shared": "1 2",
    }
    # Nothing is left behind.
    assert router.queue("blue", "orders")["msgCount"] == 0


@pytest.mark.parametrize("receiver", [*NAMES, "mqtt"])
def test_each_receives_from_each(site: tuple[Any, Any], paho: Any, receiver: str) -> None:
    """A text from each peer and from MQTT, published to a topic, consumed from a queue."""
    router, client = site
    mqtt = paho(router.port("mqtt"), "m")
    for name in NAMES:
        client.send(name, f"topic://t/{name}", f"from {name}")
    mqtt.publish("t/mqtt", b"from mqtt")
    expected = {f"from {name}" for name in (*NAMES, "mqtt")}
    if receiver == "mqtt":
        mqtt.subscribe("$queue/all", 1)
        found = {mqtt.next()[1].decode() for _ in expected}
    else:
        # The Direct message of MQTT is promoted to the queue.
        router.holds("blue", "all", len(expected))
        found = {line.partition(":")[2] for line in client.receive(receiver, "queue://all", 5)}
    assert found == expected


def test_kinds_of_jms_messages(site: tuple[Any, Any], paho: Any) -> None:
    """Text, bytes and map, to MQTT 5 and back to JMS."""
    router, client = site
    mqtt = paho(router.port("mqtt"), "m")
    mqtt.subscribe("t/#", 1)
    client.send("jms", "topic://t/text", "Grüße", "text")
    client.send("jms", "topic://t/bytes", "abc", "bytes")
    client.send("jms", "topic://t/map", "number=5", "map")
    got = dict(mqtt.next() for _ in range(3))
    assert got["t/text"].decode() == "Grüße"
    assert got["t/bytes"] == b"abc"
    assert json.loads(got["t/map"]) == {"number": 5}
    lines = client.receive("jms", "queue://all", 3)
    assert sorted(lines) == ["bytes:abc", "map:{number=5}", "text:Grüße"]
    mqtt.publish("t/plain", b"from mqtt")
    assert client.receive("jms", "queue://all", 1) == ["bytes:from mqtt"]


def test_the_api_shows_them(site: tuple[Any, Any], patiently: Any) -> None:
    """Monitoring has protocol, container id and flows of an AMQP client."""
    router, client = site
    subscriber = subprocess.Popen([*client.command("proton"), "receive", "topic://news", "1"])
    waiting = subprocess.Popen([*client.command("proton"), "receive", "queue://orders", "1"])
    found: list[Any] = []

    def bound() -> bool:
        found[:] = [row for row in router.api().clients("blue") if row["platform"] == "AMQP 1.0"]
        return len(found) == 2 and all(row["bindCount"] == 1 for row in found)

    try:
        patiently(bound, "two clients with a flow")
        assert found[0]["clientId"]
        assert found[0]["clientName"] == found[0]["clientId"]
        assert sorted(row["subscriptionCount"] for row in found) == [0, 1]
        held = [
            row for row in router.api().subscriptions("blue") if row["holder"] == "subscription"
        ]
        assert [row["subscriptionTopic"] for row in held] == ["news"]
        names = [row["queueName"] for row in router.api().queues("blue")]
        assert held[0]["name"] in names
        page = httpx.get(f"http://127.0.0.1:{router.port('http')}/metrics", trust_env=False).text
        (line,) = [
            one
            for one in page.splitlines()
            if one.startswith("vpnrouter_msg_vpn_amqp_subscription_endpoints{")
        ]
        assert line.endswith(" 1")
    finally:
        client.send("proton", "topic://news", "the end")
        assert subscriber.wait(60) == 0
        client.send("proton", "queue://orders", "the end")
        assert waiting.wait(60) == 0
