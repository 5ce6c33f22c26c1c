"""The bench of stalls in small: a few of its attacks, on a real router, with a client of another message VPN."""

from __future__ import annotations

import sys

import pytest

from bench import stalls

WITHSTOOD = ["selectors", "long-reason", "filters", "properties", "handshake", "expiry", "refused"]


@pytest.mark.slow
def test_attacks_on_one_message_vpn_stall_no_other() -> None:
    """The router lives, its memory stays, and no ping of the other message VPN takes long, even on a busy machine."""
    command = [
        sys.executable,
        "-c",
        "import sys; from vpnrouter.cli.app import main; sys.exit(main())",
    ]
    rows = stalls.run(command, WITHSTOOD, 1.0)
    assert [row["attack"] for row in rows] == WITHSTOOD
    for row in rows:
        assert row["alive"], row
        assert row["worst_ping_ms"] <= row["own_worst_ms"] + 1_000, row
        assert row["memory_mb"] < 64, row
