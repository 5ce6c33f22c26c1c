"""Subscriptions of all holders, and who gets a topic."""

from typing import Any

import pytest

BLUE = "/vpnrouter/v1/msgVpns/blue"
READER = {"rob": {"password": "right", "msg_vpns": ["blue"]}}
HELD = [
    *(("c1", "a"), ("c1", "c/+/d"), ("c2", "a"), ("c2", "b/#")),
    *(("orders", "orders"), ("small", "small")),
]


async def rows(client: Any, path: str) -> list[tuple[str, str]]:
    """Holder and topic of all rows, over all pages; each page counts all of them."""
    seen: list[tuple[str, str]] = []
    counts = set()
    while path:
        answer = (await client.get(path)).json()
        counts.add(answer["meta"]["count"])
        seen += [(row["name"], row["subscriptionTopic"]) for row in answer["data"]]
        path = answer["meta"].get("paging", {}).get("nextPageUri", "")
    assert counts == {len(seen)}
    return seen


@pytest.mark.parametrize("count", [1, 2, 3, 4, 10])
async def test_every_subscription_once(here: Any, count: int) -> None:
    """Every subscription comes once, whatever the pages cut apart, and a search counts what it finds."""
    others = [("other", "a"), ("x,y", "seven")]
    path = f"/vpnrouter/v1/subscriptions?count={count}"
    async with here.api() as client:
        assert await rows(client, path) == others + HELD
        found = await rows(client, f"{path}&where=subscriptionTopic==a")
        assert found == [("other", "a"), ("c1", "a"), ("c2", "a")]
        assert await rows(client, f"{BLUE}/subscriptions?count={count}") == HELD


async def test_hidden(here: Any) -> None:
    """A user gets neither subscriptions nor matches of a message VPN that is hidden."""
    async with here.api(READER, auth=("rob", "right")) as client:
        assert await rows(client, "/vpnrouter/v1/subscriptions") == HELD
        for path in ("subscriptions", "matches?topic=t/1"):
            answer = await client.get(f"/vpnrouter/v1/msgVpns/a%2Fb/{path}")
            assert answer.status_code == 400


async def test_links(here: Any) -> None:
    """A client's subscription has a path; of all, the holder has."""
    async with here.api() as client:
        answer = (await client.get(f"{BLUE}/subscriptions")).json()
        one = (await client.get(answer["links"][1]["uri"])).json()
        holders = [
            (await client.get(links["holderUri"])).json()["data"]
            for links in (answer["links"][1], answer["links"][4])
        ]
    assert one["data"] == answer["data"][1]
    assert (holders[0]["clientName"], holders[1]["queueName"]) == ("c1", "orders")


async def test_matches(here: Any) -> None:
    """Who gets a topic comes by pages; nobody is no error."""
    async with here.api() as client:
        for topic, found in (
            ("a", [("c1", "a"), ("c2", "a")]),
            ("c/x/d", [("c1", "c/+/d")]),
            ("t/2", []),
        ):
            assert await rows(client, f"{BLUE}/matches?topic={topic}&count=1") == found


@pytest.mark.parametrize(
    "query", ["", "topic=", "topic=a/%23", "topic=a&x=1", "topic=a&cursor=!", "topic=a&count=0"]
)
async def test_no_topic(here: Any, query: str) -> None:
    """What is no topic to publish to is an error of the one who asks."""
    async with here.api() as client:
        answer = await client.get(f"{BLUE}/matches?{query}")
    assert answer.status_code == 400
    assert answer.json()["meta"]["error"]["status"] == "INVALID_PARAMETER"
