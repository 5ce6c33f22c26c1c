"""A queue that is full two bridges away is felt by the publisher, and nothing is lost on the way."""

import time
from typing import Any, Final

ACCEPTED: Final = 0x00
QUOTA_EXCEEDED: Final = 0x97
ROOM: Final = 5
"""Messages that each of the three queues takes."""
WINDOW: Final = 4
MOST: Final = 1_000
"""Attempts in which the queues must have filled."""
LAST: Final = 2_000
"""The message that is published when all is over."""


def test_over_two_bridges(kit: Any) -> None:
    """Three queues fill one after the other, then the publisher is refused; with room at the end all clears."""
    links = [kit.network.link(), kit.network.link()]
    to_b = {"to-b": kit.queue("orders/>", max_spooled_msg_count=ROOM)}
    a = kit.up("a", "va", kit.vpn(queues=to_b), links[0])
    window = {"remote": {"egress_flow_window_size": WINDOW}}
    b = kit.up(
        "b",
        "vb",
        kit.vpn(
            queues={"to-c": kit.queue("orders/>", max_spooled_msg_count=ROOM)},
            bridges={"from-a": kit.bridge(links[0].address, "va", "to-b", **window)},
        ),
        links[1],
    )
    c = kit.up(
        "c",
        "vc",
        kit.vpn(
            queues={"orders": kit.queue("orders/>", max_spooled_msg_count=ROOM)},
            bridges={"from-b": kit.bridge(links[1].address, "vb", "to-c", **window)},
        ),
    )
    b.bridge("from-a", boundToQueue=True)
    c.bridge("from-b", boundToQueue=True)
    publisher = kit.publisher(a, "p")
    taken: list[int] = []
    refused = 0
    # It may be quicker than the bridges: then it is refused early, and taken when they have caught up.
    for number in range(MOST):
        publisher.publish("orders/a", number)
        (answer,) = publisher.answered(number)
        if answer == ACCEPTED:
            taken.append(number)
        else:
            assert answer == QUOTA_EXCEEDED
            refused += 1
        if len(taken) == 3 * ROOM:
            break
        time.sleep(0.01)
    assert len(taken) == 3 * ROOM, f"{refused} were refused"
    # All three are full, and stay so: a message that is out over a bridge still has its place in the queue.
    kit.holds(c, "vc", "orders", ROOM)
    kit.holds(b, "vb", "to-c", ROOM)
    kit.holds(a, "va", "to-b", ROOM)
    for router, name in ((b, "from-a"), (c, "from-b")):
        row = router.bridge(name, inboundState="stalled", rxInFlightMsgCount=WINDOW)
        assert (row["discardedRx"], row["rxImbalance"]) == ({}, 0)
    publisher.publish("orders/a", *range(MOST, MOST + 10))
    assert publisher.answered(*range(MOST, MOST + 10)) == [QUOTA_EXCEEDED] * 10

    # Room at the end is all that it takes.
    consumer = kit.client(c, "c")
    consumer.client.subscribe("$queue/orders", 1)
    consumer.until_number(taken[-1])
    for router, msg_vpn, name in ((a, "va", "to-b"), (b, "vb", "to-c"), (c, "vc", "orders")):
        row = kit.holds(router, msg_vpn, name, 0)
        assert (row["discarded"], row["imbalance"]) == ({}, 0)
    b.bridge("from-a", inboundState="ready-in-sync", rxInFlightMsgCount=0)
    c.bridge("from-b", inboundState="ready-in-sync", rxInFlightMsgCount=0)
    publisher.publish("orders/a", LAST)
    assert publisher.answered(LAST) == [ACCEPTED]
    consumer.until_number(LAST)
    assert consumer.numbers() == [*taken, LAST]


def test_a_full_queue_that_is_never_beside_one_that_rejects(kit: Any) -> None:
    """Over a bridge both queues get a message or neither does: nothing is lost, and all clears by itself."""
    one = kit.up("edge", "blue", kit.vpn(queues={"to-core": kit.queue("orders/>")}))
    bridge = kit.bridge(f"127.0.0.1:{one.port('link')}", "blue", "to-core")
    never = {"reject_msg_to_sender_on_discard_behavior": "never", "max_spooled_msg_count": 2}
    queues = {"orders": kit.queue("orders/>"), "audit": kit.queue(">", **never)}
    two = kit.up("core", "yellow", kit.vpn(queues=queues, bridges={"from-blue": bridge}))
    publisher = kit.publisher(one, "p")
    publisher.publish("orders/a", *range(6))
    two.bridge("from-blue", inboundState="stalled")
    kit.holds(one, "blue", "to-core", 4)
    assert kit.row(two, "yellow", "orders")["msgCount"] == 2
    auditor = kit.client(two, "auditor")
    auditor.client.subscribe("$queue/audit", 1)
    auditor.until_number(5)
    assert auditor.numbers() == list(range(6))
    kit.holds(two, "yellow", "orders", 6)
    kit.holds(one, "blue", "to-core", 0)
    two.bridge("from-blue", inboundState="ready-in-sync", rxImbalance=0)
