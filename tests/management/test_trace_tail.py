"""`GET /vpnrouter/v1/traces`."""

from typing import Any

import pytest

from vpnrouter.management.live_traces import TraceBatch, TraceFilter

PATH = "/vpnrouter/v1/traces"
READER = {"rob": {"password": "right", "msg_vpns": ["blue"]}}


class Tap:
    """Traces that are shown whatever is asked, and note what is."""

    def __init__(self) -> None:
        self.asked: list[tuple[TraceFilter, int, int]] = []
        self.answer: TraceBatch | None = TraceBatch(7, [{"event": "ingress", "topic": "a"}], 2)

    def look(self, wish: TraceFilter, after: int, most: int) -> TraceBatch | None:
        self.asked.append((wish, after, most))
        return self.answer


@pytest.fixture
def tap(still: Any) -> Tap:
    """What applications of this test get their traces from."""
    still.context.traces = tap = Tap()
    return tap


async def test_rows(still: Any, opened: Any, tap: Tap) -> None:
    """Rows as they are, the mark to go on from, and how many are left out."""
    async with opened(still) as client:
        answer = (await client.get(PATH)).json()
    assert answer["data"] == [{"event": "ingress", "topic": "a"}]
    meta = answer["meta"]
    assert (meta["mark"], meta["missed"], meta["tracing"], meta["count"]) == (7, 2, True, 1)
    assert tap.asked == [(TraceFilter(), 0, 100)]


async def test_wish(still: Any, opened: Any, tap: Tap) -> None:
    """Everything that can be asked for; a user of one message VPN asks for that one's rows."""
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    query = {
        "after": "5",
        "count": "9",
        "topic": "a/>",
        "event": "discard",
        "msgVpnName": "blue",
        "traceId": trace_id.upper(),
    }
    async with opened(still, READER, auth=("rob", "right")) as client:
        assert (await client.get(PATH, params=query)).status_code == 200
    wish = TraceFilter("a/>", "discard", "blue", trace_id, frozenset({"blue"}))
    assert tap.asked == [(wish, 5, 9)]


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
async def test_wrong(still: Any, opened: Any, tap: Tap, query: str, said: str) -> None:
    """What is wrong is told, and nothing is looked at."""
    async with opened(still) as client:
        answer = await client.get(f"{PATH}?{query}")
    assert answer.status_code == 400
    assert said in answer.json()["meta"]["error"]["description"]
    assert not tap.asked


async def test_too_many(still: Any, opened: Any, tap: Tap) -> None:
    """When all places are taken, somebody else may try again."""
    tap.answer = None
    async with opened(still) as client:
        assert (await client.get(PATH)).status_code == 503


async def test_off(still: Any, opened: Any) -> None:
    """A router that traces nothing says so."""
    async with opened(still) as client:
        answer = (await client.get(f"{PATH}?after=3")).json()
    assert answer["data"] == []
    assert (answer["meta"]["tracing"], answer["meta"]["mark"]) == (False, 3)
