from typing import Any

import pytest

from vpnrouter.wire.mqtt.reason import ADMINISTRATIVE_ACTION

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
