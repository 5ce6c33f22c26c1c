"""The dead message queue: each reason, the topic as it was published, once for each message, and no loop."""

import collections
import random
from typing import Any, Final, final

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
    "to-core": ("across/orders", "rejected", {}),
}
"""By queue: the topic of its messages, why they end as dead letters, and the terms of the queue."""


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
    client = kit.client(one, f"gone-{name}", manual_ack=True)
    client.client.subscribe(f"$queue/{name}", 1)
    client.next()
    client.next()
    # The socket goes without DISCONNECT, as if the consumer had died.
    client.client.socket().close()
    kit.until(
        lambda: kit.row(one, "blue", name)["txUnackedMsgCount"] == 0, f"{name} has them again"
    )


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
        kit.holds(one, "blue", name, 0)


def test_each_reason_once(kit: Any, messages: Any, properties: Any) -> None:
    """Rejected here or by the far side of a bridge, expired, tried too often: each is there once, and says so."""
    written = {
        name: kit.queue(topic, dead_msg_queue="dead", **terms)
        for name, (topic, _, terms) in QUEUES.items()
    }
    # What is thrown out of the dead message queue would go to a queue that gave it up before.
    written["dead"] = kit.queue(dead_msg_queue="refused")
    link = kit.network.link()
    one = kit.up("edge", "blue", kit.vpn(queues=written), link)
    two = kit.up(
        "core",
        "yellow",
        kit.vpn(
            queues={"orders": kit.queue("across/>", max_msg_size=1)},
            bridges={"from-blue": kit.bridge(link.address, "blue", "to-core", on_reject="skip")},
        ),
    )
    two.bridge("from-blue", boundToQueue=True)
    publish(kit, one, properties)
    reject(kit, one, "refused")
    for name, times in (("tried", 2), ("once", 1)):
        for _ in range(times):
            lose_interest(kit, one, name)
    kit.holds(one, "blue", "dead", 2 * len(QUEUES))
    for name in QUEUES:
        row = kit.row(one, "blue", name)
        assert (row["msgCount"], row["movedMsgCount"], row["discarded"]) == (0, 2, {})
        assert row["imbalance"] == 0

    reader = kit.client(one, "reader")
    found = messages(reader)
    reader.client.subscribe("$queue/dead", 1)
    kit.until(lambda: len(found) == 2 * len(QUEUES), "all dead letters")
    kit.holds(one, "blue", "dead", 0)
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
    publisher = kit.publisher(one, "p")
    publisher.publish("orders/a", 1, 2)
    assert publisher.answered(1, 2) == [0, 0]
    for name in ("first", "second"):
        reject(kit, one, name)
    rows = [kit.row(one, "blue", name) for name in ("first", "second")]
    assert [row["msgCount"] for row in rows] == [0, 0]
    assert [row["spooledMsgCount"] for row in rows] == [2, 2]
    assert [row["discarded"] for row in rows] == [{}, {"rejected": 2}]
    assert [row["imbalance"] for row in rows] == [0, 0]
