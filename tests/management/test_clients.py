"""Clients as monitoring shows them, and what an operator does to them."""

from typing import Any
from urllib.parse import quote

import pytest

from vpnrouter.management.responses import names_of
from vpnrouter.management.status.clients import ClientStatus, SubscriptionStatus
from vpnrouter.wire.mqtt.reason import ADMINISTRATIVE_ACTION

BLUE = "/SEMP/v2/monitor/msgVpns/blue/clients"
OTHER = "/SEMP/v2/monitor/msgVpns/a%2Fb/clients"
READER = {"rob": {"password": "right", "msg_vpns": ["blue"]}}


async def test_list(still: Any, opened: Any) -> None:
    """The clients of one message VPN by name, with all attributes."""
    still.clients["c/3,x"].publish("nobody")
    async with opened(still) as client:
        answer = (await client.get(BLUE)).json()
    assert [row["clientName"] for row in answer["data"]] == ["c/3,x", "c1", "c2"]
    assert set(answer["data"][0]) == set(names_of(ClientStatus))
    assert answer["data"][0]["discarded"] == {"no-subscription-match": 1}
    assert answer["links"][0]["subscriptionsUri"].endswith(f"{BLUE}/c%2F3%2Cx/subscriptions")


async def test_where(still: Any, opened: Any) -> None:
    """Clients that are away."""
    still.leave("c2")
    async with opened(still) as client:
        answer = (await client.get(f"{BLUE}?where=connected==false&select=clientName")).json()
    assert answer["data"] == [{"clientName": "c2"}]
    assert answer["meta"]["count"] == 1


@pytest.mark.parametrize("name", ["c1", "c/3,x"])
async def test_one(still: Any, opened: Any, name: str) -> None:
    """One client by its name, encoded."""
    async with opened(still) as client:
        answer = (await client.get(f"{BLUE}/{quote(name, safe='')}")).json()
        linked = (await client.get(answer["links"]["uri"])).json()
    assert answer["data"]["clientName"] == name
    assert linked["data"] == answer["data"]


@pytest.mark.parametrize("below", ["", "/subscriptions", "/subscriptions/a"])
async def test_no_such_client(still: Any, opened: Any, below: str) -> None:
    """One error names what was looked for, and where; also for one of another message VPN."""
    async with opened(still) as client:
        answers = [await client.get(f"{BLUE}/{name}{below}") for name in ("none", "other")]
    for answer, name in zip(answers, ("none", "other"), strict=True):
        said = f"Could not find match for client {name} in msgVpn blue"
        assert answer.status_code == 400
        assert answer.json()["meta"]["error"]["description"] == said


async def test_gone_meanwhile(still: Any, opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that goes between its name and its row is left out."""
    monkeypatch.setattr(still.context.clients, "client_names", lambda _: ["c/3,x", "gone", "c2"])
    async with opened(still) as client:
        rows = (await client.get(BLUE)).json()["data"]
    assert [row["clientName"] for row in rows] == ["c/3,x", "c2"]


async def test_subscriptions(still: Any, opened: Any) -> None:
    """The subscriptions of one client, each with its own path."""
    async with opened(still) as client:
        answer = (await client.get(f"{BLUE}/c1/subscriptions")).json()
        one = (await client.get(answer["links"][1]["uri"])).json()
        missing = await client.get(f"{BLUE}/c1/subscriptions/b")
    assert [row["subscriptionTopic"] for row in answer["data"]] == ["a", "c/+/d"]
    assert set(answer["data"][0]) == set(names_of(SubscriptionStatus))
    assert one["data"] == answer["data"][1]
    assert missing.status_code == 400


async def test_all(still: Any, opened: Any) -> None:
    """The clients of all message VPNs page by page; those that are hidden are not counted."""
    async with opened(still) as client:
        seen = []
        path = "/vpnrouter/v1/clients?count=3"
        while path:
            answer = (await client.get(path)).json()
            assert answer["meta"]["count"] == 4
            seen += [(row["msgVpnName"], row["clientName"]) for row in answer["data"]]
            path = answer["meta"].get("paging", {}).get("nextPageUri", "")
    assert seen == [("a/b", "other"), ("blue", "c/3,x"), ("blue", "c1"), ("blue", "c2")]
    async with opened(still, READER, auth=("rob", "right")) as client:
        answer = (await client.get("/vpnrouter/v1/clients")).json()
        hidden = await client.get(OTHER)
        one = await client.get(f"{OTHER}/other")
    assert answer["meta"]["count"] == 3
    assert hidden.status_code == one.status_code == 400
    assert hidden.json()["meta"]["error"]["description"].endswith("msgVpn a/b")


MONITOR = "/SEMP/v2/monitor/msgVpns/blue/clients"
CLIENTS = "/SEMP/v2/action/msgVpns/blue/clients"
USERS = {
    "eve": {"password": "right", "role": "read-only"},
    "ada": {"password": "right", "role": "admin", "msg_vpns": ["empty"]},
}


async def test_done(still: Any, opened: Any) -> None:
    """An operator clears the counts of a client and disconnects it, which the client is told."""
    there = still.clients["c/3,x"]
    there.publish("nobody")
    async with opened(still) as client:
        cleared = await client.put(f"{CLIENTS}/c%2F3%2Cx/clearStats", json={})
        row = (await client.get(f"{MONITOR}/c%2F3%2Cx")).json()["data"]
        assert not there.closed
        answer = await client.put(f"{CLIENTS}/c%2F3%2Cx/disconnect", json={})
    assert (cleared.status_code, row["rxMsgCount"], row["discarded"]) == (200, 0, {})
    assert answer.status_code == 200
    assert answer.json()["meta"]["responseCode"] == 200
    assert there.reason() == ADMINISTRATIVE_ACTION


async def test_away(still: Any, opened: Any) -> None:
    """A client that is away cannot be disconnected."""
    still.leave("c1")
    async with opened(still) as client:
        answer = await client.put(f"{CLIENTS}/c1/disconnect")
    assert answer.json()["meta"]["error"]["status"] == "NOT_ALLOWED"
    assert "is not connected" in answer.json()["meta"]["error"]["description"]


@pytest.mark.parametrize("action", ["disconnect", "clearStats"])
async def test_refused(still: Any, opened: Any, action: str) -> None:
    """No client, a body with something in it, who may only look, whose message VPN it is not: nothing is done."""
    async with opened(still) as client:
        assert (await client.put(f"{CLIENTS}/none/{action}")).status_code == 400
        assert (await client.put(f"{CLIENTS}/c1/{action}", json={"a": 1})).status_code == 400
        assert (await client.post(f"{CLIENTS}/c1/{action}")).status_code == 405
    for user, code, status in (("eve", 403, "UNAUTHORIZED"), ("ada", 400, "NOT_FOUND")):
        async with opened(still, USERS, auth=(user, "right")) as client:
            answer = await client.put(f"{CLIENTS}/c1/{action}")
        assert (answer.status_code, answer.json()["meta"]["error"]["status"]) == (code, status)
    assert not still.clients["c1"].closed
