"""What gives way when a queue is full, what its publishers and the bridge before it are told, and that messages wait
on disk and not in memory.
"""

import time
from typing import Any, Final

import httpx
import pytest

from vpnrouter.tui.screens.bridges import COLUMNS

ACCEPTED: Final = 0x00
PUBLISH_FAILURE: Final = 0x83
QUOTA_EXCEEDED: Final = 0x97
ROOM: Final = 5
"""Messages that each of the three queues takes."""
WINDOW: Final = 4
MOST: Final = 1_000
"""Attempts in which the queues must have filled."""
LAST: Final = 2_000
"""The message that is published when all is over."""
MESSAGES: Final = 50_000
SIZE: Final = 1_024
WARM: Final = 5_000
"""Messages after which what a router keeps in any case is there: code, buffers, caches."""
BUFFERS_BYTES: Final = 130_000_000
"""By which the store's buffers and cache grow, however many messages there are: 102 MB at 50,000 and at 90,000.

Messages kept in memory as well would come on top of that.
"""
RESTARTED_BYTES: Final = 40_000_000
"""The same where the messages were there at the start, which is less than the messages alone."""


def test_who_gives_way(kit: Any) -> None:
    """A last value queue keeps the newest message, a full queue what it has."""
    written = {
        "last": kit.queue("last/>", max_msg_spool_usage=0),
        "full": kit.queue("full/>", max_spooled_msg_count=3),
    }
    one = kit.edge(queues=written)
    publisher = kit.publisher(one, "p")
    publisher.accepted("last/a", *range(10))
    publisher.publish("full/a", *range(10, 20))
    assert publisher.answered(*range(10, 20)) == [ACCEPTED] * 3 + [QUOTA_EXCEEDED] * 7
    consumer = kit.consumer(one, "last")
    consumer.until_number(9)
    consumer.client.subscribe("$queue/full", 1)
    consumer.until_number(12)
    assert consumer.numbers() == [9, 10, 11, 12]
    one.holds("blue", "full", 0)
    assert one.queue("blue", "last")["discarded"] == {"last-value": 9}


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
    c.holds("vc", "orders", ROOM)
    b.holds("vb", "to-c", ROOM)
    a.holds("va", "to-b", ROOM)
    for router, name in ((b, "from-a"), (c, "from-b")):
        row = router.bridge(name, inboundState="stalled", rxInFlightMsgCount=WINDOW)
        assert (row["discardedRx"], row["rxImbalance"]) == ({}, 0)
    publisher.publish("orders/a", *range(MOST, MOST + 10))
    assert publisher.answered(*range(MOST, MOST + 10)) == [QUOTA_EXCEEDED] * 10

    # Room at the end is all that it takes.
    consumer = kit.consumer(c, "orders")
    consumer.until_number(taken[-1])
    for router, msg_vpn, name in ((a, "va", "to-b"), (b, "vb", "to-c"), (c, "vc", "orders")):
        row = router.holds(msg_vpn, name, 0)
        assert (row["discarded"], row["imbalance"]) == ({}, 0)
    b.bridge("from-a", inboundState="ready-in-sync", rxInFlightMsgCount=0)
    c.bridge("from-b", inboundState="ready-in-sync", rxInFlightMsgCount=0)
    publisher.accepted("orders/a", LAST)
    consumer.until_number(LAST)
    assert consumer.numbers() == [*taken, LAST]


def test_a_full_local_queue(kit: Any) -> None:
    """It stalls the bridge's guaranteed messages, also those for other queues, and not its Direct ones; it clears."""
    full = {
        "orders": kit.queue("orders/1", max_spooled_msg_count=5),
        "other": kit.queue("orders/2"),
    }
    one, two, _ = kit.both({"remote_subscriptions": ["weather/>"]}, queues=full)
    publisher = kit.publisher(one, "p")
    publisher.accepted("orders/1", *range(20))
    row = two.bridge("from-blue", inboundState="stalled", health="stalled", rxImbalance=0)
    assert row["discardedRx"] == {}
    # The head is refused. What another queue would take stands behind it.
    publisher.accepted("orders/2", 20, 21)
    # Direct messages pass, and by the time that they have come nothing guaranteed has.
    watcher = kit.client(two, "watcher")
    watcher.subscribe("weather/#")
    near = kit.client(one, "near")
    for number in range(10):
        near.publish(f"weather/{number}", b"x")
    assert [watcher.next()[0] for _ in range(10)] == [f"weather/{number}" for number in range(10)]
    assert two.queue("yellow", "other")["msgCount"] == 0
    assert two.queue("yellow", "orders")["msgCount"] == 5
    assert one.queue("blue", "to-core")["msgCount"] == 17
    # Room in the local queue is all that it takes.
    consumer = kit.consumer(two, "orders")
    consumer.until_number(19)
    assert consumer.numbers() == list(range(20))
    two.holds("yellow", "other", 2)
    two.bridge("from-blue", inboundState="ready-in-sync")
    one.holds("blue", "to-core", 0)


def test_a_full_queue_that_is_never_beside_one_that_rejects(kit: Any) -> None:
    """Over a bridge both queues get a message or neither does: nothing is lost, and all clears by itself."""
    never = {"reject_msg_to_sender_on_discard_behavior": "never", "max_spooled_msg_count": 2}
    one, two, _ = kit.both(queues={"audit": kit.queue(">", **never)})
    kit.publisher(one, "p").publish("orders/a", *range(6))
    two.bridge("from-blue", inboundState="stalled")
    one.holds("blue", "to-core", 4)
    assert two.queue("yellow", "orders")["msgCount"] == 2
    auditor = kit.consumer(two, "audit")
    auditor.until_number(5)
    assert auditor.numbers() == list(range(6))
    two.holds("yellow", "orders", 6)
    one.holds("blue", "to-core", 0)
    two.bridge("from-blue", inboundState="ready-in-sync", rxImbalance=0)


def test_what_is_parked(kit: Any) -> None:
    """Other lanes pass a full queue; what is set aside comes in the order of its lane, over a restart too."""
    park = {"on_reject": "park"}
    full = {
        "orders": kit.queue("orders/a", max_spooled_msg_count=1),
        "other": kit.queue("orders/b"),
    }
    one, two, link = kit.both(park, queues=full)
    publisher = kit.publisher(one, "p")
    publisher.accepted("orders/a", *range(10))
    publisher.accepted("orders/b", *range(10, 20))
    two.holds("yellow", "other", 10)
    two.bridge("from-blue", inboundState="ready-in-sync", parkedMsgCount=9, rxImbalance=0)
    one.holds("blue", "to-core", 0)
    assert two.stop() == 0
    two = kit.core(link, park, queues=full)
    two.bridge("from-blue", boundToQueue=True, parkedMsgCount=9)
    consumer = kit.consumer(two, "orders")
    consumer.until_number(9)
    assert consumer.numbers() == list(range(10))
    two.bridge("from-blue", parkedMsgCount=0)


def test_answered_when_the_other_side_has_it(kit: Any) -> None:
    """With `end_to_end_bridge` the answer waits while the bridge is away, over a restart too, and says when it never
    comes over.
    """
    link = kit.network.link()
    profile = {"allow_bridge_connections_enabled": True, "end_to_end_bridge": "from-blue"}
    waits = {"client_profiles": {"default": profile}, "queues": {"local": kit.queue("local/>")}}
    one = kit.edge(link, **waits)
    # No bridge ever took from this queue: nobody to wait for.
    early = kit.publisher(one, "early")
    early.accepted("orders/0", 0)
    two = kit.core(link)
    two.holds("yellow", "orders", 1)
    for number, qos in enumerate((1, 2, 1), 2):
        early.accepted("orders/1", number, qos=qos)
        assert two.queue("yellow", "orders")["msgCount"] == number
    assert two.stop() == 0

    # The bridge is away: edge has the message, also after a restart, and the publisher is not told.
    early.publish("orders/2", 9)
    one.holds("blue", "to-core", 1)
    assert one.stop() == 0
    assert 9 not in early.answers
    one = kit.edge(link, **waits)
    late, other = kit.publisher(one, "late"), kit.publisher(one, "other")
    late.publish("orders/3", 1)
    late.publish("local/1", 2)
    one.holds("blue", "local", 1)
    # Who waits for no bridge is answered in the meantime.
    other.accepted("local/2", 1)
    assert late.answers == {}

    two = kit.core(link)
    assert late.answered(1, 2) == [ACCEPTED, ACCEPTED]
    assert two.queue("yellow", "orders")["msgCount"] == 6
    assert two.stop() == 0
    # Until edge knows, a message is out over the bridge, and is not to be deleted.
    one.says("VPN_BRIDGING_LINK_DOWN")

    # What an operator deletes never comes over.
    late.publish("orders/4", 3)
    one.holds("blue", "to-core", 1)
    assert one.api().delete_msgs("blue", "to-core") == 1
    assert late.answered(3) == [PUBLISH_FAILURE]
    assert one.stop() == 0


@pytest.mark.slow
def test_on_disk_and_not_in_memory(kit: Any) -> None:
    """50,000 messages of 1 KiB wait, over a restart too, and the router's memory is bounded."""
    one = kit.edge()
    publisher = kit.publisher(one, "p")
    publisher.accepted("orders/a", *range(WARM), size=SIZE)
    before = one.resident()
    for begin in range(WARM, MESSAGES, WARM):
        publisher.accepted("orders/a", *range(begin, begin + WARM), size=SIZE)
    row = one.holds("blue", "to-core", MESSAGES)
    assert row["msgSpoolUsage"] >= MESSAGES * SIZE
    grown = one.resident() - before
    print(f"{before} bytes, {grown} more")
    assert grown < BUFFERS_BYTES
    one.kill()
    one = kit.edge()
    one.holds("blue", "to-core", MESSAGES)
    print(f"{one.resident()} bytes after a restart")
    assert one.resident() - before < RESTARTED_BYTES


def test_balance_sheets_go_on_over_restarts(kit: Any) -> None:
    """Counts of queues and bridges go on; what a crash leaves open has its own name, and the rest is always 0."""
    link = kit.network.link()
    one = kit.edge(link)
    publisher = kit.publisher(one, "p")
    direct = {"remote_subscriptions": ["direct/>"]}
    queues = {
        "orders": kit.queue(),
        "more": kit.queue("orders/more/>"),
        "less": kit.queue("orders/less/>"),
    }
    number = 0

    def publish(topic: str, count: int, qos: int = 1) -> None:
        nonlocal number
        numbers = range(number, number + count)
        publisher.publish(topic, *numbers, qos=qos)
        assert qos == 0 or publisher.answered(*numbers) == [ACCEPTED] * count
        number += count

    def take(router: Any, queue: str, count: int, left: int) -> None:
        client = kit.client(router, "reader", manual_ack=True)
        seen: list[Any] = []

        def acknowledge(_client: Any, _data: Any, message: Any) -> None:
            if len(seen) < count:
                seen.append(message)
                _client.ack(message.mid, message.qos)

        client.client.on_message = acknowledge
        client.client.subscribe(f"$queue/{queue}", 1)
        router.holds("yellow", queue, left)
        client.stop()

    def row(router: Any, queue: str) -> dict[str, Any]:
        found = router.queue("yellow", queue)
        assert found["imbalance"] == 0
        return dict(found)

    two = kit.core(link, direct, queues=queues)
    two.bridge("from-blue", boundToQueue=True)
    publish("orders/more/a", 10)
    publish("orders/less/a", 10)
    publish("direct/nobody", 7, qos=0)
    two.holds("yellow", "more", 10)
    two.holds("yellow", "less", 10)
    take(two, "more", 4, 6)
    before = two.bridge("from-blue", dataRxMsgCount=27, rxImbalance=0)
    assert before["discardedRx"] == {"no-subscription-match": 7}
    assert two.stop() == 0

    two = kit.core(link, direct, queues=queues)
    sheet = row(two, "more")
    assert (sheet["spooledMsgCount"], sheet["msgCount"], sheet["recoveredMsgCount"]) == (10, 6, 0)
    assert sheet["discarded"] == {}
    again = two.bridge("from-blue", boundToQueue=True, rxImbalance=0, txImbalance=0)
    for name in ("dataRxMsgCount", "deliveredRxMsgCount", "discardedRx", "offeredTxMsgCount"):
        assert again[name] == before[name], name
    take(two, "less", 3, 7)
    publish("orders/more/b", 2)
    # The remote queue lets go of what is synced here, and what was acknowledged before is synced with it.
    one.holds("blue", "to-core", 0)
    two.kill()

    two = kit.core(link, direct, queues=queues)
    sheet = row(two, "more")
    assert (sheet["spooledMsgCount"], sheet["msgCount"], sheet["discarded"]) == (12, 8, {})
    sheet = row(two, "less")
    assert (sheet["spooledMsgCount"], sheet["msgCount"]) == (10, 7)
    assert sheet["discarded"] == {"unaccounted-after-crash": 3}
    last = two.bridge("from-blue", boundToQueue=True, rxImbalance=0, txImbalance=0)
    assert last["dataRxMsgCount"] >= before["dataRxMsgCount"]


def metric(router: Any, bridge: str, name: str, *labels: str) -> float:
    """A sample of a bridge; -1 for none."""
    page = httpx.get(f"http://127.0.0.1:{router.port('http')}/metrics", trust_env=False).text
    for line in page.splitlines():
        if line.startswith(f"vpnrouter_bridge_{name}{{") and all(
            part in line for part in (f'bridge="{bridge}"', *labels)
        ):
            return float(line.rpartition(" ")[2])
    return -1.0


def test_what_is_seen_of_a_bridge(kit: Any) -> None:
    """Metrics, API and TUI alike show depth, drops, rate, lag and address of a bridge that is stalled."""
    link = kit.network.link()
    edge = kit.edge(link, queues={"to-core": kit.queue("orders/1", permission="consume")})
    # The queue holds a megabyte; ten messages fill it.
    orders = {"orders": kit.queue("orders/>", max_msg_spool_usage=1)}
    near = kit.core(link, {"remote_subscriptions": ["weather/>"]}, queues=orders)
    near.bridge("from-blue", inboundState="ready-in-sync", boundToQueue=True)
    kit.publisher(edge, "orders").accepted("orders/1", *range(20), size=100_000)
    publisher = kit.client(edge, "weather")
    # Rates: nobody wants the weather there, and it comes.
    row: dict[str, Any] = {}

    def seen() -> bool:
        for number in range(20):
            publisher.publish(f"weather/{number}", b"x")
        row.update(near.bridge("from-blue"))
        return bool(
            row["inboundState"] == "stalled"
            and row["rxMsgRate"] > 0
            and row["discardedRx"].get("no-subscription-match", 0) > 20
        )

    kit.until(seen, "a stalled bridge with rates and drops")
    assert row["remoteAddress"] == link.address
    assert row["dataRxMsgCount"] > 0
    assert metric(near, "from-blue", "info", f'remote_address="{link.address}"') == 1
    reason = 'reason="no-subscription-match"'
    dropped = metric(near, "from-blue", "rx_discarded_messages_total", reason)
    assert dropped >= row["discardedRx"]["no-subscription-match"]
    first = metric(near, "from-blue", "messages_total", 'direction="rx"')
    assert first >= row["dataRxMsgCount"]
    # The messages wait where the bridge takes them from: that router knows how many and how long.
    peer = "#bridge/core/yellow/from-blue"
    kit.until(lambda: edge.bridge(peer)["backlogOldestMsgAgeMs"] > 100, "the backlog gets older")
    other = edge.bridge(peer)
    assert 0 < other["backlogMsgCount"] <= 20
    assert other["remoteAddress"] == "127.0.0.1"
    assert metric(edge, peer, "backlog_messages") == other["backlogMsgCount"]
    assert metric(edge, peer, "backlog_oldest_message_age_seconds") >= 0.1
    # The TUI's row is made of the same answer.
    router: Any = None
    cells = [text for text, _ in COLUMNS.entry("", router, row).cells]
    assert cells[:3] == ["from-blue", "yellow", "stalled"]
    assert "core" not in cells[3]
    assert "edge" in cells[3]
    assert cells[4] not in {"-", "0"}
