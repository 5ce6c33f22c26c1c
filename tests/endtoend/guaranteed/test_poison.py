"""Messages that cannot pass a guaranteed bridge: each is settled in one of its ways, and all others pass."""

from typing import Any, Final

import pytest

ACCEPTED: Final = 0x00
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


def test_messages_that_cannot_pass(kit: Any, messages: Any) -> None:
    """Each is a dead letter at the sender, with its topic; the link stays up, and the rest comes in order."""
    link = kit.network.link()
    written = {"to-core": kit.queue("orders/>", dead_msg_queue="dead"), "dead": {}}
    one = kit.up("edge", "blue", kit.vpn(queues=written), link)
    bridge = kit.bridge(
        link.address,
        "blue",
        "to-core",
        on_reject="skip",
        topic_mapping=[{"add_prefix": "/".join("x" * LEVELS)}],
        # A window of two: a message that stayed in it would halve the bridge, the second one would end it.
        remote={"egress_flow_window_size": 2},
    )
    yellow = kit.vpn(
        max_msg_size=VPN_BYTES,
        queues={"orders": kit.queue(">", max_msg_size=QUEUE_BYTES)},
        bridges={"from-blue": bridge},
    )
    two = kit.up("core", "yellow", yellow)
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
    assert publisher.answered(*range(number + 1)) == [ACCEPTED] * (number + 1)

    consumer = kit.client(two, "c")
    consumer.client.subscribe("$queue/orders", 1)
    consumer.until_number(number)
    assert consumer.numbers() == [*good, number]
    kit.holds(one, "blue", "to-core", 0)
    row = two.bridge("from-blue", inboundState="ready-in-sync", failureCount=failures)
    assert row["rxImbalance"] == 0
    assert not two.told("DOWN") + one.told("DOWN")

    reader = kit.client(one, "reader")
    found = messages(reader)
    reader.client.subscribe("$queue/dead", 1)
    kit.until(lambda: len(found) >= len(topics), f"{len(topics)} dead letters")
    assert {int(message.payload): message.topic for message in found} == topics
    kit.holds(one, "blue", "dead", 0)
    assert kit.row(one, "blue", "dead")["spooledMsgCount"] == len(topics)


@pytest.mark.parametrize("on_reject", ["block", "park", "skip"])
def test_a_message_for_the_bridge_s_own_queue(kit: Any, on_reject: str) -> None:
    """`$queue/NAME` of the remote names nothing here: discarded and counted, and what is behind it comes."""
    written = {"to-core": kit.queue("orders/>")}
    link = kit.network.link()
    one = kit.up("edge", "blue", kit.vpn(queues=written), link)
    bridge = kit.bridge(link.address, "blue", "to-core", on_reject=on_reject)
    yellow = kit.vpn(queues={"orders": kit.queue(">")}, bridges={"from-blue": bridge})
    two = kit.up("core", "yellow", yellow)
    publisher = kit.publisher(one, "p")
    publisher.publish("$queue/to-core", 0)
    publisher.publish("orders/a", 1)
    publisher.publish("$queue/to-core", 2, retain=True)
    publisher.publish("orders/a", 3)
    assert publisher.answered(0, 1, 2, 3) == [ACCEPTED] * 4
    consumer = kit.client(two, "c")
    consumer.client.subscribe("$queue/orders", 1)
    consumer.until_number(3)
    assert consumer.numbers() == [1, 3]
    kit.holds(one, "blue", "to-core", 0)
    row = two.bridge("from-blue", inboundState="ready-in-sync", guaranteedTakenMsgCount=4)
    assert row["rxImbalance"] == 0
    assert row["discardedRx"] == {"no-subscription-match": 2}
    assert row["guaranteedRefusedMsgCount"] == 0
