"""Bridges as monitoring shows them, and what an operator does to them."""

from typing import Any

import pytest

from vpnrouter.bridges.status import BridgeStatus, RemoteStatus
from vpnrouter.management.responses import names_of

BLUE = "/SEMP/v2/monitor/msgVpns/blue/bridges"
ODD = "/SEMP/v2/monitor/msgVpns/a%2Fb/bridges/x%2Cy%20%5Bz%5D,auto"


async def test_list(still: Any, opened: Any) -> None:
    """The bridges of one message VPN by name, with all attributes and without the remotes."""
    async with opened(still) as client:
        answer = (await client.get(BLUE)).json()
    assert [row["bridgeName"] for row in answer["data"]] == ["to-a", "to-b"]
    assert set(answer["data"][0]) == set(names_of(BridgeStatus))
    assert answer["links"][0]["remoteMsgVpnsUri"].endswith(f"{BLUE}/to-a,auto/remoteMsgVpns")


async def test_one(still: Any, opened: Any) -> None:
    """One bridge by its two names; the virtual router is always auto."""
    async with opened(still) as client:
        data = (await client.get(f"{BLUE}/to-a,auto")).json()["data"]
    assert (data["bridgeName"], data["bridgeVirtualRouter"]) == ("to-a", "auto")
    assert (data["inboundState"], data["uptime"], data["health"]) == ("ready-in-sync", 60, "up")


@pytest.mark.parametrize("path", [ODD, ODD.replace("%2C", ",")])
async def test_a_name_with_a_comma(still: Any, opened: Any, path: str) -> None:
    """It is found, whether its comma was encoded or not."""
    async with opened(still) as client:
        assert (await client.get(path)).json()["data"]["bridgeName"] == "x,y [z]"


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        (f"{BLUE}/none,auto", 6, "Could not find match for bridge none,auto in msgVpn blue"),
        (f"{BLUE}/to-a,primary", 6, "Could not find match for bridge to-a,primary in msgVpn blue"),
        (f"{BLUE}/none,auto/remoteMsgVpns", 6, "Could not find match for bridge none,auto"),
        (f"{BLUE}/to-a", 11, "to-a is no key of 2 names joined by commas"),
        (f"{BLUE}/to-a,auto/remoteMsgVpns/far,h", 11, "far,h is no key of 3 names"),
        (
            f"{BLUE}/to-a,auto/remoteMsgVpns/far,h,",
            6,
            "Could not find match for remoteMsgVpn far,h,",
        ),
    ],
)
async def test_what_is_not_there(still: Any, opened: Any, path: str, code: int, said: str) -> None:
    """One error names what was looked for, and where."""
    async with opened(still) as client:
        answer = await client.get(path)
    assert answer.status_code == 400
    error = answer.json()["meta"]["error"]
    assert error["code"] == code
    assert error["description"].startswith(said)


async def test_remote_msg_vpns(still: Any, opened: Any) -> None:
    """A bridge's remotes by the three names of the field's key; the link of each leads to it."""
    async with opened(still) as client:
        answer = (await client.get(f"{BLUE}/to-a,auto/remoteMsgVpns")).json()
        assert set(answer["data"][0]) == set(names_of(RemoteStatus))
        assert answer["data"][0]["up"] is True
        (links,) = answer["links"]
        assert links["uri"].endswith("/remoteMsgVpns/far,198.51.100.7%3A55555,")
        again = (await client.get(links["uri"])).json()
    assert again["data"] == answer["data"][0]


async def test_all_bridges(still: Any, opened: Any) -> None:
    """The bridges of all message VPNs at once, with the remotes inside."""
    async with opened(still) as client:
        answer = (await client.get("/vpnrouter/v1/bridges")).json()
    found = [(row["msgVpnName"], row["bridgeName"]) for row in answer["data"]]
    assert found == [("a/b", "x,y [z]"), ("blue", "to-a"), ("blue", "to-b")]
    assert answer["data"][0]["remotes"][0]["remoteMsgVpnName"] == "far"
    assert answer["data"][0]["inboundFailureReason"].startswith("cannot connect")


BRIDGES = "/SEMP/v2/action/msgVpns/blue/bridges"
ODD_ACTIONS = "/SEMP/v2/action/msgVpns/a%2Fb/bridges/x%2Cy%20%5Bz%5D,auto"
TTL = {"eventName": "ttl-exceeded"}
READER = {"eve": {"password": "right", "role": "read-only"}}


@pytest.mark.parametrize(
    ("action", "body", "done"),
    [
        ("disconnect", {}, "disconnect"),
        ("clearStats", {}, "clear"),
        ("clearEvent", TTL, "ttl-exceeded"),
    ],
)
async def test_done(still: Any, opened: Any, action: str, body: Any, done: str) -> None:
    """What is asked for is done to the bridge of the path."""
    async with opened(still) as client:
        answer = await client.put(f"{BRIDGES}/to-a,auto/{action}", json=body)
        assert answer.status_code == 200, answer.text
        odd = await client.put(f"{ODD_ACTIONS}/clearStats")
    assert odd.status_code == 200
    assert still.done == [(done, "blue", "to-a"), ("clear", "a/b", "x,y [z]")]


async def test_not_connected(still: Any, opened: Any) -> None:
    """There is no connection to drop."""
    async with opened(still) as client:
        answer = await client.put(f"{ODD_ACTIONS}/disconnect")
    error = answer.json()["meta"]["error"]
    assert (error["status"], error["description"]) == (
        "NOT_ALLOWED",
        "bridge x,y [z] is not connected",
    )


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("none,auto/disconnect", {}),
        ("to-a,primary/clearStats", {}),
        ("to-a/clearStats", {}),
        ("to-a,auto/disconnect", {"force": True}),
        ("to-a,auto/clearEvent", {}),
        ("to-a,auto/clearEvent", {"eventName": "other"}),
        ("to-a,auto/clearEvent", {"eventName": 7}),
    ],
)
async def test_refused(still: Any, opened: Any, path: str, body: Any) -> None:
    """No such bridge, or nothing that can be done."""
    async with opened(still) as client:
        answer = await client.put(f"{BRIDGES}/{path}", json=body)
    assert answer.status_code == 400
    assert still.done == []


@pytest.mark.parametrize("action", ["disconnect", "clearStats", "clearEvent"])
async def test_reader(still: Any, opened: Any, action: str) -> None:
    """Who may only look changes nothing."""
    async with opened(still, READER, auth=("eve", "right")) as client:
        answer = await client.put(f"{BRIDGES}/to-a,auto/{action}", json=TTL)
    assert answer.status_code == 403
    assert still.done == []
