"""Queues as monitoring shows them, and what an operator does to their messages."""

from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.errors import SpoolError
from vpnrouter.management.responses import names_of
from vpnrouter.management.status.queues import (
    FlowStatus,
    MsgStatus,
    QueueStatus,
)

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


QUEUE_NAMES = """
    accessType bindRequestCount bindSuccessCount deadMsgQueue deletedMsgCount durable egressEnabled
    disabledDiscardedMsgCount highestMsgId ingressEnabled lastReplayFailureReason lastSpooledMsgId
    lowPriorityMsgCongestionDiscardedMsgCount lowestMsgId maxBindCount
    maxBindCountExceededBindFailureCount maxDeliveredUnackedMsgsPerFlow maxMsgSize
    maxMsgSizeExceededDiscardedMsgCount maxMsgSpoolUsage maxMsgSpoolUsageExceededDiscardedMsgCount
    maxRedeliveryCount maxRedeliveryExceededDiscardedMsgCount
    maxRedeliveryExceededToDmqFailedMsgCount maxRedeliveryExceededToDmqMsgCount maxTtl
    maxTtlExpiredDiscardedMsgCount maxTtlExpiredToDmqFailedMsgCount maxTtlExpiredToDmqMsgCount
    msgSpoolPeakUsage msgSpoolUsage msgVpnName otherBindFailureCount owner partitionCount permission
    queueName redeliveredMsgCount rejectMsgToSenderOnDiscardBehavior replayFailureCount
    replayStartCount replayState replaySuccessCount respectMsgPriorityEnabled respectTtlEnabled
    spooledByteCount spooledMsgCount txUnackedMsgCount
"""
FLOW_NAMES = """
    activityState clientName flowId unackedMsgCount usedWindowSize windowClosedCount windowSize
"""
MSG_NAMES = """
    contentSize dmqEligible expiryTime msgId partitionKey priority publisherId redeliveryCount
    spooledTime undelivered
"""


@pytest.mark.parametrize(
    ("kind", "names"),
    [(QueueStatus, QUEUE_NAMES), (FlowStatus, FLOW_NAMES), (MsgStatus, MSG_NAMES)],
)
def test_names_of_the_field(kind: type, names: str) -> None:
    """Every attribute that scripts know is there under its name."""
    assert set(names_of(kind)) >= set(names.split())


ACTION = "/SEMP/v2/action/msgVpns/blue/queues/orders"
USERS = {
    "rob": {"password": "right"},
    "ann": {"password": "right", "role": "admin", "msg_vpns": ["blue"]},
}
ALL = [
    (f"{ACTION}/deleteMsgs", {}),
    (f"{ACTION}/msgs/3/delete", {}),
    (f"{OURS}/copyMsgs", {"toQueueName": "dead"}),
    (f"{OURS}/moveMsgs", {"toQueueName": "dead"}),
    (f"{ACTION}/startReplay", {}),
    (f"{ACTION}/cancelReplay", {}),
]


async def test_delete_all(still: Any, opened: Any) -> None:
    """Everything goes, and the answer says how much that was."""
    async with opened(still) as client:
        answer = (await client.put(f"{ACTION}/deleteMsgs")).json()
    assert answer["data"] == {"msgCount": 25}
    assert still.queues.contents["blue", "orders"] == {}


async def test_delete_some(still: Any, opened: Any) -> None:
    """Messages by their ids; those that are gone are not counted."""
    async with opened(still) as client:
        body = {"msgIds": [3, 3, 4, 99]}
        answer = (await client.put(f"{ACTION}/deleteMsgs", json=body)).json()
    assert answer["data"] == {"msgCount": 2}
    assert len(still.queues.contents["blue", "orders"]) == 23


async def test_delete_one(still: Any, opened: Any) -> None:
    """One message; a second time it is not found."""
    async with opened(still) as client:
        assert (await client.put(f"{ACTION}/msgs/3/delete", json={})).status_code == 200
        again = await client.put(f"{ACTION}/msgs/3/delete", json={})
    assert again.json()["meta"]["error"]["description"].endswith("msg 3 in queue orders")


@pytest.mark.parametrize(("verb", "left"), [("copyMsgs", 25), ("moveMsgs", 23)])
async def test_copy_and_move(still: Any, opened: Any, verb: str, left: int) -> None:
    """A copy leaves the messages where they are, a move does not."""
    async with opened(still) as client:
        body = {"toQueueName": "dead", "msgIds": [1, 2]}
        answer = (await client.put(f"{OURS}/{verb}", json=body)).json()
    assert answer["data"] == {"msgCount": 2}
    assert sorted(still.queues.contents["blue", "dead"].values()) == [b"1", b"2"]
    assert len(still.queues.contents["blue", "orders"]) == left


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
async def test_wrong_bodies(
    still: Any, opened: Any, body: dict[str, Any], code: int, said: str
) -> None:
    """What cannot be done is refused before anything is done."""
    async with opened(still) as client:
        error = (await client.put(f"{OURS}/moveMsgs", json=body)).json()["meta"]["error"]
    assert (error["code"], error["description"]) == (code, said)
    assert len(still.queues.contents["blue", "orders"]) == 25


async def test_as_many_ids_as_there_may_be(still: Any, opened: Any) -> None:
    """The bound itself is taken."""
    body = {"msgIds": list(range(limits.MANAGEMENT_MSG_IDS))}
    async with opened(still) as client:
        answer = (await client.put(f"{ACTION}/deleteMsgs", json=body)).json()
    assert answer["data"] == {"msgCount": 25}


@pytest.mark.parametrize("room", [0, 3])
async def test_a_queue_that_takes_no_more(still: Any, opened: Any, room: int) -> None:
    """The answer says why it ended, and how far it came."""
    still.queues.refusal = "503 Spool Over Quota"
    still.queues.room = room
    async with opened(still) as client:
        answer = await client.put(f"{OURS}/moveMsgs", json={"toQueueName": "dead"})
    error = answer.json()["meta"]["error"]
    assert (error["code"], error["status"]) == (89, "NOT_ALLOWED")
    assert error["description"] == (
        f"{room} messages moved, the next was refused: 503 Spool Over Quota"
    )


@pytest.mark.parametrize(("path", "body"), ALL)
async def test_a_broken_store(still: Any, opened: Any, path: str, body: dict[str, Any]) -> None:
    """What the store says is passed on."""
    still.queues.failure = SpoolError("no space left", "full")
    async with opened(still) as client:
        answer = await client.put(path, json=body)
    assert answer.status_code == 503
    assert answer.json()["meta"]["error"]["description"] == "no space left"


@pytest.mark.parametrize(("path", "body"), ALL)
async def test_who_may(still: Any, opened: Any, path: str, body: dict[str, Any]) -> None:
    """read-only may not; admin may, in the message VPNs that they see."""
    still.queues.replays["blue", "orders"] = ("", 0, 0)
    async with opened(still, USERS, auth=("rob", "right")) as client:
        refused = await client.put(path, json=body)
    assert refused.status_code == 403
    assert len(still.queues.contents["blue", "orders"]) == 25
    async with opened(still, USERS, auth=("ann", "right")) as client:
        hidden = await client.put(path.replace("/blue/", "/a%2Fb/"), json=body)
        assert hidden.json()["meta"]["error"]["description"].endswith("msgVpn a/b")
        assert (await client.put(path, json=body)).status_code == 200


@pytest.mark.parametrize(("path", "body"), ALL)
async def test_only_put(still: Any, opened: Any, path: str, body: dict[str, Any]) -> None:
    """A form of a web page sends POST: it does nothing here."""
    async with opened(still) as client:
        assert (await client.post(path, json=body)).status_code == 405
    assert len(still.queues.contents["blue", "orders"]) == 25


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, ("", 0, 0)),
        ({"replayLogName": "log", "fromTime": 1_700_000_000}, ("log", 1_700_000_000 * 10**9, 0)),
        ({"fromTime": 0}, ("", 1, 0)),
        ({"afterMsgId": (1 << 64) - 1}, ("", 0, (1 << 64) - 1)),
    ],
)
async def test_start_and_cancel_a_replay(
    still: Any, opened: Any, body: dict[str, Any], expected: tuple[str, int, int]
) -> None:
    """From the beginning, a time or a message; ended once, and then there is none."""
    async with opened(still) as client:
        answer = await client.put(f"{ACTION}/startReplay", json=body)
        assert answer.status_code == 200
        assert still.queues.replays == {("blue", "orders"): expected}
        assert (await client.put(f"{ACTION}/cancelReplay")).status_code == 200
        error = (await client.put(f"{ACTION}/cancelReplay")).json()["meta"]["error"]
    assert (error["code"], error["description"]) == (89, "no replay to queue orders runs")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"fromTime": 1, "afterMsgId": 1}, "fromTime and afterMsgId: only one of them"),
        ({"fromTime": -1}, "fromTime: -1 is no time"),
        ({"fromTime": 253_402_300_800}, "fromTime: 253402300800 is no time"),
        ({"fromTime": "now"}, "fromTime: 'now' is of the wrong kind"),
        ({"afterMsgId": 0}, "afterMsgId: 0 is no msgId"),
        ({"afterMsgId": 1 << 64}, f"afterMsgId: {1 << 64} is no msgId"),
        ({"from": 1}, "there is no attribute from"),
    ],
)
async def test_wrong_replays(still: Any, opened: Any, body: dict[str, Any], said: str) -> None:
    """Nothing is replayed from where nobody can be."""
    async with opened(still) as client:
        error = (await client.put(f"{ACTION}/startReplay", json=body)).json()["meta"]["error"]
    assert (error["code"], error["description"]) == (11, said)
    assert still.queues.replays == {}


async def test_a_replay_that_is_refused(still: Any, opened: Any) -> None:
    """The answer has the field's reason."""
    still.queues.refusal = "503 Replay Disabled"
    async with opened(still) as client:
        error = (await client.put(f"{ACTION}/startReplay")).json()["meta"]["error"]
    assert error["code"] == 89
    assert error["description"] == "the replay was refused: 503 Replay Disabled"


async def test_clear_stats(still: Any, opened: Any) -> None:
    """The counts of a queue begin anew, for who may change things."""
    path = "/SEMP/v2/action/msgVpns/blue/queues/orders/clearStats"
    async with opened(still) as client:
        assert (await client.put(path)).status_code == 200
        assert (await client.put(path, json={"a": 1})).status_code == 400
        assert (await client.put(path.replace("orders", "none"))).status_code == 400
    reader = {"eve": {"password": "right", "role": "read-only"}}
    async with opened(still, reader, auth=("eve", "right")) as client:
        assert (await client.put(path)).status_code == 403
    assert still.queues.cleared == [("blue", "orders")]
