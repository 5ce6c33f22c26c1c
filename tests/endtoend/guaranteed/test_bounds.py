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
