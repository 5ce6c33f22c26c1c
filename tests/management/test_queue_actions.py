from typing import Any

import pytest

from vpnrouter import limits
from vpnrouter.errors import SpoolError

ACTION = "/SEMP/v2/action/msgVpns/blue/queues/orders"
OURS = "/vpnrouter/v1/msgVpns/blue/queues/orders"
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
