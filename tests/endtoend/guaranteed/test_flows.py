"""Acknowledged messages over bridges that work, break, move and change: each arrives once and in order."""

import collections
import random
import signal
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, final

import pytest
import yaml

from vpnrouter.testing.history import History, check, describe
from vpnrouter.testing.mqtt_clients import Consumer, MqttClient, Producer
from vpnrouter.wire.mqtt.packets import Ack, Connack, Connect, Packet, Publish
from vpnrouter.wire.mqtt.reason import PUBREL

DRAINED_S: Final = 15.0
"""Bound from the moment that the link can be used again until all is over; some two seconds are usual."""

MESSAGES: Final = 600
WINDOW: Final = 8
"""The consumer's receive maximum."""


@pytest.mark.slow
def test_over_a_healthy_bridge(kit: Any) -> None:
    """20,000 acknowledged in one burst are 20,000 at the other side, each once and in order."""
    one, two, _ = kit.both()
    consumer = kit.consumer(two, "orders")
    numbers = range(20_000)
    kit.publisher(one, "p").accepted("orders/a", *numbers, size=64)
    consumer.until_number(numbers[-1])
    assert consumer.numbers() == list(numbers)
    one.holds("blue", "to-core", 0)
    row = two.bridge("from-blue", guaranteedTakenMsgCount=len(numbers))
    assert (row["guaranteedDuplicateMsgCount"], row["rxImbalance"]) == (0, 0)


@pytest.mark.parametrize("how", ["killed", "silent"])
def test_while_the_remote_is_away(kit: Any, how: str) -> None:
    """3,000 acknowledged while the other router is dead, or behind a link that swallows all without a word.

    The link is silent in the midst of traffic: what was under way on it is lost there, and in the queue here.
    """
    one, two, link = kit.both()
    publisher = kit.publisher(one, "p")
    before, after = range(500), range(500, 3_500)
    publisher.publish("orders/a", *before)
    if how == "killed":
        assert publisher.answered(*before) == [0] * len(before)
        two.kill()
    else:
        link.freeze()
    publisher.accepted("orders/a", *after)
    assert publisher.answered(*before) == [0] * len(before)
    assert one.queue("blue", "to-core")["msgCount"] >= len(after)

    if how == "silent":
        # Both ends find out by themselves; only then do the connections really end.
        two.says("408 Heartbeat Timeout")
        one.says("408 Heartbeat Timeout")
        link.cut()
        link.heal()
    began_s = time.monotonic()
    if how == "killed":
        two = kit.core(link)
    # Nobody publishes and nobody consumes: it drains because it can.
    one.holds("blue", "to-core", 0)
    two.holds("yellow", "orders", 3_500)
    assert time.monotonic() - began_s < DRAINED_S
    consumer = kit.consumer(two, "orders")
    consumer.until_number(3_499)
    assert consumer.numbers() == list(range(3_500))
    assert two.bridge("from-blue", inboundState="ready-in-sync")["rxImbalance"] == 0


def test_lost_connections(kit: Any) -> None:
    """However the link breaks, everything comes once and in order, and the balance holds."""
    one, two, link = kit.both()
    publisher, consumer = kit.publisher(one, "p"), kit.consumer(two, "orders")
    number = 0
    for breaks in (link.cut, link.close, link.orphan, link.unreachable):
        publisher.accepted("orders/a", *range(number, number + 25))
        breaks()
        publisher.accepted("orders/a", *range(number + 25, number + 50))
        link.heal()
        number += 50
        consumer.until_number(number - 1)
    assert consumer.numbers() == list(range(number))
    one.holds("blue", "to-core", 0)
    row = two.bridge("from-blue", inboundState="ready-in-sync", guaranteedTakenMsgCount=200)
    assert row["rxImbalance"] == 0


def test_both_ways_over_one_connection(kit: Any) -> None:
    """Each message comes once and in order in each direction, and monitoring shows what is bound to what."""
    link = kit.network.link()
    # Who comes in under the name of a bridge's remote has to prove that it knows the password.
    users = {"client_usernames": {"bridge": {"password": "word"}}}
    login = {"remote_authentication": {"basic": {"client_username": "bridge", "password": "word"}}}
    back = kit.bridge("v:core", "yellow", "to-edge", remote={"router": "core"}, **login)
    home = {"home": kit.queue("back/>")}
    one = kit.edge(link, queues=home, bridges={"from-yellow": back}, **users)
    there = {"remote": {"router": "edge"}, **login}
    two = kit.core(link, there, queues={"to-edge": kit.queue("back/>")}, **users)
    one.bridge("from-yellow", boundToQueue=True, establisher="remote")
    row = two.bridge("from-blue", inboundState="ready-in-sync", boundToQueue=True)
    assert row["remotes"][0]["queueBinding"] == "to-core"
    assert row["remotes"][0]["boundToQueue"] is True
    consumers = kit.consumer(two, "orders"), kit.consumer(one, "home")
    kit.publisher(one, "p").accepted("orders/a", *range(200))
    kit.publisher(two, "p").accepted("back/a", *range(200))
    for each in consumers:
        each.until_number(199)
        assert each.numbers() == list(range(200))
    one.holds("blue", "to-core", 0)
    two.holds("yellow", "to-edge", 0)
    row = two.bridge("from-blue", guaranteedTakenMsgCount=200)
    assert (row["dataRxMsgCount"], row["deliveredRxMsgCount"], row["rxImbalance"]) == (200, 200, 0)
    row = one.bridge("from-yellow", guaranteedTakenMsgCount=200)
    assert (row["dataTxMsgCount"], row["dataRxMsgCount"]) == (200, 200)
    assert (row["localQueueName"], row["txImbalance"], row["rxImbalance"]) == ("to-core", 0, 0)


def test_two_message_vpns_of_one_router(kit: Any) -> None:
    """A bridge between message VPNs of the same router does the same."""
    bind = "127.0.0.1:0"
    from_blue = kit.bridge("v:both", "blue", "to-core")
    document = {
        "listeners": [
            {"protocol": "mqtt", "bind": bind, "msg_vpn": "blue"},
            {"protocol": "mqtt", "bind": bind, "msg_vpn": "yellow"},
            {"protocol": "http", "bind": bind},
            {"protocol": "link", "bind": bind},
        ],
        "msg_vpns": {
            "blue": kit.vpn(queues={"to-core": kit.queue("orders/>")}),
            "yellow": kit.vpn(
                queues={"orders": kit.queue("orders/>")}, bridges={"from-blue": from_blue}
            ),
        },
    }
    both = kit.start(yaml.safe_dump(document), "both")
    both.bridge("from-blue", boundToQueue=True)
    kit.publisher(both, "p").accepted("orders/a", *range(50))
    both.holds("yellow", "orders", 50)
    both.holds("blue", "to-core", 0)


def test_another_remote_and_back(kit: Any) -> None:
    """The flow is taken to another remote when the first is gone, and back; nothing is lost or comes twice."""
    names = ("first", "second")
    links = {name: kit.network.link() for name in names}
    source = kit.vpn(queues={"to-core": kit.queue("orders/>")})
    first, second = (kit.up(name, "blue", source, links[name]) for name in names)
    places = [
        {
            "name": "blue",
            "router": name,
            "location": links[name].address,
            "queue_binding": "to-core",
            "connect_order": order,
        }
        for order, name in enumerate(names, 1)
    ]
    connection = {"retry_delay": 0, "failback_delay": 1}
    two = kit.core(links["first"], {"remote_msg_vpns": places, "remote_connection": connection})
    two.bridge("from-blue", boundToQueue=True, remoteRouterName="first")
    consumer = kit.consumer(two, "orders")
    kit.publisher(first, "p").accepted("orders/a", *range(10))
    consumer.until_number(9)
    first.kill()
    elsewhere = kit.publisher(second, "p2")
    elsewhere.accepted("orders/a", *range(10, 20))
    two.bridge("from-blue", boundToQueue=True, remoteRouterName="second")
    consumer.until_number(19)
    first = kit.up("first", "blue", source, links["first"])
    elsewhere.accepted("orders/a", *range(20, 30))
    two.bridge("from-blue", boundToQueue=True, remoteRouterName="first")
    second.holds("blue", "to-core", 0)
    kit.publisher(first, "p3").accepted("orders/a", *range(30, 40))
    consumer.until_number(39)
    assert consumer.numbers() == list(range(40))


def test_changed_while_it_runs(kit: Any, tmp_path: Path) -> None:
    """Window, queue and policy change over the connection that is there; what was held moves on."""
    link = kit.network.link()
    one = kit.edge(link, queues={"second": kit.queue("second/>")})
    queues = {
        "orders": kit.queue("orders/a", max_spooled_msg_count=1),
        "rest": kit.queue("orders/b", "second/>"),
    }
    # A heartbeat that a busy machine does not miss.
    calm = {"remote_connection": {"retry_delay": 0}}
    two = kit.core(link, calm, queues=queues)
    publisher = kit.publisher(one, "p")
    publisher.accepted("orders/a", *range(3))
    publisher.accepted("orders/b", *range(3, 6))
    row = two.bridge("from-blue", inboundState="stalled", rxInFlightMsgCount=5, rxImbalance=0)
    assert "503 Max message usage exceeded" in row["inboundFailureReason"]
    path = tmp_path / "core.yaml"
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    for listener in document["listeners"]:
        listener["bind"] = f"127.0.0.1:{two.port(listener['protocol'])}"
    bridges = document["msg_vpns"]["yellow"]["bridges"]

    def change(binding: str = "to-core", policy: str = "block", **remote: Any) -> None:
        bridges["from-blue"] = kit.bridge(
            link.address, "blue", binding, on_reject=policy, remote=remote, **calm
        )
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        before = len(two.told("reloaded"))
        two.process.send_signal(signal.SIGHUP)
        kit.until(lambda: len(two.told("reloaded")) > before, "it is reloaded")

    change(egress_flow_window_size=3)
    two.bridge("from-blue", inboundState="stalled", rxInFlightMsgCount=3, rxImbalance=0)
    change(policy="park")
    two.bridge("from-blue", inboundState="ready-in-sync", parkedMsgCount=2)
    two.holds("yellow", "rest", 3)
    change("second", "park")
    publisher.accepted("second/a", 7)
    two.holds("yellow", "rest", 4)
    change()
    assert two.bridge("from-blue", boundToQueue=True)["parkedMsgCount"] == 2
    consumer = kit.consumer(two, "orders")
    consumer.until_number(2)
    assert consumer.numbers() == [0, 1, 2]
    two.bridge("from-blue", parkedMsgCount=0, rxImbalance=0)
    assert len(two.told("bridge from-blue", ": up")) == 1


@final
class Counting:
    """A consumer's session; what comes over each of its connections is counted."""

    def __init__(self, session: Consumer) -> None:
        self.name = session.name
        self.connections = 0
        self.worst: collections.Counter[str] = collections.Counter()
        """The most of a kind that came over one connection."""
        self.repeated = 0
        """Packets that came twice over one connection."""
        self._session = session
        self._here: collections.Counter[str] = collections.Counter()
        self._seen: set[tuple[str, int]] = set()
        self._fresh: set[int] = set()

    def connect(self) -> Connect:
        return self._session.connect()

    def opened(self, answer: Connack) -> list[Packet]:
        self.connections += 1
        self._here.clear()
        self._seen.clear()
        self._fresh.clear()
        return self._session.opened(answer)

    def received(self, packet: Packet) -> list[Packet]:
        if isinstance(packet, Publish) and packet.dup:
            self._count("PUBLISH again", packet.packet_id)
        elif isinstance(packet, Publish):
            self._fresh.add(packet.packet_id)
        elif isinstance(packet, Ack) and packet.packet_type == PUBREL:
            if packet.packet_id in self._fresh:
                self._fresh.discard(packet.packet_id)
            else:
                # Of an exchange that began over an earlier connection.
                self._count("PUBREL again", packet.packet_id)
        return self._session.received(packet)

    def _count(self, kind: str, packet_id: int) -> None:
        self._here[kind] += 1
        self.worst[kind] = max(self.worst[kind], self._here[kind])
        self.repeated += (kind, packet_id) in self._seen
        self._seen.add((kind, packet_id))

    def due(self) -> list[Packet]:
        return self._session.due()

    def closed(self) -> None:
        self._session.closed()


def test_qos_2_without_a_storm(kit: Any) -> None:
    """Each message once; a reconnect repeats at most a window of packets, each once, and ends every exchange."""
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    draws = random.Random(seed)
    one, two, link = kit.both({"remote": {"egress_flow_window_size": 32}})
    history = History()
    consumer = Consumer(
        "c", history, draws, endpoint="c", topic_filter="orders/#", qos=2, receive_maximum=WINDOW
    )
    counting = Counting(consumer)
    producer = Producer("p", history, draws, {"orders/a": ("c",)}, qos=2, limit=MESSAGES)
    near, far = one.port("mqtt"), two.port("mqtt")
    with ExitStack() as stack:
        clients = [MqttClient(counting, lambda: far, history, random.Random(seed), cut_chance=0.05)]
        stack.enter_context(clients[0])
        kit.until(lambda: consumer.ready, "the consumer subscribes")
        clients.append(
            MqttClient(producer, lambda: near, history, random.Random(seed + 1), cut_chance=0.02)
        )
        stack.enter_context(clients[1])
        cuts = 0
        while len(consumer.delivered) < MESSAGES:
            wanted = min(MESSAGES, len(consumer.delivered) + MESSAGES // 5)
            link.cut()
            cuts += 1
            kit.until(lambda w=wanted: len(consumer.delivered) >= w, f"{wanted} messages")
        kit.until(lambda: producer.done and consumer.idle, "every exchange is over")
        one.holds("blue", "to-core", 0)
    found = check(history)
    assert not found, f"seed {seed}: {describe(found, history)}"
    assert consumer.deliveries == MESSAGES
    assert counting.connections > 3, "the consumer's connection was cut"
    assert counting.worst["PUBLISH again"] <= WINDOW
    assert counting.worst["PUBREL again"] <= WINDOW
    assert counting.repeated == 0
    assert (consumer.sessions_lost, producer.sessions_lost) == (0, 0)
    # What the bridge repeats is what was under way when it was cut.
    row = two.bridge("from-blue", inboundState="ready-in-sync")
    assert row["guaranteedTakenMsgCount"] == MESSAGES
    assert row["guaranteedDuplicateMsgCount"] <= 32 * cuts
    assert row["rxImbalance"] == 0


@pytest.mark.parametrize("qos", [1, 2])
def test_a_consumer_that_never_answers(kit: Any, qos: int) -> None:
    """Ten connections without one answer get the same window of messages each time, and nothing more."""
    one = kit.up("edge", "blue", kit.vpn())
    history = History()
    draws = random.Random(0)
    consumer = Consumer(
        "c", history, draws, endpoint="c", topic_filter="a", qos=qos, receive_maximum=WINDOW
    )
    counting = Counting(consumer)
    consumer.paused = True
    port = one.port("mqtt")
    with MqttClient(counting, lambda: port, history, draws):
        kit.until(lambda: consumer.ready, "it subscribes")
        kit.publisher(one, "p").accepted("a", *range(100))
        kit.until(lambda: consumer.deliveries == WINDOW, "a window")
    for times in range(2, 11):
        with MqttClient(counting, lambda: port, history, draws):
            kit.until(lambda t=times: consumer.deliveries >= t * WINDOW, f"connection {times}")
    assert consumer.deliveries == 10 * WINDOW
    assert len(consumer.delivered) == WINDOW
    assert (counting.connections, counting.repeated) == (10, 0)
    assert counting.worst == {"PUBLISH again": WINDOW}
