"""`GET /vpnrouter/v1/traces`."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from vpnrouter import limits

PATH = "/vpnrouter/v1/traces"
READER = {"rob": {"password": "right", "msg_vpns": ["a/b"]}}


@pytest.fixture
def write(here: Any, tmp_path: Path) -> Iterator[Callable[[], None]]:
    """Hands what was recorded to the writer of trace files, who shows it to whoever looks."""
    with here.traced(tmp_path) as hand_over:
        yield hand_over


async def look(client: Any, mark: int = 0, **query: str) -> tuple[list[Any], Any]:
    """Rows behind a mark, and the other facts of the answer."""
    answer = await client.get(PATH, params={"after": str(mark)} | query)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"], answer.json()["meta"]


async def test_rows(here: Any, write: Callable[[], None]) -> None:
    """Rows come from the first look on, with the mark to go on from and how many are left out."""
    async with here.api() as client:
        rows, meta = await look(client)
        assert (rows, meta["missed"], meta["tracing"]) == ([], 0, True)
        here.clients["c1"].publish("a")
        here.clients["c1"].publish("nobody")
        write()
        rows, meta = await look(client, meta["mark"])
        assert meta["count"] == len(rows)
        assert ("here", "blue", "ingress", "a", "c1") in [
            tuple(row.get(name) for name in ("router", "vpn", "event", "topic", "client"))
            for row in rows
        ]
        assert "no-subscription-match" in [row.get("reason") for row in rows]
        assert (await look(client, meta["mark"]))[0] == []
        here.clients["c1"].publish("a")
        write()
        rows, later = await look(client, meta["mark"], count="1")
        assert (len(rows), later["mark"]) == (1, meta["mark"] + 1)


@pytest.mark.parametrize(
    ("query", "topics"),
    [
        ({"topic": "a/>"}, {"a/1", "a/2"}),
        ({"event": "ingress", "topic": "a/1"}, {"a/1"}),
        ({"msgVpnName": "blue"}, {"a/1", "a/2"}),
        ({"event": "discard"}, {"a/1", "a/2", "other"}),
        ({"traceId": "F" * 32}, set()),
    ],
)
async def test_wish(here: Any, write: Any, query: dict[str, str], topics: set[str]) -> None:
    """Rows are of the topics, event, message VPN or trace that is asked for."""
    async with here.api() as client:
        _, meta = await look(client, **query)
        for name, topic in (("c1", "a/1"), ("c1", "a/2"), ("other", "other")):
            here.clients[name].publish(topic)
        write()
        rows, _ = await look(client, meta["mark"], **query)
    assert {row["topic"] for row in rows} == topics
    assert {row["event"] for row in rows} <= {query.get("event", row["event"]) for row in rows}


async def test_hidden(here: Any, write: Any) -> None:
    """A user of one message VPN gets that one's rows."""
    async with here.api(READER, auth=("rob", "right")) as client:
        _, meta = await look(client)
        here.clients["c1"].publish("a/1")
        here.clients["other"].publish("a/2")
        write()
        rows, _ = await look(client, meta["mark"])
    assert {(row["vpn"], row["topic"]) for row in rows} == {("a/b", "a/2")}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("x=1", "there is no query parameter x"),
        ("event=nothing", "event: nothing is none of ingress, "),
        ("traceId=12", "traceId: 32 hexadecimal digits"),
        (f"traceId={'g' * 32}", "traceId: 32 hexadecimal digits"),
        ("topic=%00", "topic: "),
        ("after=-1", "after: "),
        ("count=1001", "count: "),
        (f"after={1 << 60}", "after: "),
    ],
)
async def test_wrong(here: Any, write: Any, query: str, said: str) -> None:
    """What is wrong is told, and nothing is looked at."""
    async with here.api() as client:
        answer = await client.get(f"{PATH}?{query}")
    assert answer.status_code == 400
    assert said in answer.json()["meta"]["error"]["description"]
    assert here.context.traces.tails == 0


async def test_too_many(here: Any, write: Any) -> None:
    """When all places are taken, somebody else may try again later."""
    async with here.api() as client:
        for number in range(limits.TRACE_TAILS):
            await look(client, topic=f"t/{number}")
        assert (await client.get(PATH)).status_code == 503
        here.mesh.wait(11_000)
        assert (await client.get(PATH)).status_code == 200


async def test_off(here: Any) -> None:
    """A router that traces nothing says so."""
    async with here.api() as client:
        rows, meta = await look(client, 3)
    assert (rows, meta["tracing"], meta["mark"]) == ([], False, 3)
