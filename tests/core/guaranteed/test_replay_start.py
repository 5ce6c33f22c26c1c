"""vpnrouter.core.guaranteed.replay: where a replay begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from vpnrouter.core.guaranteed import refusals
from vpnrouter.core.guaranteed.endpoint_settings import REPLAY_LOG
from vpnrouter.core.guaranteed.replay import ReplayLog, parse_moment, parse_start
from vpnrouter.errors import Refused

if TYPE_CHECKING:
    from tests.core.guaranteed.spool_world import SpoolWorld

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "expected_ns"),
    [
        ("1970-01-01T00:00:01Z", SECOND),
        ("2026-01-31T12:00:00Z", 1_769_860_800 * SECOND),
        ("2026-01-31t12:00:00z", 1_769_860_800 * SECOND),
        ("2026-01-31T13:30:00+01:30", 1_769_860_800 * SECOND),
        ("2026-01-31T12:00:00.25Z", 1_769_860_800 * SECOND + 250_000_000),
        ("2026-01-31T12:00:00.123456789Z", 1_769_860_800 * SECOND + 123_456_000),
        ("2026-01-31", 1_769_817_600 * SECOND),
        ("1970-01-01", 1),
        ("1811-01-01", 1),
    ],
)
def test_moments(text: str, expected_ns: int) -> None:
    """RFC 3339, of which the zone is a part; a date is its midnight in UTC."""
    assert parse_moment(text) == expected_ns
    assert parse_start(text) == (expected_ns, 0)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-01-31T12:00:00",
        "2026-02-30",
        "2026-01-31T25:00:00Z",
        "2026-01-31 12:00:00Z",
        "20260131",
        "2026-01-31T12:00Z",
        "2026-01-31T12:00:00.Z",
        "2026-01-31T12:00:00+99:00",
        "1769860800",
        "\u0662026-01-31",
        "2026-01-31\n",
    ],
)
def test_no_moments(text: str) -> None:
    """A time that could be understood in two ways is none."""
    with pytest.raises(ValueError, match=r".+"):
        parse_moment(text)
    with pytest.raises(ValueError, match=r".+"):
        parse_start(text)


def test_other_starts() -> None:
    """The beginning, and a message."""
    assert parse_start("beginning") == (0, 0)
    assert parse_start("id:17") == (0, 17)
    assert parse_start(f"id:{(1 << 64) - 1}") == (0, (1 << 64) - 1)


@pytest.mark.parametrize(
    "text", ["id:", "id:0", "id:-1", "id:x", f"id:{1 << 64}", "id:" + "9" * 30]
)
def test_no_messages(text: str) -> None:
    """Ids are numbers of 64 bits."""
    with pytest.raises(ValueError, match="is no message id"):
        parse_start(text)


def test_the_log_by_its_name(world: SpoolWorld) -> None:
    """A name that is not that of the log is refused; without a name the log of the message VPN serves."""
    queue = world.endpoint("q", "a")
    with pytest.raises(Refused, match=refusals.REPLAY_DISABLED):
        queue.start_replay(0, 0)
    log = world.endpoint("log", kind=REPLAY_LOG)
    world.spool.replay_logs["blue"] = ReplayLog(log)
    with pytest.raises(Refused, match=refusals.REPLAY_DISABLED):
        queue.start_replay(0, 0, "other")
    assert queue.counters.replay_start_count == 0
    first = queue.start_replay(0, 0, "log")
    assert queue.start_replay(0, 0) is queue.replay
    assert first.failure == refusals.REPLAY_STARTED
