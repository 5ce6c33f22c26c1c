"""Every column of message VPNs, clients and subscriptions reads an attribute that the API has."""

import io
from typing import Any

import pytest

from vpnrouter.cli._listing import Listing, Spec
from vpnrouter.cli._tables import CLIENTS, SUBSCRIPTIONS, VPNS
from vpnrouter.management.msg_vpns import status_of
from vpnrouter.management.responses import row_of
from vpnrouter.management.status.clients import ClientStatus, SubscriptionStatus

CLIENT = ClientStatus("blue", "c[1]", "ann", platform="MQTT 5", uptime=61, tx_msg_count=1_234)
SUBSCRIPTION = SubscriptionStatus("blue", "a/#", "mqtt", "client", "c[1]", 1, share_name="g")


def lines(spec: Spec, row: Any, how: str = "overview", **given: Any) -> list[list[str]]:
    """Words of what is printed of one row."""
    file = io.StringIO()
    getattr(Listing(file, spec), how)([row], **given)
    return [line.split() for line in file.getvalue().splitlines() if line.strip()]


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "connected"),
        ({"connected": False}, "away"),
        ({"slowSubscriber": True}, "slow"),
    ],
)
def test_a_client(changes: dict[str, Any], state: str) -> None:
    """Name, who it is, and its state."""
    _, words = lines(CLIENTS, row_of(CLIENT) | changes, wide=True)
    assert words[:3] == ["c[1]", "blue", "ann"]
    assert state in words


def test_counts_of_a_client() -> None:
    """Sent messages stand under sent."""
    assert ["messages", "0", "1,234"] in lines(CLIENTS, row_of(CLIENT), "stats")


def test_a_subscription() -> None:
    """Its topic and who holds it."""
    _, words = lines(SUBSCRIPTIONS, row_of(SUBSCRIPTION), wide=True)
    assert words == ["a/#", "client", "c[1]", "blue", "1", "mqtt", "g", "-"]


def test_a_msg_vpn(standing: Any) -> None:
    """Clients and subscriptions with their bounds."""
    status = status_of(standing.three_bridges().context, "blue")
    assert status is not None
    row = row_of(status)
    _, words = lines(VPNS, row, wide=True)
    assert words[:3] == ["blue", "enabled", "up"]
    assert lines(VPNS, row, "detail")[0] == ["Message", "VPN", "blue:", "up"]
    assert lines(VPNS, row, "stats")
