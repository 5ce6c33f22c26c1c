from typing import Any

import pytest

from vpnrouter.management.responses import names_of
from vpnrouter.management.status.queues import MsgStatus, QueueStatus

BLUE = "/SEMP/v2/monitor/msgVpns/blue/queues"
OURS = "/vpnrouter/v1/msgVpns/blue/queues/orders"
READER = {"rob": {"password": "right", "msg_vpns": ["blue"]}}


async def test_list(still: Any, opened: Any) -> None:
    """The queues of one message VPN by name, with all attributes."""
    async with opened(still) as client:
        answer = (await client.get(BLUE)).json()
    assert [row["queueName"] for row in answer["data"]] == ["dead", "orders"]
    assert set(answer["data"][0]) == set(names_of(QueueStatus))
    assert answer["links"][1]["msgsUri"].endswith(f"{BLUE}/orders/msgs")


async def test_where(still: Any, opened: Any) -> None:
    """Queues with messages in them, as an operator asks every minute."""
    async with opened(still) as client:
        answer = (await client.get(f"{BLUE}?where=msgCount>0&select=queueName,msgCount")).json()
    assert answer["data"] == [{"queueName": "orders", "msgCount": 25}]


async def test_one(still: Any, opened: Any) -> None:
    """One queue by its name, which may hold anything once it is encoded."""
    async with opened(still) as client:
        data = (await client.get("/SEMP/v2/monitor/msgVpns/a%2Fb/queues/x%2Cy")).json()["data"]
    assert (data["queueName"], data["msgCount"], data["msgSpoolUsage"]) == ("x,y", 1, 5)


@pytest.mark.parametrize("below", ["", "/msgs", "/txFlows"])
async def test_no_such_queue(still: Any, opened: Any, below: str) -> None:
    """One error names what was looked for, and where."""
    async with opened(still) as client:
        answer = await client.get(f"{BLUE}/none{below}")
    said = "Could not find match for queue none in msgVpn blue"
    assert answer.json()["meta"]["error"]["description"] == said


async def test_hidden(still: Any, opened: Any) -> None:
    """A user sees the queues of the own message VPNs only."""
    async with opened(still, READER, auth=("rob", "right")) as client:
        rows = (await client.get("/vpnrouter/v1/queues?count=100")).json()["data"]
        hidden = await client.get("/SEMP/v2/monitor/msgVpns/a%2Fb/queues")
    assert [(row["msgVpnName"], row["queueName"]) for row in rows] == [
        ("blue", "dead"),
        ("blue", "orders"),
    ]
    assert hidden.status_code == 400


async def test_consumers(still: Any, opened: Any) -> None:
    """The consumers by number, not by text; each has its link."""
    async with opened(still) as client:
        answer = (await client.get(f"{BLUE}/orders/txFlows")).json()
    assert [row["flowId"] for row in answer["data"]] == [2, 10]
    assert answer["links"][1]["uri"].endswith("/orders/txFlows/10")


async def test_browse(still: Any, opened: Any) -> None:
    """Messages come by rising id, page after page, and each once."""
    seen: list[int] = []
    async with opened(still) as client:
        path = f"{BLUE}/orders/msgs?count=10"
        while path:
            answer = (await client.get(path)).json()
            assert answer["meta"]["count"] == 25
            assert set(answer["data"][0]) == set(names_of(MsgStatus))
            seen += [row["msgId"] for row in answer["data"]]
            path = answer["meta"].get("paging", {}).get("nextPageUri", "")
    assert seen == list(range(1, 26))
    assert len(still.queues.contents["blue", "orders"]) == 25


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("where=msgId==3", "there is no query parameter where"),
        ("cursor=x", "x is no msgId"),
        ("cursor=-1", "-1 is no msgId"),
        (f"cursor={'9' * 30}", "is no msgId"),
        ("count=0", "count: "),
    ],
)
async def test_browse_by_what_is_no_query(still: Any, opened: Any, query: str, said: str) -> None:
    """Messages on disk are not searched, and a cursor is a message id."""
    async with opened(still) as client:
        answer = await client.get(f"{BLUE}/orders/msgs?{query}")
    assert answer.status_code == 400
    assert said in answer.json()["meta"]["error"]["description"]


async def test_payload(still: Any, opened: Any) -> None:
    """The bytes as they were published, which no browser may take for a page."""
    still.queues.contents["blue", "orders"][3] = b"<script>\0\xff"
    async with opened(still) as client:
        answer = await client.get(f"{OURS}/msgs/3/payload")
        missing = await client.get(f"{OURS}/msgs/99/payload")
        wrong = await client.get(f"{OURS}/msgs/%C2%B2/payload")
    assert answer.content == b"<script>\0\xff"
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert missing.json()["meta"]["error"]["code"] == 6
    assert wrong.json()["meta"]["error"]["code"] == 11
