import io
from dataclasses import replace
from typing import Any

import pytest

from vpnrouter.cli._tables import QueueTables, age, is_stuck, megabytes, quota
from vpnrouter.management.responses import row_of
from vpnrouter.management.status.queues import QueueStatus

STATUS = QueueStatus(
    msg_vpn_name="blue",
    queue_name="orders[1]",
    max_msg_spool_usage=5_000,
    msg_count=1_234,
    msg_spool_usage=2_500_000,
    spooled_msg_count=2_000,
    acked_msg_count=756,
    moved_msg_count=3,
    discarded={"max-ttl-expired": 7},
    refused={"max-msg-size-exceeded": 2},
    oldest_msg_age_ms=3_725_000,
)


def printed(how: str, **changes: Any) -> str:
    """What a table says of one queue."""
    file = io.StringIO()
    getattr(QueueTables(file), how)([row_of(replace(STATUS, **changes))])
    return file.getvalue()


def test_overview() -> None:
    """Names are no markup; counts are readable; what was lost and what was refused is one number."""
    row = printed("overview").splitlines()[1].split()
    assert row == [
        *("orders[1]", "blue", "queue", "exclusive", "on", "on"),
        *("1,234", "2.5", "5,000", "0", "0", "9", "01:02:05"),
    ]


def test_detail() -> None:
    """Every attribute is there in words."""
    said = printed("detail")
    assert said.startswith("Queue orders[1] in message VPN blue: 1,234 messages\n")
    assert "max redelivery exceeded to dmq msg count" in said
    assert "max-ttl-expired 7" in said


def test_stats() -> None:
    """What was lost stands apart from what was not taken."""
    said = {tuple(line.split()) for line in printed("stats").splitlines()}
    assert ("lost:", "max-ttl-expired", "7") in said
    assert ("not", "taken:", "max-msg-size-exceeded", "2") in said
    assert ("moved", "3") in said


def test_balance() -> None:
    """The terms of the balance in one line."""
    row = printed("balance", imbalance=5).splitlines()[1].split()
    assert row == ["orders[1]", "blue", "2,000", "756", "7", "3", "0", "1,234", "5"]


@pytest.mark.parametrize(
    ("changes", "stuck"),
    [
        ({}, True),
        ({"bind_count": 1}, False),
        ({"bind_count": 1, "egress_enabled": False}, True),
        ({"msg_count": 0}, False),
    ],
)
def test_stuck(changes: dict[str, Any], stuck: bool) -> None:
    """Messages that nobody takes are to be seen at once."""
    assert is_stuck(row_of(replace(STATUS, **changes))) is stuck


def test_numbers() -> None:
    """Little is not nothing, a last value queue has no quota, an empty queue no oldest message."""
    assert [megabytes(size) for size in (0, 1, 60_000, 10_000_000)] == [
        "0.0",
        "<0.1",
        "0.1",
        "10.0",
    ]
    assert quota({"maxMsgSpoolUsage": 0}) == "last"
    assert [age(ms) for ms in (-1, 1_250, 61_000)] == ["-", "1.2 s", "00:01:01"]
