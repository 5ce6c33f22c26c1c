"""Messages that are given up: the dead message queue, and what cannot pass a guaranteed bridge while all others do."""

import collections
import random
from typing import Any, Final, final

import pytest

from vpnrouter.testing.history import History
from vpnrouter.testing.mqtt_clients import MqttClient
from vpnrouter.wire.mqtt.packets import (
    Ack,
    Connack,
    Connect,
    Packet,
    Publish,
    Subscribe,
    SubscriptionRequest,
)
from vpnrouter.wire.mqtt.reason import PUBACK

PROPERTY_REASON: Final = "dead-letter-reason"
PROPERTY_QUEUE: Final = "dead-letter-queue"
REJECTED: Final = 0x83
"""PUBACK of a consumer that does not want a message: implementation specific error."""

QUEUES: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    "refused": ("orders/refused", "rejected", {}),
    "old": ("orders/old", "max-ttl-expired", {"respect_ttl_enabled": True}),
    "tried": ("orders/tried", "max-redelivery-exceeded", {"max_redelivery_count": 1}),
    "once": (
        "orders/once",
        "max-redelivery-exceeded",
        {"redelivery": {"enabled": False}},
    ),
    "to-core": ("across/orders", "400 Document Is Too Large", {}),
}
"""By queue: the topic of its messages, why they end as dead letters, and the settings of the queue."""

QUEUE_BYTES: Final = 8_000
VPN_BYTES: Final = 10_000
LEVELS: Final = 120
"""That the bridge puts before each topic; 128 is the most."""

POISON: Final[dict[str, tuple[str, int]]] = {
    "beyond the queue": ("orders/poison", QUEUE_BYTES + 1),
    "beyond the message VPN": ("orders/poison", VPN_BYTES + 1),
    "far beyond it": ("orders/poison", 40 * VPN_BYTES),
    "too deep a topic": ("orders/" + "/".join("poisoned"), 10),
}
"""Topic and size of the payload."""


def told(message: Any) -> dict[str, list[str]]:
    """The user properties of a message, each with all its values."""
    found: dict[str, list[str]] = collections.defaultdict(list)
    for name, value in message.properties.UserProperty:
        found[name].append(value)
    return found


def publish(kit: Any, one: Any, properties: Any) -> None:
    """Two messages for each queue; those of `old` live for a second."""
    publisher = kit.publisher(one, "p")
    number = 0
    for name, (topic, _, _) in QUEUES.items():
        life = {"MessageExpiryInterval": 1} if name == "old" else {}
        publisher.publish(
            topic,
            number,
            number + 1,
            size=3,
            properties=properties(UserProperty=("colour", "red"), **life),
        )
        number += 2
    assert publisher.answered(*range(number)) == [0] * number


def lose_interest(kit: Any, one: Any, name: str) -> None:
    """A consumer that takes the messages of a queue and is gone without an answer."""
    client = kit.consumer(one, name, f"gone-{name}", manual_ack=True)
    client.next()
    client.next()
    # The socket goes without DISCONNECT, as if the consumer had died.
    client.client.socket().close()
    kit.until(lambda: one.queue("blue", name)["txUnackedMsgCount"] == 0, f"{name} has them again")


@final
class Refusing:
    """A session that takes from a queue and refuses whatever it gets."""

    def __init__(self, name: str) -> None:
        self.name = f"no-{name}"
        self._filter = f"$queue/{name}"

    def connect(self) -> Connect:
        return Connect(self.name)

    def opened(self, _answer: Connack) -> list[Packet]:
        return [Subscribe(1, [SubscriptionRequest(self._filter, 1)])]

    def received(self, packet: Packet) -> list[Packet]:
        return [Ack(PUBACK, packet.packet_id, REJECTED)] if isinstance(packet, Publish) else []

    def due(self) -> list[Packet]:
        return []

    def closed(self) -> None:
        """See Session.closed."""


def reject(kit: Any, one: Any, name: str) -> None:
    """A consumer that refuses all messages of a queue."""
    port = one.port("mqtt")
    with MqttClient(Refusing(name), lambda: port, History(), random.Random(0)):
        one.holds("blue", name, 0)


def test_each_reason_once(kit: Any, messages: Any, properties: Any) -> None:
    """Rejected here or by the far side of a bridge, expired, tried too often: each is there once, and says so."""
    written = {
        name: kit.queue(topic, dead_msg_queue="dead", **terms)
        for name, (topic, _, terms) in QUEUES.items()
    }
    # What is thrown out of the dead message queue would go to a queue that gave it up before.
    written["dead"] = kit.queue(dead_msg_queue="refused")
    link = kit.network.link()
    one = kit.edge(link, queues=written)
    small = kit.queue("across/>", max_msg_size=1)
    two = kit.core(link, {"on_reject": "skip"}, queues={"orders": small})
    two.bridge("from-blue", boundToQueue=True)
    publish(kit, one, properties)
    reject(kit, one, "refused")
    for name, times in (("tried", 2), ("once", 1)):
        for _ in range(times):
            lose_interest(kit, one, name)
    one.holds("blue", "dead", 2 * len(QUEUES))
    for name in QUEUES:
        row = one.queue("blue", name)
        assert (row["msgCount"], row["movedMsgCount"], row["discarded"]) == (0, 2, {})
        assert row["imbalance"] == 0

    row = two.bridge("from-blue", guaranteedRefusedMsgCount=2)
    assert (row["discardedRx"], row["rxImbalance"]) == ({"refused": 2}, 0)
    reader = kit.client(one, "reader")
    found = messages(reader)
    reader.client.subscribe("$queue/dead", 1)
    kit.until(lambda: len(found) == 2 * len(QUEUES), "all dead letters")
    one.holds("blue", "dead", 0)
    reader.client.unsubscribe("$queue/dead")
    assert sorted(int(message.payload) for message in found) == list(range(2 * len(QUEUES)))
    for message in found:
        queue = list(QUEUES)[int(message.payload) // 2]
        topic, reason, _ = QUEUES[queue]
        assert message.topic == topic
        assert told(message)[PROPERTY_REASON] == [reason]
        assert told(message)[PROPERTY_QUEUE] == [queue]
        assert told(message)["colour"] == ["red"]


def test_no_loop(kit: Any) -> None:
    """Two queues that are each other's dead message queue: what both give up is gone, and counted."""
    written = {
        "first": kit.queue("orders/>", dead_msg_queue="second"),
        "second": kit.queue(dead_msg_queue="first"),
    }
    one = kit.up("edge", "blue", kit.vpn(queues=written))
    kit.publisher(one, "p").accepted("orders/a", 1, 2)
    for name in ("first", "second"):
        reject(kit, one, name)
    rows = [one.queue("blue", name) for name in ("first", "second")]
    assert [row["msgCount"] for row in rows] == [0, 0]
    assert [row["spooledMsgCount"] for row in rows] == [2, 2]
    assert [row["discarded"] for row in rows] == [{}, {"rejected": 2}]
    assert [row["imbalance"] for row in rows] == [0, 0]


def test_messages_that_cannot_pass(kit: Any, messages: Any) -> None:
    """Each is a dead letter at the sender, with its topic; the link stays up, and the rest comes in order."""
    link = kit.network.link()
    one = kit.edge(
        link, queues={"to-core": kit.queue("orders/>", dead_msg_queue="dead"), "dead": {}}
    )
    bridge = {
        "on_reject": "skip",
        "topic_mapping": [{"add_prefix": "/".join("x" * LEVELS)}],
        # A window of two: a message that stayed in it would halve the bridge, the second one would end it.
        "remote": {"egress_flow_window_size": 2},
    }
    small = {"orders": kit.queue(">", max_msg_size=QUEUE_BYTES)}
    two = kit.core(link, bridge, queues=small, max_msg_size=VPN_BYTES)
    failures = two.bridge("from-blue", boundToQueue=True)["failureCount"]
    publisher = kit.publisher(one, "p")
    number = 0
    good: list[int] = []
    topics: dict[int, str] = {}
    for _ in range(5):
        for topic, size in POISON.values():
            publisher.publish("orders/a", number, number + 1, size=QUEUE_BYTES // 2)
            good += [number, number + 1]
            publisher.publish(topic, number + 2, size=size)
            topics[number + 2] = topic
            number += 3
    publisher.publish("orders/a", number)
    assert publisher.answered(*range(number + 1)) == [0] * (number + 1)

    consumer = kit.consumer(two, "orders")
    consumer.until_number(number)
    assert consumer.numbers() == [*good, number]
    one.holds("blue", "to-core", 0)
    row = two.bridge("from-blue", inboundState="ready-in-sync", failureCount=failures)
    assert row["rxImbalance"] == 0
    assert not two.told("DOWN") + one.told("DOWN")

    reader = kit.client(one, "reader")
    found = messages(reader)
    reader.client.subscribe("$queue/dead", 1)
    kit.until(lambda: len(found) >= len(topics), f"{len(topics)} dead letters")
    assert {int(message.payload): message.topic for message in found} == topics
    one.holds("blue", "dead", 0)
    assert one.queue("blue", "dead")["spooledMsgCount"] == len(topics)


@pytest.mark.parametrize("on_reject", ["block", "park", "skip"])
def test_a_message_for_the_bridge_s_own_queue(kit: Any, on_reject: str) -> None:
    """`$queue/NAME` of the remote names nothing here: discarded and counted, and what is behind it comes."""
    one, two, _ = kit.both({"on_reject": on_reject}, queues={"orders": kit.queue(">")})
    publisher = kit.publisher(one, "p")
    publisher.publish("$queue/to-core", 0)
    publisher.publish("orders/a", 1)
    publisher.publish("$queue/to-core", 2, retain=True)
    publisher.publish("orders/a", 3)
    assert publisher.answered(0, 1, 2, 3) == [0] * 4
    consumer = kit.consumer(two, "orders")
    consumer.until_number(3)
    assert consumer.numbers() == [1, 3]
    one.holds("blue", "to-core", 0)
    row = two.bridge("from-blue", inboundState="ready-in-sync", guaranteedTakenMsgCount=4)
    assert row["rxImbalance"] == 0
    assert row["discardedRx"] == {"no-subscription-match": 2}
    assert row["guaranteedRefusedMsgCount"] == 0
