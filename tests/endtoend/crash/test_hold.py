"""Guaranteed messages over a bridge: the normal case, a full local queue, a full remote queue (HOLD, LANDING).

What publisher, bridge and consumer see in each of the three cases that bridges are described with, and that
everything clears by itself.
"""

from collections.abc import Callable
from typing import Any, Final

ACCEPTED: Final = 0x00
QUOTA_EXCEEDED: Final = 0x97
SIZE: Final = 100_000
"""Bytes of a message where queues are to fill: ten make a megabyte."""

ORDERS: Final = {"orders/1": ("orders",)}

Bridged = Callable[..., tuple[Any, Any]]


def started(bridged: Bridged, **changes: Any) -> tuple[Any, Any]:
    """Both routers, with the bridge in sync and bound to the remote queue."""
    edge, core = bridged(**changes)
    edge.start()
    core.start()
    core.router.bridge("from-blue", inboundState="ready-in-sync", boundToQueue=True)
    return edge, core


def reader(traffic: Any, core: Any) -> Any:
    """A consumer of queue orders at core."""
    return traffic.consume(
        core, "reader", endpoint="orders", topic_filter="$queue/orders", durable=False
    )


def finish(traffic: Any, producer: Any) -> list[int]:
    """Wait for all answers; returns them in the order of the messages."""
    traffic.stop_producers()
    return [producer.reasons[f"{producer.name}-{1 + index}"] for index in range(producer.count)]


def small_queue(vpn: dict[str, Any]) -> None:
    """Queue orders holds a megabyte; queue other is there beside it."""
    vpn["queues"]["orders"] = {"subscriptions": ["orders/1"], "max_msg_spool_usage": 1}
    vpn["queues"]["other"] = {"subscriptions": ["orders/2"]}


def small_queues_at_both(vpn: dict[str, Any]) -> None:
    """The bridge's queue holds a megabyte."""
    vpn["queues"]["to-core"]["max_msg_spool_usage"] = 1


def test_normal(bridged: Bridged, traffic: Any, patiently: Any) -> None:
    """Publishers are acknowledged, messages arrive once and in order, and leave the remote queue."""

    def narrow(vpn: dict[str, Any]) -> None:
        vpn["queues"]["orders"]["subscriptions"] = ["orders/1"]

    edge, core = started(bridged, core=narrow)
    reader(traffic, core)
    producer = traffic.produce(edge, "p", ORDERS, limit=50)
    patiently(lambda: producer.done, "50 answers")
    # Nobody wants these there: they are discarded there, and leave the remote queue all the same.
    unwanted = traffic.produce(edge, "u", {"orders/unwanted": ()}, limit=5)
    patiently(lambda: unwanted.done, "5 answers")
    assert finish(traffic, producer) == [ACCEPTED] * 50
    traffic.drain()
    row = edge.holds("blue", "to-core", 0)
    assert (row["spooledMsgCount"], row["ackedMsgCount"], row["discarded"]) == (55, 55, {})
    bridge = core.router.bridge("from-blue", inboundState="ready-in-sync", dataRxMsgCount=55)
    assert bridge["deliveredRxMsgCount"] == 50
    assert sum(bridge["discardedRx"].values()) == 5
    assert bridge["rxImbalance"] == 0
    traffic.judge()


def test_local_queue_full(bridged: Bridged, traffic: Any, paho: Any, patiently: Any) -> None:
    """A full local queue stalls the bridge's guaranteed messages, not its Direct ones; it clears by itself."""
    edge, core = started(bridged, core=small_queue)
    producer = traffic.produce(edge, "p", ORDERS, limit=20, size=SIZE)
    patiently(lambda: producer.done, "20 answers")
    core.router.bridge("from-blue", inboundState="stalled", health="stalled")
    # The head is refused. What another queue would take stands behind it.
    behind = traffic.produce(edge, "b", {"orders/2": ("other",)}, limit=3)
    patiently(lambda: behind.done, "3 answers")
    assert finish(traffic, producer) == [ACCEPTED] * 20
    held = core.queue("yellow", "orders")["msgCount"]
    assert 0 < held < 20
    # Direct messages pass, and by the time that they have come nothing guaranteed has.
    watcher = paho(core.port(), "watcher")
    watcher.subscribe("weather/#")
    near = paho(edge.port(), "near")
    for number in range(10):
        near.publish(f"weather/{number}", b"x")
    assert [watcher.next()[0] for _ in range(10)] == [f"weather/{number}" for number in range(10)]
    assert core.queue("yellow", "other")["msgCount"] == 0
    assert edge.queue("blue", "to-core")["msgCount"] == 23 - held
    bridge = core.router.bridge("from-blue", inboundState="stalled", discardedRx={})
    assert bridge["rxImbalance"] == 0
    # Room in the local queue is all that it takes.
    reader(traffic, core)
    traffic.consume(core, "o", endpoint="other", topic_filter="$queue/other", durable=False)
    traffic.drain()
    core.router.bridge("from-blue", inboundState="ready-in-sync")
    edge.holds("blue", "to-core", 0)
    core.holds("yellow", "orders", 0)
    traffic.judge()


def test_remote_quota_reached(bridged: Bridged, traffic: Any, patiently: Any) -> None:
    """When the remote queue is full too, its publishers are told; once there is room they are taken again."""
    edge, core = started(bridged, edge=small_queues_at_both, core=small_queue)
    producer = traffic.produce(edge, "p", ORDERS, size=SIZE, window=1, burst=1)
    patiently(lambda: QUOTA_EXCEEDED in producer.reasons.values(), "a publish is refused")
    core.router.bridge("from-blue", inboundState="stalled")
    answers = finish(traffic, producer)
    taken = answers.count(ACCEPTED)
    assert set(answers) == {ACCEPTED, QUOTA_EXCEEDED}
    assert taken > 10, "both queues are full"
    row = edge.queue("blue", "to-core")
    assert row["maxMsgSpoolUsageExceededDiscardedMsgCount"] == answers.count(QUOTA_EXCEEDED)
    assert row["msgCount"] + core.queue("yellow", "orders")["msgCount"] == taken
    # The consumer makes room at core, the bridge goes on, and so there is room at edge.
    reader(traffic, core)
    traffic.drain()
    core.router.bridge("from-blue", inboundState="ready-in-sync")
    edge.holds("blue", "to-core", 0)
    again = traffic.produce(edge, "again", ORDERS, limit=5, size=SIZE, window=1)
    patiently(lambda: again.done, "5 answers")
    assert finish(traffic, again) == [ACCEPTED] * 5
    traffic.drain()
    traffic.judge(refusing=True)
