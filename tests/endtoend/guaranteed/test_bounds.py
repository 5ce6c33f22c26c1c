"""What gives way when a queue is full, and that messages wait on disk and not in memory."""

from pathlib import Path
from typing import Any, Final

import pytest

ACCEPTED: Final = 0x00
QUOTA_EXCEEDED: Final = 0x97
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
    one = kit.up("edge", "blue", kit.vpn(queues=written))
    publisher = kit.publisher(one, "p")
    publisher.publish("last/a", *range(10))
    assert publisher.answered(*range(10)) == [ACCEPTED] * 10
    publisher.publish("full/a", *range(10, 20))
    assert publisher.answered(*range(10, 20)) == [ACCEPTED] * 3 + [QUOTA_EXCEEDED] * 7
    consumer = kit.client(one, "c")
    consumer.client.subscribe("$queue/last", 1)
    consumer.until_number(9)
    consumer.client.subscribe("$queue/full", 1)
    consumer.until_number(12)
    assert consumer.numbers() == [9, 10, 11, 12]
    kit.holds(one, "blue", "full", 0)
    assert kit.row(one, "blue", "last")["discarded"] == {"last-value": 9}


def resident(router: Any) -> int:
    """Bytes of memory that a router's process has."""
    for line in Path(f"/proc/{router.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1_024
    raise AssertionError("VmRSS is not there")


@pytest.mark.slow
def test_on_disk_and_not_in_memory(kit: Any) -> None:
    """50,000 messages of 1 KiB wait, over a restart too, and the router's memory is bounded."""
    written = kit.vpn(queues={"orders": kit.queue("orders/>")})
    one = kit.up("edge", "blue", written)
    publisher = kit.publisher(one, "p")
    publisher.publish("orders/a", *range(WARM), size=SIZE)
    assert publisher.answered(*range(WARM)) == [ACCEPTED] * WARM
    before = resident(one)
    for begin in range(WARM, MESSAGES, WARM):
        some = range(begin, begin + WARM)
        publisher.publish("orders/a", *some, size=SIZE)
        assert publisher.answered(*some) == [ACCEPTED] * WARM
    row = kit.holds(one, "blue", "orders", MESSAGES)
    assert row["msgSpoolUsage"] >= MESSAGES * SIZE
    grown = resident(one) - before
    print(f"{before} bytes, {grown} more")
    assert grown < BUFFERS_BYTES
    one.kill()
    one = kit.up("edge", "blue", written)
    kit.holds(one, "blue", "orders", MESSAGES)
    print(f"{resident(one)} bytes after a restart")
    assert resident(one) - before < RESTARTED_BYTES


def test_balance_sheets_go_on_over_restarts(kit: Any) -> None:
    """Counts of queues and bridges go on; what a crash leaves open has its own name, and the rest is always 0."""
    link = kit.network.link()
    source = kit.vpn(queues={"to-core": kit.queue("orders/>")})
    one = kit.up("edge", "blue", source, link)
    publisher = kit.publisher(one, "p")
    bridge = kit.bridge(link.address, "blue", "to-core", remote_subscriptions=["direct/>"])
    queues = {"more": kit.queue("orders/more/>"), "less": kit.queue("orders/less/>")}
    written = kit.vpn(queues=queues, bridges={"from-blue": bridge})
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
        kit.holds(router, "yellow", queue, left)
        client.stop()

    def row(router: Any, queue: str) -> dict[str, Any]:
        found = kit.row(router, "yellow", queue)
        assert found["imbalance"] == 0
        return dict(found)

    two = kit.up("core", "yellow", written)
    two.bridge("from-blue", boundToQueue=True)
    publish("orders/more/a", 10)
    publish("orders/less/a", 10)
    publish("direct/nobody", 7, qos=0)
    kit.holds(two, "yellow", "more", 10)
    kit.holds(two, "yellow", "less", 10)
    take(two, "more", 4, 6)
    before = two.bridge("from-blue", dataRxMsgCount=27, rxImbalance=0)
    assert before["discardedRx"] == {"no-subscription-match": 7}
    assert two.stop() == 0

    two = kit.up("core", "yellow", written)
    sheet = row(two, "more")
    assert (sheet["spooledMsgCount"], sheet["msgCount"], sheet["recoveredMsgCount"]) == (10, 6, 0)
    assert sheet["discarded"] == {}
    again = two.bridge("from-blue", boundToQueue=True, rxImbalance=0, txImbalance=0)
    for name in ("dataRxMsgCount", "deliveredRxMsgCount", "discardedRx", "offeredTxMsgCount"):
        assert again[name] == before[name], name
    take(two, "less", 3, 7)
    publish("orders/more/b", 2)
    # The remote queue lets go of what is synced here, and what was acknowledged before is synced with it.
    kit.holds(one, "blue", "to-core", 0)
    two.kill()

    two = kit.up("core", "yellow", written)
    sheet = row(two, "more")
    assert (sheet["spooledMsgCount"], sheet["msgCount"], sheet["discarded"]) == (12, 8, {})
    sheet = row(two, "less")
    assert (sheet["spooledMsgCount"], sheet["msgCount"]) == (10, 7)
    assert sheet["discarded"] == {"unaccounted-after-crash": 3}
    last = two.bridge("from-blue", boundToQueue=True, rxImbalance=0, txImbalance=0)
    assert last["dataRxMsgCount"] >= before["dataRxMsgCount"]
