from typing import Any

USERS = {"ann": {"password": "right"}}
PATH = "/SEMP/v2/monitor/msgVpns"


async def test_nothing_is_told_without_login(still: Any, opened: Any) -> None:
    """Every path but health wants a user, those that do not exist and the description as well."""
    async with opened(still, USERS) as client:
        for path in (PATH, "/vpnrouter/v1/bridges", "/SEMP/v2/openapi.json", "/nope", "/health"):
            answer = await client.get(path)
            assert answer.status_code == 401, path
            assert answer.headers["www-authenticate"].startswith('Basic realm="vpnrouter"')
            assert answer.json()["meta"]["error"]["status"] == "UNAUTHORIZED"
        assert (await client.get("/health/live")).status_code == 200
        assert still.looked == 0


async def test_login(still: Any, opened: Any) -> None:
    """With user and password the answer comes; with a wrong one it does not."""
    async with opened(still, USERS, peer="192.0.2.1") as client:
        assert (await client.get(PATH, auth=("ann", "right"))).status_code == 200
        assert (await client.get(PATH, auth=("ann", "wrong"))).status_code == 401


async def test_elsewhere(still: Any, opened: Any) -> None:
    """Without users an address elsewhere is refused, and no header talks the router out of it."""
    async with opened(still, peer="192.0.2.1") as client:
        for headers in ({}, {"x-forwarded-for": "127.0.0.1"}, {"forwarded": "for=127.0.0.1"}):
            answer = await client.get(PATH, headers=headers)
            assert answer.status_code == 403
            assert "www-authenticate" not in answer.headers


async def test_a_name_with_a_slash(still: Any, opened: Any) -> None:
    """A path is taken apart as it was sent, before its names are decoded."""
    async with opened(still) as client:
        answer = await client.get(f"{PATH}/a%2Fb")
        assert answer.json()["data"]["msgVpnName"] == "a/b"
