"""Bridges that stop by themselves, after so many attempts that failed."""

from collections.abc import Callable
from typing import Any

import yaml

HTTP = {"protocol": "http", "bind": "127.0.0.1:0"}


def test_a_bridge_gives_up_and_goes_on(
    start: Any, free_port: Callable[[], int], patiently: Callable[..., None]
) -> None:
    """It says why in the field's attribute and in an event; it tries again when it is reconnected."""
    bridge = {
        "remote_authentication": {"basic": {"client_username": "core"}},
        "remote_connection": {"retry_delay": 0, "give_up_after": 3},
        "remote_msg_vpns": [{"name": "blue", "location": f"127.0.0.1:{free_port()}"}],
        "remote_subscriptions": ["weather/>"],
    }
    document = {"listeners": [HTTP], "msg_vpns": {"yellow": {"bridges": {"from-blue": bridge}}}}
    core = start(yaml.safe_dump(document), "core")
    for times in (1, 2):
        row = core.bridge("from-blue", inboundState="disabled")
        assert row["inboundFailureReason"].startswith("gave up after 3 attempts: ")
        assert (row["enabled"], row["health"]) == (True, "down")
        told = [row for row in core.api().events(100) if row["event"] == "VPN_BRIDGING_STOPPED"]
        assert len(told) == times
        assert "stopped: gave up after 3 attempts: " in told[0]["text"]
        core.api().disconnect_bridge("yellow", "from-blue")
        patiently(
            lambda many=times + 1: (
                sum(row["event"] == "VPN_BRIDGING_STOPPED" for row in core.api().events(100))
                == many
            ),
            "it has given up again",
        )
