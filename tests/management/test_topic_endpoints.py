from typing import Any

import pytest

from vpnrouter.management.responses import names_of
from vpnrouter.management.status.clients import SubscriptionStatus
from vpnrouter.management.topic_endpoints import TopicEndpointStatus

BLUE = "/SEMP/v2/monitor/msgVpns/blue/topicEndpoints"


@pytest.fixture
def endpoints(still: Any) -> Any:
    """A router with two topic endpoints among its queues."""
    still.queues.contents["blue", "#topic-endpoint/t/1"] = {1: b"one", 2: b"two"}
    still.queues.contents["blue", "#topic-endpoint/s"] = {}
    # Queues of these tests stand still, and have no subscriptions.
    still.context.clients.held = lambda msg_vpn, holder, name: [
        SubscriptionStatus(msg_vpn, f"attracted/{name}", "smf", holder, name)
    ]
    return still


async def test_list(endpoints: Any, opened: Any) -> None:
    """Topic endpoints under their own names, and no queues."""
    async with opened(endpoints) as client:
        answer = (await client.get(BLUE)).json()
        messages = (await client.get(answer["links"][1]["msgsUri"])).json()
    assert [row["topicEndpointName"] for row in answer["data"]] == ["s", "t/1"]
    assert [row["msgCount"] for row in answer["data"]] == [0, 2]
    assert answer["data"][1]["destinationTopic"] == "attracted/t/1"
    assert set(answer["data"][0]) == set(names_of(TopicEndpointStatus))
    assert [row["msgId"] for row in messages["data"]] == [1, 2]


async def test_one(endpoints: Any, opened: Any) -> None:
    """One by its name; a queue is none."""
    async with opened(endpoints) as client:
        found = (await client.get(f"{BLUE}/t%2F1")).json()["data"]
        missing = await client.get(f"{BLUE}/orders")
    assert (found["topicEndpointName"], found["msgSpoolUsage"]) == ("t/1", 6)
    assert missing.json()["meta"]["error"]["description"].endswith(
        "topicEndpoint orders in msgVpn blue"
    )
