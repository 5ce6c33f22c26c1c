"""`end_to_end_bridge` between router processes: a publisher at edge is answered when core has its message."""

import json
import urllib.request
from collections.abc import Callable
from queue import Queue
from typing import Any

import pytest
import yaml

from vpnrouter.management.client import ManagementClient

PATIENCE_S = 20
PUBLISH_FAILURE = 0x83

OPEN: dict[str, Any] = {"authentication": {"basic": {"enabled": False}}}


def listeners(msg_vpn: str, link: int) -> list[dict[str, str]]:
    """Listeners of all kinds."""
    bind = "127.0.0.1:0"
    return [
        {"protocol": "http", "bind": bind},
        {"protocol": "mqtt", "bind": bind, "msg_vpn": msg_vpn},
        {"protocol": "link", "bind": f"127.0.0.1:{link}"},
    ]


def edge(link: int) -> dict[str, Any]:
    """Message VPN blue with queue to-core; whoever publishes there waits for bridge from-blue."""
    profile = {"allow_bridge_connections_enabled": True, "end_to_end_bridge": "from-blue"}
    queues = {"to-core": {"subscriptions": ["orders/>"]}, "local": {"subscriptions": ["local/>"]}}
    blue = {**OPEN, "client_profiles": {"default": profile}, "queues": queues}
    return {"listeners": listeners("blue", link), "msg_vpns": {"blue": blue}}


def core(link: int) -> dict[str, Any]:
    """Message VPN yellow with queue orders and bridge from-blue."""
    bridge = {
        "remote_connection": {"retry_delay": 0},
        "remote_authentication": {"basic": {"client_username": "core"}},
        "remote_msg_vpns": [
            {
                "name": "blue",
                "router": "edge",
                "location": f"127.0.0.1:{link}",
                "queue_binding": "to-core",
            }
        ],
    }
    queues = {"orders": {"subscriptions": ["orders/>"]}}
    yellow = {**OPEN, "queues": queues, "bridges": {"from-blue": bridge}}
    return {"listeners": listeners("yellow", 0), "msg_vpns": {"yellow": yellow}}


class Publisher:
    """Publishes with QoS 1 or 2; `answers` gets reason codes of PUBACK and PUBREC, in order."""

    def __init__(self, paho: Any, router: Any, name: str) -> None:
        self.answers: Queue[int] = Queue()
        self._client = paho(router.port("mqtt"), name).client
        self._client.on_publish = lambda _c, _u, _m, reason, _p: self.answers.put(reason.value)

    def publish(self, topic: str, qos: int = 1) -> None:
        """Publish, and wait for nothing."""
        self._client.publish(topic, b"x", qos=qos)

    def answer(self) -> int:
        """The next answer."""
        return self.answers.get(timeout=PATIENCE_S)

    @property
    def unanswered(self) -> bool:
        """Has none come?"""
        return self.answers.empty()


def held(router: Any, msg_vpn: str, name: str) -> int:
    """How many messages wait in a queue."""
    path = f"/SEMP/v2/monitor/msgVpns/{msg_vpn}/queues/{name}"
    with urllib.request.urlopen(
        f"http://127.0.0.1:{router.port('http')}{path}", timeout=PATIENCE_S
    ) as answer:
        return int(json.load(answer)["data"]["msgCount"])


@pytest.fixture
def up(start: Any) -> Callable[[str, dict[str, Any]], Any]:
    """`up(name, document)`: a router."""
    return lambda name, document: start(yaml.safe_dump(document), name)


def test_answered_when_the_other_side_has_it(
    up: Any, paho: Any, patiently: Any, free_port: Any
) -> None:
    """Held while the bridge is away, over a restart too; refused when the message never comes over."""
    link = free_port()
    near = up("edge", edge(link))
    # No bridge ever took from this queue: nobody to wait for.
    early = Publisher(paho, near, "early")
    early.publish("orders/0")
    assert early.answer() == 0
    far = up("core", core(link))
    patiently(lambda: held(far, "yellow", "orders") == 1, "the first message is at core")
    for number, qos in enumerate((1, 2, 1), 2):
        early.publish("orders/1", qos)
        assert early.answer() == 0
        assert held(far, "yellow", "orders") == number
    assert far.stop() == 0

    # The bridge is away: edge has the message, also after a restart, and the publisher is not told.
    early.publish("orders/2")
    patiently(lambda: held(near, "blue", "to-core") == 1, "the message is at edge")
    assert near.stop() == 0
    assert early.unanswered
    near = up("edge", edge(link))
    late, other = Publisher(paho, near, "late"), Publisher(paho, near, "other")
    late.publish("orders/3")
    late.publish("local/1")
    patiently(lambda: held(near, "blue", "local") == 1, "the other message is at edge")
    # Who waits for no bridge is answered in the meantime.
    other.publish("local/2")
    assert other.answer() == 0
    assert late.unanswered

    far = up("core", core(link))
    assert [late.answer(), late.answer()] == [0, 0]
    assert held(far, "yellow", "orders") == 6
    assert far.stop() == 0

    # What an operator deletes never comes over.
    late.publish("orders/4")
    patiently(lambda: held(near, "blue", "to-core") == 1, "the message is at edge")
    with ManagementClient(f"http://127.0.0.1:{near.port('http')}") as client:
        assert client.delete_msgs("blue", "to-core") == 1
    assert late.answer() == PUBLISH_FAILURE
    assert near.stop() == 0
