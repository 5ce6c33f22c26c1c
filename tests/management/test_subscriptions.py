from typing import Any

import pytest

MATCHES = "/vpnrouter/v1/msgVpns/blue/matches"
READER = {"rob": {"password": "right", "msg_vpns": ["blue"]}}
BLUE = [("c1", "a"), ("c1", "c/+/d"), ("c2", "a"), ("c2", "b/#")]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 10])
async def test_all(still: Any, opened: Any, count: int) -> None:
    """Every subscription once, whatever the pages cut apart."""
    seen = []
    async with opened(still) as client:
        path = f"/vpnrouter/v1/subscriptions?count={count}"
        while path:
            answer = (await client.get(path)).json()
            assert answer["meta"]["count"] == 5
            assert len(answer["data"]) == len(answer["links"]) <= count
            seen += [(row["name"], row["subscriptionTopic"]) for row in answer["data"]]
            path = answer["meta"].get("paging", {}).get("nextPageUri", "")
    assert seen == [("other", "a"), *BLUE]


async def test_hidden(still: Any, opened: Any) -> None:
    """A user sees the own message VPNs only, one or all."""
    async with opened(still, READER, auth=("rob", "right")) as client:
        both = [
            (await client.get(path)).json()
            for path in ("/vpnrouter/v1/subscriptions", "/vpnrouter/v1/msgVpns/blue/subscriptions")
        ]
        hidden = [
            await client.get(f"/vpnrouter/v1/msgVpns/a%2Fb/{path}")
            for path in ("subscriptions", "matches?topic=t/1")
        ]
    for answer in both:
        assert [(row["name"], row["subscriptionTopic"]) for row in answer["data"]] == BLUE
        assert answer["meta"]["count"] == 4
    assert [answer.status_code for answer in hidden] == [400, 400]


async def test_where(still: Any, opened: Any) -> None:
    """A search over all of them counts what it finds, over several pages."""
    seen = []
    async with opened(still) as client:
        path = "/vpnrouter/v1/subscriptions?where=subscriptionTopic==a&count=2&select=name"
        while path:
            answer = (await client.get(path)).json()
            assert answer["meta"]["count"] == 3
            seen += answer["data"]
            path = answer["meta"].get("paging", {}).get("nextPageUri", "")
    assert seen == [{"name": "other"}, {"name": "c1"}, {"name": "c2"}]


async def test_links(still: Any, opened: Any) -> None:
    """A client's subscription has a path; of all, the holder has."""
    async with opened(still) as client:
        answer = (await client.get("/vpnrouter/v1/msgVpns/blue/subscriptions")).json()
        one = (await client.get(answer["links"][1]["uri"])).json()
        holder = (await client.get(answer["links"][1]["holderUri"])).json()
    assert one["data"] == answer["data"][1]
    assert holder["data"]["clientName"] == "c1"


async def test_matches(still: Any, opened: Any) -> None:
    """Who gets a topic, by pages; nobody is no error."""
    async with opened(still) as client:
        first = (await client.get(f"{MATCHES}?topic=a&count=1")).json()
        second = (await client.get(first["meta"]["paging"]["nextPageUri"])).json()
        nobody = (await client.get(f"{MATCHES}?topic=t/2")).json()
    rows = first["data"] + second["data"]
    assert [(row["name"], row["subscriptionTopic"]) for row in rows] == [("c1", "a"), ("c2", "a")]
    assert first["meta"]["count"] == 2
    assert "paging" not in second["meta"]
    assert (nobody["data"], nobody["meta"]["count"]) == ([], 0)


@pytest.mark.parametrize(
    "query", ["", "topic=", "topic=a/%23", "topic=a&x=1", "topic=a&cursor=!", "topic=a&count=0"]
)
async def test_no_topic(still: Any, opened: Any, query: str) -> None:
    """What is no topic to publish to is an error of the one who asks."""
    async with opened(still) as client:
        answer = await client.get(f"{MATCHES}?{query}")
    assert answer.status_code == 400
    assert answer.json()["meta"]["error"]["status"] == "INVALID_PARAMETER"
