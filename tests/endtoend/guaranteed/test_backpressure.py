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
