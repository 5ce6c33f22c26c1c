"""`GET /vpnrouter/v1/events`, and what the gate tells the audit trail."""

from typing import Any

import httpx
import pytest

from vpnrouter import limits
from vpnrouter.events import table
from vpnrouter.events.log import EventLog
from vpnrouter.management.audit import Audit

PATH = "/vpnrouter/v1/events"
USERS = {
    "ann": {"password": "right", "role": "admin"},
    "rob": {"password": "right", "msg_vpns": ["blue"]},
}


def client_of(here: Any, users: Any = None, **more: Any) -> httpx.AsyncClient:
    """A client of an application with six events: of blue, of a/b and of the router, twice."""
    log = EventLog("here", lambda: 7)
    here.context.log, here.context.audit = log, Audit(log)
    for number in range(6):
        log.raise_event(table.LINK_UP, ("blue", "a/b", "")[number % 3], "b", f"n{number}")
    client: httpx.AsyncClient = here.api(users, **more)
    return client


async def ids(client: httpx.AsyncClient, query: str = "") -> list[int]:
    """The ids that a query gives."""
    answer = await client.get(PATH + query)
    assert answer.status_code == 200, answer.text
    return [row["eventId"] for row in answer.json()["data"]]


async def test_rows(here: Any) -> None:
    """All attributes of an event, and the id of the newest one."""
    async with client_of(here) as client:
        body = (await client.get(f"{PATH}?count=1")).json()
    assert body["data"] == [
        {
            "eventId": 6,
            "timeNs": 7,
            "level": "notice",
            "scope": "VPN",
            "event": "VPN_BRIDGING_LINK_UP",
            "msgVpnName": "",
            "name": "b",
            "text": "n5",
            "area": "bridge",
        }
    ]
    assert body["meta"]["lastEventId"] == 6


async def test_pages(here: Any) -> None:
    """The newest ones, and those behind an id; of one message VPN where that is asked for."""
    async with client_of(here) as client:
        assert await ids(client) == [1, 2, 3, 4, 5, 6]
        assert await ids(client, "?count=2") == [5, 6]
        assert await ids(client, "?after=0&count=2") == [1, 2]
        assert await ids(client, "?after=5") == [6]
        assert await ids(client, "?after=6") == []
        assert await ids(client, "?msgVpnName=a%2Fb&after=0") == [2, 5]


async def test_some_see_some(here: Any) -> None:
    """A user of one message VPN sees its events: none of others, none of the router."""
    async with client_of(here, USERS, auth=("rob", "right")) as client:
        assert await ids(client) == [1, 4]
        assert await ids(client, "?after=1") == [4]
        for hidden in ("a%2Fb", "none"):
            assert (await client.get(f"{PATH}?msgVpnName={hidden}")).status_code == 400
    async with client_of(here, USERS, auth=("ann", "right")) as client:
        assert await ids(client) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    "query",
    [
        *("after=-1", "after=x", "after=", f"after={1 << 53}", "after=1e3"),
        *("count=0", f"count={limits.EVENTS_PAGE + 1}", "count=", "colour=red"),
    ],
)
async def test_bad_queries(here: Any, query: str) -> None:
    """An error that names the parameter."""
    async with client_of(here) as client:
        answer = await client.get(f"{PATH}?{query}")
    assert answer.status_code == 400
    assert query.partition("=")[0] in answer.json()["meta"]["error"]["description"]


async def test_failed_logins_are_told(here: Any) -> None:
    """With the address and without the name; who asks without a name has not tried."""
    async with client_of(here, USERS) as client:
        assert (await client.get(PATH)).status_code == 401
        for _ in range(2):
            answer = await client.get(PATH, auth=("planted-secret", "wrong"))
            assert answer.status_code == 401
        await client.get(PATH, auth=("ann", "right"))
    told = [(each.name, each.text) for each in here.context.log.after(6, 9)]
    text = "login from 127.0.0.1 failed: Unknown user or wrong password"
    assert told == [("127.0.0.1", text)] * 2
