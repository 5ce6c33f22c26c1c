from typing import Any

import pytest

BRIDGES = "/SEMP/v2/action/msgVpns/blue/bridges"
ODD = "/SEMP/v2/action/msgVpns/a%2Fb/bridges/x%2Cy%20%5Bz%5D,auto"
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
        odd = await client.put(f"{ODD}/clearStats")
    assert odd.status_code == 200
    assert still.done == [(done, "blue", "to-a"), ("clear", "a/b", "x,y [z]")]


async def test_not_connected(still: Any, opened: Any) -> None:
    """There is no connection to drop."""
    async with opened(still) as client:
        answer = await client.put(f"{ODD}/disconnect")
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
