"""Guaranteed messages over bridges between router processes: what a publisher, a bridge and a consumer see."""

import json
import signal
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from vpnrouter.testing.network import FaultyNetwork

OPEN: dict[str, Any] = {
    "authentication": {"basic": {"enabled": False}},
    "client_profiles": {"default": {"allow_bridge_connections_enabled": True}},
    "client_usernames": {name: {"password": "word"} for name in ("core", "edge")},
}
"""A message VPN that lets everybody in, and proves to bridges that it is the one they mean."""


def listeners(msg_vpn: str, link: int = 0) -> list[dict[str, str]]:
    """Listeners of all kinds."""
    bind = "127.0.0.1:0"
    return [
        {"protocol": "http", "bind": bind},
        {"protocol": "mqtt", "bind": bind, "msg_vpn": msg_vpn},
        {"protocol": "link", "bind": f"127.0.0.1:{link}"},
    ]


def edge(link: int = 0, **vpn: Any) -> dict[str, Any]:
    """Message VPN blue with queue to-core, and what else is said."""
    queues = {"to-core": {"subscriptions": ["orders/>"]}, **vpn.pop("queues", {})}
    return {
        "listeners": listeners("blue", link),
        "msg_vpns": {"blue": {**OPEN, "queues": queues, **vpn}},
    }


def remote(location: str, router: str = "edge", **more: Any) -> dict[str, Any]:
    """Where a bridge finds queue to-core."""
    return {
        "name": "blue",
        "router": router,
        "location": location,
        "queue_binding": "to-core",
        **more,
    }


def core(*remotes: dict[str, Any], link: int = 0, **bridge: Any) -> dict[str, Any]:
    """Message VPN yellow with queue orders and bridge from-blue."""
    written = {
        "guaranteed_retry_interval": 50,
        "remote_connection": {"retry_delay": 0, "failback_delay": 1},
        "remote_authentication": {"basic": {"client_username": "core", "password": "word"}},
        "remote_msg_vpns": list(remotes),
        "remote_subscriptions": ["weather/>"],
        **bridge,
    }
    yellow = {
        **OPEN,
        "queues": {"orders": {"subscriptions": ["orders/>"]}},
        "bridges": {"from-blue": written},
    }
    return {"listeners": listeners("yellow", link), "msg_vpns": {"yellow": yellow}}


def at(router: Any) -> str:
    """Where a router answers links."""
    return f"127.0.0.1:{router.port('link')}"


def publish(client: Any, topic: str, *numbers: int) -> None:
    """Publish with QoS 1, and wait for every acknowledgement."""
    waiting = [client.client.publish(topic, b"%d" % number, qos=1) for number in numbers]
    for one in waiting:
        one.wait_for_publish(20)
        assert one.is_published()


def consume(client: Any, name: str = "orders") -> None:
    """Take from a queue."""
    client.client.subscribe(f"$queue/{name}", qos=1)


def holds(router: Any, msg_vpn: str, name: str) -> int:
    """How many messages wait in a queue."""
    path = f"/SEMP/v2/monitor/msgVpns/{msg_vpn}/queues/{name}"
    with urllib.request.urlopen(f"http://127.0.0.1:{router.port('http')}{path}", timeout=20) as got:
        return int(json.load(got)["data"]["msgCount"])


@pytest.fixture
def up(start: Any) -> Callable[[str, dict[str, Any]], Any]:
    """`up(name, document)`: a router."""
    return lambda name, document: start(yaml.safe_dump(document), name)


def rewrite(tmp_path: Path, name: str, document: dict[str, Any], router: Any) -> None:
    """Put another configuration into a running router."""
    head = {"router": {"name": name, "data_dir": f"data-{name}"}}
    (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(head | document), encoding="utf-8")
    router.process.send_signal(signal.SIGHUP)
    router.says("reloaded")


def test_both_ways_over_one_connection(up: Any, paho: Any, patiently: Any, free_port: Any) -> None:
    """Each message comes once and in order in each direction, and monitoring shows what is bound to what."""
    port = free_port()
    back = {
        "remote_authentication": {"basic": {"client_username": "edge", "password": "word"}},
        "remote_msg_vpns": [
            {"name": "yellow", "router": "core", "location": "v:core", "queue_binding": "to-edge"}
        ],
    }
    home = {"home": {"subscriptions": ["back/>"]}}
    one = up("edge", edge(port, queues=home, bridges={"from-yellow": back}))
    other = core(remote(at(one)))
    other["msg_vpns"]["yellow"]["queues"]["to-edge"] = {"subscriptions": ["back/>"]}
    two = up("core", other)
    one.bridge("from-yellow", boundToQueue=True, establisher="remote")
    row = two.bridge("from-blue", inboundState="ready-in-sync", boundToQueue=True)
    assert row["remotes"][0]["queueBinding"] == "to-core"
    assert row["remotes"][0]["boundToQueue"] is True
    publisher, consumer = paho(one.port("mqtt"), "p"), paho(two.port("mqtt"), "c")
    consume(consumer)
    publisher_back, consumer_back = paho(two.port("mqtt"), "pb"), paho(one.port("mqtt"), "cb")
    consume(consumer_back, "home")
    publish(publisher, "orders/a", *range(200))
    publish(publisher_back, "back/a", *range(200))
    for each in (consumer, consumer_back):
        each.until_number(199)
        assert each.numbers() == list(range(200))
    patiently(lambda: holds(one, "blue", "to-core") == 0, "the remote queue is empty")
    patiently(lambda: holds(two, "yellow", "to-edge") == 0, "and the other one")
    row = two.bridge("from-blue", guaranteedTakenMsgCount=200)
    assert (row["dataRxMsgCount"], row["deliveredRxMsgCount"], row["rxImbalance"]) == (200, 200, 0)
    row = one.bridge("from-yellow", guaranteedTakenMsgCount=200)
    assert (row["dataTxMsgCount"], row["dataRxMsgCount"]) == (200, 200)
    assert (row["localQueueName"], row["txImbalance"], row["rxImbalance"]) == ("to-core", 0, 0)


@pytest.mark.parametrize("after_restart", [False, True])
def test_what_is_parked(up: Any, paho: Any, patiently: Any, after_restart: bool) -> None:
    """Other lanes pass a full queue; what is set aside comes in the order of its lane, over a restart too."""
    one = up("edge", edge())
    written = core(remote(at(one)), on_reject="park")
    queues = written["msg_vpns"]["yellow"]["queues"]
    queues["orders"] = {"subscriptions": ["orders/a"], "max_spooled_msg_count": 1}
    queues["other"] = {"subscriptions": ["orders/b"]}
    two = up("core", written)
    two.bridge("from-blue", boundToQueue=True)
    publisher = paho(one.port("mqtt"), "p")
    publish(publisher, "orders/a", *range(10))
    publish(publisher, "orders/b", *range(10))
    patiently(lambda: holds(two, "yellow", "other") == 10, "the other lane passes")
    two.bridge("from-blue", inboundState="ready-in-sync", parkedMsgCount=9, rxImbalance=0)
    patiently(lambda: holds(one, "blue", "to-core") == 0, "the remote queue is empty")
    if after_restart:
        assert two.stop() == 0
        two = up("core", written)
        two.bridge("from-blue", boundToQueue=True, parkedMsgCount=9)
    consumer = paho(two.port("mqtt"), "c")
    consume(consumer)
    consumer.until_number(9)
    assert consumer.numbers() == list(range(10))
    two.bridge("from-blue", parkedMsgCount=0)


def test_what_is_skipped(up: Any, paho: Any, patiently: Any) -> None:
    """What is refused goes to the dead message queue of the remote queue, and the rest goes on."""
    dead = {"#DEAD_MSG_QUEUE": {}}
    one = up("edge", edge(queues=dead))
    written = core(remote(at(one)), on_reject="skip")
    orders = {"subscriptions": ["orders/>"], "max_msg_size": 3}
    written["msg_vpns"]["yellow"]["queues"]["orders"] = orders
    two = up("core", written)
    two.bridge("from-blue", boundToQueue=True)
    publish(paho(one.port("mqtt"), "p"), "orders/a", 1, 22222, 3)
    consumer = paho(two.port("mqtt"), "c")
    consume(consumer)
    consumer.until_number(3)
    assert consumer.numbers() == [1, 3]
    row = two.bridge("from-blue", guaranteedRefusedMsgCount=1)
    assert row["discardedRx"] == {"refused": 1}
    patiently(lambda: holds(one, "blue", "to-core") == 0, "the remote queue is empty")


def test_changed_while_it_runs(up: Any, paho: Any, patiently: Any, tmp_path: Path) -> None:
    """Window, queue and policy change over the connection that is there; what was held moves on."""
    second = {"second": {"subscriptions": ["second/>"]}}
    one = up("edge", edge(queues=second))
    full = {"subscriptions": ["orders/a"], "max_spooled_msg_count": 1}
    rest = {"subscriptions": ["orders/b", "second/>"]}

    def written(binding: str = "to-core", window: int = 255, policy: str = "block") -> Any:
        found = core(
            remote(at(one), queue_binding=binding, egress_flow_window_size=window),
            on_reject=policy,
        )
        found["msg_vpns"]["yellow"]["queues"] = {"orders": full, "rest": rest}
        return found

    document = written()
    two = up("core", document)
    listening = document["listeners"]
    for key, protocol in enumerate(("http", "mqtt", "link")):
        listening[key]["bind"] = f"127.0.0.1:{two.port(protocol)}"
    publisher = paho(one.port("mqtt"), "p")
    publish(publisher, "orders/a", *range(3))
    publish(publisher, "orders/b", *range(3))
    row = two.bridge("from-blue", inboundState="stalled", rxInFlightMsgCount=5, rxImbalance=0)
    assert "503 Max message usage exceeded" in row["inboundFailureReason"]
    steps = [
        {"window": 3},
        {"policy": "park"},
        {"binding": "second", "policy": "park"},
        {"policy": "block"},
    ]
    for count, changes in enumerate(steps):
        rewrite(tmp_path, "core", {**written(**changes), "listeners": listening}, two)
        patiently(lambda c=count: len(two.told("reloaded")) > c, "it is reloaded")
        if count == 0:
            two.bridge("from-blue", inboundState="stalled", rxInFlightMsgCount=3, rxImbalance=0)
        elif count == 1:
            two.bridge("from-blue", inboundState="ready-in-sync", parkedMsgCount=2)
            patiently(lambda: holds(two, "yellow", "rest") == 3, "the other lane passes")
        elif count == 2:
            publish(publisher, "second/a", 7)
            patiently(lambda: holds(two, "yellow", "rest") == 4, "the second queue is bound")
    assert two.bridge("from-blue", boundToQueue=True)["parkedMsgCount"] == 2
    consumer = paho(two.port("mqtt"), "c")
    consume(consumer)
    consumer.until_number(2)
    assert consumer.numbers() == [0, 1, 2]
    two.bridge("from-blue", parkedMsgCount=0, rxImbalance=0)
    assert len(two.told("bridge from-blue", ": up")) == 1


def test_lost_connections(up: Any, paho: Any, patiently: Any) -> None:
    """However the link breaks, everything comes once and in order, and the balance holds."""
    with FaultyNetwork() as network:
        one = up("edge", edge())
        link = network.link()
        link.target = ("127.0.0.1", one.port("link"))
        heartbeat = {"retry_delay": 0, "heartbeat_interval": 200}
        two = up("core", core(remote(link.address), remote_connection=heartbeat))
        two.bridge("from-blue", boundToQueue=True)
        publisher, consumer = paho(one.port("mqtt"), "p"), paho(two.port("mqtt"), "c")
        consume(consumer)
        number = 0
        for breaks in (link.cut, link.close, link.orphan, link.unreachable):
            publish(publisher, "orders/a", *range(number, number + 25))
            breaks()
            publish(publisher, "orders/a", *range(number + 25, number + 50))
            link.heal()
            number += 50
            consumer.until_number(number - 1)
        assert consumer.numbers() == list(range(number))
        patiently(lambda: holds(one, "blue", "to-core") == 0, "the remote queue is empty")
        row = two.bridge("from-blue", inboundState="ready-in-sync", guaranteedTakenMsgCount=200)
        assert row["rxImbalance"] == 0


def test_another_remote_and_back(up: Any, paho: Any, free_port: Any, patiently: Any) -> None:
    """The flow is taken to another remote when the first is gone, and back; nothing is lost or comes twice."""
    ports = (free_port(), free_port())
    first, second = up("first", edge(ports[0])), up("second", edge(ports[1]))
    places = [
        remote(f"127.0.0.1:{port}", name, connect_order=order)
        for order, (port, name) in enumerate(zip(ports, ("first", "second"), strict=True), 1)
    ]
    two = up("core", core(*places))
    two.bridge("from-blue", boundToQueue=True, remoteRouterName="first")
    consumer = paho(two.port("mqtt"), "c")
    consume(consumer)
    publish(paho(first.port("mqtt"), "p"), "orders/a", *range(10))
    consumer.until_number(9)
    first.kill()
    elsewhere = paho(second.port("mqtt"), "p2")
    publish(elsewhere, "orders/a", *range(10, 20))
    two.bridge("from-blue", boundToQueue=True, remoteRouterName="second")
    consumer.until_number(19)
    first = up("first", edge(ports[0]))
    publish(elsewhere, "orders/a", *range(20, 30))
    two.bridge("from-blue", boundToQueue=True, remoteRouterName="first")
    patiently(lambda: holds(second, "blue", "to-core") == 0, "nothing is left half done there")
    publish(paho(first.port("mqtt"), "p3"), "orders/a", *range(30, 40))
    consumer.until_number(39)
    assert consumer.numbers() == list(range(40))


def test_two_message_vpns_of_one_router(up: Any, paho: Any, patiently: Any, free_port: Any) -> None:
    """A bridge between message VPNs of the same router does the same."""
    port = free_port()
    document = core(remote(f"127.0.0.1:{port}", "both"))
    document["listeners"] = [*listeners("blue", port), *listeners("yellow")[1:2]]
    document["msg_vpns"]["blue"] = edge()["msg_vpns"]["blue"]
    both = up("both", document)
    both.bridge("from-blue", boundToQueue=True)
    consumer = paho(both.port("mqtt", 1), "c")
    consume(consumer)
    publish(paho(both.port("mqtt"), "p"), "orders/a", *range(50))
    consumer.until_number(49)
    assert consumer.numbers() == list(range(50))
    patiently(lambda: holds(both, "blue", "to-core") == 0, "the queue is empty")
