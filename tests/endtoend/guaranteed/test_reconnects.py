"""QoS 2 over a bridge whose clients and link are cut again and again: exactly once, and no storm of packets."""

import collections
import random
from contextlib import ExitStack
from typing import Any, Final, final

import pytest

from vpnrouter.testing.history import History, check, describe
from vpnrouter.testing.mqtt_clients import Consumer, MqttClient, Producer
from vpnrouter.wire.mqtt.packets import Ack, Connack, Connect, Packet, Publish
from vpnrouter.wire.mqtt.reason import PUBREL

MESSAGES: Final = 600
WINDOW: Final = 8
"""The consumer's receive maximum."""


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
    link = kit.network.link()
    one = kit.up("edge", "blue", kit.vpn(queues={"to-core": kit.queue("orders/>")}), link)
    bridge = kit.bridge(link.address, "blue", "to-core", remote={"egress_flow_window_size": 32})
    two = kit.up("core", "yellow", kit.vpn(bridges={"from-blue": bridge}))
    two.bridge("from-blue", boundToQueue=True)
    history = History()
    consumer = Consumer(
        "c", history, draws, endpoint="c", topic_filter="orders/#", qos=2, receive_maximum=WINDOW
    )
    counting = Counting(consumer)
    producer = Producer("p", history, draws, {"orders/a": ("c",)}, qos=2, limit=MESSAGES)
    near, far = one.port("mqtt"), two.port("mqtt")
    with ExitStack() as stack:
        clients = [MqttClient(counting, lambda: far, history, random.Random(seed), cut_chance=0.02)]
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
        kit.holds(one, "blue", "to-core", 0)
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
        publisher = kit.publisher(one, "p")
        publisher.publish("a", *range(100))
        assert publisher.answered(*range(100)) == [0] * 100
        kit.until(lambda: consumer.deliveries == WINDOW, "a window")
    for times in range(2, 11):
        with MqttClient(counting, lambda: port, history, draws):
            kit.until(lambda t=times: consumer.deliveries >= t * WINDOW, f"connection {times}")
    assert consumer.deliveries == 10 * WINDOW
    assert len(consumer.delivered) == WINDOW
    assert (counting.connections, counting.repeated) == (10, 0)
    assert counting.worst == {"PUBLISH again": WINDOW}
