"""Messages of queues as monitoring shows them, and what an operator does to them."""

from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.management.answers.rows import names_of
from vpnrouter.management.status.queues import MsgStatus

BLUE = "/SEMP/v2/monitor/msgVpns/blue/queues"
ACTION = "/SEMP/v2/action/msgVpns/blue/queues/orders"
OURS = "/vpnrouter/v1/msgVpns/blue/queues/orders"


async def test_consumers(here: Any) -> None:
    """The consumers of a queue come by number, not by text; each has its link."""
    for number in range(10):
        here.connect("blue", f"reader-{number}").bind("$queue/orders")
    async with here.api() as client:
        answer = (await client.get(f"{BLUE}/orders/txFlows?count=100")).json()
    assert [row["flowId"] for row in answer["data"]] == list(range(1, 11))
    assert answer["data"][9]["clientName"] == "reader-9"
    assert answer["links"][1]["uri"].endswith("/orders/txFlows/2")


async def test_browse(here: Any) -> None:
    """Messages come by rising id, page after page, and each once; they stay."""
    seen: list[int] = []
    async with here.api() as client:
        path = f"{BLUE}/orders/msgs?count=10"
        while path:
            answer = (await client.get(path)).json()
            assert answer["meta"]["count"] == 25
            assert set(answer["data"][0]) == set(names_of(MsgStatus))
            seen += [row["msgId"] for row in answer["data"]]
            path = answer["meta"].get("paging", {}).get("nextPageUri", "")
    assert seen == list(range(1, 26)) == here.ids("blue", "orders")


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
async def test_browse_by_what_is_no_query(here: Any, query: str, said: str) -> None:
    """Messages on disk are not searched, and a cursor is a message id."""
    async with here.api() as client:
        answer = await client.get(f"{BLUE}/orders/msgs?{query}")
    assert answer.status_code == 400
    assert said in answer.json()["meta"]["error"]["description"]


async def test_payload(here: Any) -> None:
    """The bytes come as they were published, and no browser may take them for a page."""
    here.publish("c1", "orders", b"<script>\0\xff")
    async with here.api() as client:
        answer = await client.get(f"{OURS}/msgs/{here.ids('blue', 'orders')[-1]}/payload")
        missing = await client.get(f"{OURS}/msgs/99/payload")
        wrong = await client.get(f"{OURS}/msgs/%C2%B2/payload")
    assert answer.content == b"<script>\0\xff"
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert missing.json()["meta"]["error"]["code"] == 6
    assert wrong.json()["meta"]["error"]["code"] == 11


@pytest.mark.parametrize(
    ("ids", "count"),
    [
        (None, 25),
        ([3, 3, 4, 99], 2),
        (list(range(limits.MANAGEMENT_MSG_IDS)), 25),
    ],
    ids=["all", "some, those that are gone not counted", "as many ids as there may be"],
)
async def test_delete(here: Any, ids: list[int] | None, count: int) -> None:
    """Messages by their ids, or all; the answer says how many went."""
    async with here.api() as client:
        body = {} if ids is None else {"msgIds": ids}
        answer = (await client.put(f"{ACTION}/deleteMsgs", json=body)).json()
    assert answer["data"] == {"msgCount": count}
    assert here.ids("blue", "orders") == [n for n in range(1, 26) if ids and n not in ids]


async def test_delete_one(here: Any) -> None:
    """One message is deleted; a second time it is not found."""
    async with here.api() as client:
        assert (await client.put(f"{ACTION}/msgs/3/delete", json={})).status_code == 200
        again = await client.put(f"{ACTION}/msgs/3/delete", json={})
    assert again.json()["meta"]["error"]["description"].endswith("msg 3 in queue orders")
    assert 3 not in here.ids("blue", "orders")


@pytest.mark.parametrize(("verb", "left"), [("copyMsgs", 25), ("moveMsgs", 23)])
async def test_copy_and_move(here: Any, verb: str, left: int) -> None:
    """A copy leaves the messages where they are, a move does not."""
    async with here.api() as client:
        body = {"toQueueName": "dead", "msgIds": [1, 2]}
        answer = (await client.put(f"{OURS}/{verb}", json=body)).json()
    assert answer["data"] == {"msgCount": 2}
    assert here.payloads("blue", "dead") == [b"1", b"2"]
    assert len(here.ids("blue", "orders")) == left


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ({}, 11, "toQueueName is missing"),
        ({"toQueueName": "orders"}, 11, "toQueueName is the queue itself"),
        ({"toQueueName": "none"}, 6, "Could not find match for queue none in msgVpn blue"),
        ({"toQueueName": "dead", "msgIds": ["1"]}, 11, "msgIds: not all of them are msgIds"),
        ({"toQueueName": "dead", "msgIds": [True]}, 11, "msgIds: not all of them are msgIds"),
        ({"toQueueName": "dead", "msgIds": [-1]}, 11, "msgIds: not all of them are msgIds"),
        ({"toQueueName": "dead", "msgIds": [1 << 64]}, 11, "msgIds: not all of them are msgIds"),
        (
            {"toQueueName": "dead", "msgIds": list(range(limits.MANAGEMENT_MSG_IDS + 1))},
            11,
            "msgIds: more than 1,000",
        ),
    ],
)
async def test_wrong_bodies(here: Any, body: dict[str, Any], code: int, said: str) -> None:
    """What cannot be done is refused before anything is done."""
    async with here.api() as client:
        error = (await client.put(f"{OURS}/moveMsgs", json=body)).json()["meta"]["error"]
    assert (error["code"], error["description"]) == (code, said)
    assert len(here.ids("blue", "orders")) == 25


@pytest.mark.parametrize("room", [3, 0])
async def test_a_queue_that_takes_no_more(here: Any, room: int) -> None:
    """The answer says why it ended, and how far it came."""
    async with here.api() as client:
        if not room:
            await client.put(f"{OURS}/moveMsgs", json={"toQueueName": "small", "msgIds": [1, 2, 3]})
        answer = await client.put(f"{OURS}/moveMsgs", json={"toQueueName": "small"})
    error = answer.json()["meta"]["error"]
    assert (error["code"], error["status"]) == (89, "NOT_ALLOWED")
    assert error["description"] == (
        f"{room} messages moved, the next was refused: 503 Max message usage exceeded"
    )
    assert here.payloads("blue", "small") == [b"1", b"2", b"3"]


@pytest.mark.parametrize(
    ("body", "brought"),
    [
        ({}, 27),
        ({"replayLogName": "log"}, 27),
        ({"fromTime": "BETWEEN"}, 2),
        ({"fromTime": 0}, 27),
        ({"afterMsgId": 20}, 7),
    ],
)
async def test_start_and_cancel_a_replay(here: Any, body: dict[str, Any], brought: int) -> None:
    """A replay is from the beginning, a time or a message; it is ended once, and then there is none."""
    here.mesh.wait(5_000)
    if body.get("fromTime"):
        body = {"fromTime": here.wall_ns() // 1_000_000_000 - 1}
    here.publish("c1", "orders", b"26", b"27")
    async with here.api() as client:
        await client.put(f"{ACTION}/deleteMsgs")
        answer = await client.put(f"{ACTION}/startReplay", json=body)
        assert answer.status_code == 200, answer.text
        here.mesh.wait(1_000)
        every = [b"%d" % number for number in range(1, 28)]
        assert here.payloads("blue", "orders") == every[len(every) - brought :]
        assert (await client.put(f"{ACTION}/cancelReplay")).status_code == 200
        error = (await client.put(f"{ACTION}/cancelReplay")).json()["meta"]["error"]
    assert (error["code"], error["description"]) == (89, "no replay to queue orders runs")


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ({"fromTime": 1, "afterMsgId": 1}, 11, "fromTime and afterMsgId: only one of them"),
        ({"fromTime": -1}, 11, "fromTime: -1 is no time"),
        ({"fromTime": 253_402_300_800}, 11, "fromTime: 253402300800 is no time"),
        ({"fromTime": "now"}, 11, "fromTime: 'now' is of the wrong kind"),
        ({"afterMsgId": 0}, 11, "afterMsgId: 0 is no msgId"),
        ({"afterMsgId": 1 << 64}, 11, f"afterMsgId: {1 << 64} is no msgId"),
        ({"from": 1}, 11, "there is no attribute from"),
        (
            {"afterMsgId": (1 << 64) - 1},
            89,
            "the replay was refused: 503 Replay Message Unavailable",
        ),
        ({"replayLogName": "none"}, 89, "the replay was refused: 503 Replay Disabled"),
    ],
)
async def test_wrong_replays(here: Any, body: dict[str, Any], code: int, said: str) -> None:
    """Nothing is replayed from where nobody can be, or from a log that there is not."""
    async with here.api() as client:
        error = (await client.put(f"{ACTION}/startReplay", json=body)).json()["meta"]["error"]
    assert (error["code"], error["description"]) == (code, said)
    assert here.context.queues.queue("blue", "orders").replay_start_count == 0
