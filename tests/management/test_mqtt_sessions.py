from typing import Any

import pytest
import trio

from vpnrouter.errors import SpoolError
from vpnrouter.management.responses import names_of
from vpnrouter.management.status.clients import MqttSessionStatus

BLUE = "/SEMP/v2/monitor/msgVpns/blue/mqttSessions"
ACTION = "/SEMP/v2/action/msgVpns/blue/mqttSessions"
OURS = "/vpnrouter/v1/msgVpns/blue/mqttSessions"
READER = {"eve": {"password": "right", "role": "read-only"}}


async def test_list(still: Any, opened: Any) -> None:
    """Sessions by client id; each has its own path and its client's."""
    async with opened(still) as client:
        answer = (await client.get(BLUE)).json()
        ones = [(await client.get(links["uri"])).json()["data"] for links in answer["links"]]
        of_client = (await client.get(answer["links"][0]["clientUri"])).json()["data"]
    assert [row["mqttSessionClientId"] for row in answer["data"]] == ["c/3,x", "c1", "c2"]
    assert set(answer["data"][0]) == set(names_of(MqttSessionStatus))
    assert ones == answer["data"]
    assert of_client["clientName"] == "c/3,x"


@pytest.mark.parametrize("key", ["none,auto", "c1", "c1,primary", "other,auto", ",auto"])
async def test_no_such_session(still: Any, opened: Any, key: str) -> None:
    """A session is named by its client id and the virtual router."""
    async with opened(still) as client:
        answer = await client.get(f"{BLUE}/{key}")
    assert answer.json()["meta"]["error"]["status"] == "NOT_FOUND"


async def test_clear_stats(still: Any, opened: Any) -> None:
    """The counts begin anew; a comma in a client id need not be encoded."""
    still.clients["c/3,x"].publish("nobody")
    async with opened(still) as client:
        answer = await client.put(f"{ACTION}/c%2F3,x,auto/clearStats")
    assert answer.status_code == 200
    assert still.context.clients.client("blue", "c/3,x").rx_msg_count == 0


async def test_delete(still: Any, opened: Any) -> None:
    """The session of a client that is away is deleted, that of one who is there is not."""
    still.leave("c1")
    async with opened(still) as client:
        answer = await client.put(f"{OURS}/c1,auto/delete")
        again = await client.put(f"{OURS}/c1,auto/delete")
        there = await client.put(f"{OURS}/c2,auto/delete")
    assert answer.status_code == 200
    assert again.json()["meta"]["error"]["status"] == "NOT_FOUND"
    assert there.json()["meta"]["error"]["status"] == "NOT_ALLOWED"
    assert still.router.vpns["blue"].clients.keys() == {"c/3,x", "c2"}


async def test_store_that_fails(still: Any, opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that fails is not the caller's fault."""

    async def end_session(msg_vpn: str, client_id: str) -> bool:
        await trio.lowlevel.checkpoint()
        raise SpoolError("no space", "io")

    monkeypatch.setattr(still.context.clients, "end_session", end_session)
    async with opened(still) as client:
        answer = await client.put(f"{OURS}/c1,auto/delete")
    assert answer.status_code == 503


@pytest.mark.parametrize("path", [f"{ACTION}/c1,auto/clearStats", f"{OURS}/c1,auto/delete"])
async def test_reader(still: Any, opened: Any, path: str) -> None:
    """Who may only look changes nothing."""
    still.leave("c1")
    async with opened(still, READER, auth=("eve", "right")) as client:
        answer = await client.put(path)
    assert answer.status_code == 403
    assert "c1" in still.router.vpns["blue"].clients
