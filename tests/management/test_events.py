"""`GET /vpnrouter/v1/events`, and what the gate tells the audit trail."""

from typing import Any

import httpx
import pytest

from vpnrouter import limits
from vpnrouter.config.router import Management
from vpnrouter.events import table
from vpnrouter.events.log import EventLog
from vpnrouter.management.access import Access
from vpnrouter.management.application import build_app
from vpnrouter.management.sources import EventStatus, NoAudit, NoEvents, Sources

PATH = "/vpnrouter/v1/events"
USERS = {
    "ann": {"password": "right", "role": "admin"},
    "rob": {"password": "right", "msg_vpns": ["blue"]},
}


class Log:
    """An EventSource over an EventLog, and an Audit that notes what it is told."""

    def __init__(self) -> None:
        self.log = EventLog("here", lambda: 7)
        self.denials: list[tuple[str, str]] = []

    def last_event_id(self) -> int:
        return self.log.last_event_id

    def events(self, after: int, most: int, sees: Any = None) -> list[EventStatus]:
        return [_status(event) for event in self.log.after(after, most, sees)]

    def newest_events(self, most: int, sees: Any = None) -> list[EventStatus]:
        return [_status(event) for event in self.log.newest(most, sees)]

    def denied(self, peer: str, why: str) -> None:
        self.denials.append((peer, why))


def _status(event: Any) -> EventStatus:
    kind = event.kind
    return EventStatus(
        event.event_id, event.time_ns, kind.level_name, kind.scope, kind.name, event.msg_vpn,
        event.name, event.text, kind.area,
    )  # fmt: skip


@pytest.fixture
def log() -> Log:
    """Six events: of blue, of a/b and of the router, twice."""
    made = Log()
    for number in range(6):
        made.log.raise_event(table.LINK_UP, ("blue", "a/b", "")[number % 3], "b", f"n{number}")
    return made


def client_of(log: Any, still: Any, users: Any = None, **more: Any) -> httpx.AsyncClient:
    """A client of an application with this log."""
    sources = Sources(monitor=still, events=log, audit=log)
    app = build_app(sources, Access.of(Management.model_validate({"users": users or {}})))
    transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
    settings: Any = {"base_url": "http://localhost:1", "trust_env": False} | more
    return httpx.AsyncClient(transport=transport, **settings)


async def ids(client: httpx.AsyncClient, query: str = "") -> list[int]:
    """The ids that a query gives."""
    answer = await client.get(PATH + query)
    assert answer.status_code == 200, answer.text
    return [row["eventId"] for row in answer.json()["data"]]


async def test_rows(still: Any, log: Log) -> None:
    """All attributes of an event, and the id of the newest one."""
    async with client_of(log, still) as client:
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


async def test_pages(still: Any, log: Log) -> None:
    """The newest ones, and those behind an id; of one message VPN where that is asked for."""
    async with client_of(log, still) as client:
        assert await ids(client) == [1, 2, 3, 4, 5, 6]
        assert await ids(client, "?count=2") == [5, 6]
        assert await ids(client, "?after=0&count=2") == [1, 2]
        assert await ids(client, "?after=5") == [6]
        assert await ids(client, "?after=6") == []
        assert await ids(client, "?msgVpnName=a%2Fb&after=0") == [2, 5]


async def test_some_see_some(still: Any, log: Log) -> None:
    """A user of one message VPN sees its events: none of others, none of the router."""
    async with client_of(log, still, USERS, auth=("rob", "right")) as client:
        assert await ids(client) == [1, 4]
        assert await ids(client, "?after=1") == [4]
        for hidden in ("a%2Fb", "none"):
            assert (await client.get(f"{PATH}?msgVpnName={hidden}")).status_code == 400
    async with client_of(log, still, USERS, auth=("ann", "right")) as client:
        assert await ids(client) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    "query",
    [
        *("after=-1", "after=x", "after=", f"after={1 << 53}", "after=1e3"),
        *("count=0", f"count={limits.EVENTS_PAGE + 1}", "count=", "colour=red"),
    ],
)
async def test_bad_queries(still: Any, log: Log, query: str) -> None:
    """An error that names the parameter."""
    async with client_of(log, still) as client:
        answer = await client.get(f"{PATH}?{query}")
    assert answer.status_code == 400
    assert query.partition("=")[0] in answer.json()["meta"]["error"]["description"]


async def test_failed_logins_are_told(still: Any, log: Log) -> None:
    """With the address and without the name; who asks without a name has not tried."""
    async with client_of(log, still, USERS) as client:
        assert (await client.get(PATH)).status_code == 401
        assert log.denials == []
        for _ in range(2):
            answer = await client.get(PATH, auth=("planted-secret", "wrong"))
            assert answer.status_code == 401
        await client.get(PATH, auth=("ann", "right"))
    assert log.denials == [("127.0.0.1", "Unknown user or wrong password")] * 2


async def test_a_router_without_a_log(still: Any) -> None:
    """Nothing to show, nobody to tell."""
    async with client_of(NoEvents(), still) as client:
        assert await ids(client) == []
        assert await ids(client, "?after=3") == []
    audit = NoAudit()
    audit.acted("", "x")
    audit.denied("", "x")
