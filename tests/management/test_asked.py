from typing import Any

import pytest

from vpnrouter import limits

PATH = "/SEMP/v2/monitor/msgVpns"
MOST = limits.MANAGEMENT_PAGE_ROWS


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?count=0", "count: "),
        (f"?count={MOST + 1}", "count: "),
        ("?count=many", "count: "),
        ("?cursor=x", "cursor: not one"),
        ("?where=x", "where: "),
        ("?select=x", "select: there is no attribute x"),
        ("?slect=x", "there is no query parameter slect"),
        ("/blue?count=1", "there is no query parameter count"),
        ("/blue?select=x", "select: there is no attribute x"),
    ],
)
async def test_a_wrong_query(still: Any, opened: Any, query: str, said: str) -> None:
    """Each is one error that says what is wrong; what is misspelt is not passed over."""
    async with opened(still) as client:
        answer = await client.get(PATH + query)
    assert answer.status_code == 400
    error = answer.json()["meta"]["error"]
    assert (error["code"], error["status"]) == (11, "INVALID_PARAMETER")
    assert error["description"].startswith(said)


async def test_pages(standing: Any, opened: Any) -> None:
    """Ten objects are a page unless the request says otherwise; the next page's address is given."""
    still = standing.Still([f"v{number:03}" for number in range(MOST + 5)], [])
    async with opened(still) as client:
        assert len((await client.get(PATH)).json()["data"]) == 10
        first = (await client.get(f"{PATH}?count={MOST}&select=msgVpnName")).json()
        assert len(first["data"]) == MOST
        assert first["meta"]["count"] == MOST + 5
        second = (await client.get(first["meta"]["paging"]["nextPageUri"])).json()
        names = [row["msgVpnName"] for row in first["data"] + second["data"]]
        assert names == list(still.router.vpns)
        assert "paging" not in second["meta"]
        assert second["data"][0].keys() == {"msgVpnName"}


async def test_where_and_select(still: Any, opened: Any) -> None:
    """The rows that meet the conditions, with the attributes selected; links stay."""
    async with opened(still) as client:
        answer = (
            await client.get("/vpnrouter/v1/bridges?where=health==down&select=bridgeName,up*")
        ).json()
    assert answer["data"] == [{"bridgeName": "x,y [z]", "uptime": 0}]
    assert answer["meta"]["count"] == 1
    assert answer["links"][0]["uri"].endswith("/msgVpns/a%2Fb/bridges/x%2Cy%20%5Bz%5D,auto")


async def test_sort(standing: Any, opened: Any) -> None:
    """A page can be sorted by attributes, unless its order is fixed by names."""
    still = standing.Still(["a", "b", "c"], [])
    async with opened(still) as client:
        uri = f"{PATH}?sort=-msgVpnName&count=2&select=msgVpnName"
        first = (await client.get(uri)).json()
        second = (await client.get(first["meta"]["paging"]["nextPageUri"])).json()
        nested = await client.get("/vpnrouter/v1/subscriptions?sort=name")
        unknown = await client.get(f"{PATH}?sort=nothing")
    assert [row["msgVpnName"] for row in first["data"] + second["data"]] == ["c", "b", "a"]
    assert first["meta"]["count"] == 3
    assert (nested.status_code, unknown.status_code) == (400, 400)
    assert "there is no attribute nothing" in unknown.text
