from typing import Any

import pytest

BLUE_ONLY = {"bob": {"password": "pw", "msg_vpns": ["blue"]}}
MONITOR = "/SEMP/v2/monitor/msgVpns"


@pytest.mark.parametrize("path", ["/a%2Fb", "/a%2Fb/bridges", "/a%2Fb/bridges/x,auto", "/nope"])
async def test_a_hidden_msg_vpn_does_not_exist(still: Any, opened: Any, path: str) -> None:
    """Whoever may not see a message VPN hears the same as if there were none."""
    async with opened(still, BLUE_ONLY, auth=("bob", "pw")) as client:
        answer = await client.get(MONITOR + path)
    name = "nope" if path == "/nope" else "a/b"
    assert answer.status_code == 400
    error = answer.json()["meta"]["error"]
    assert error["description"] == f"Could not find match for msgVpn {name}"
    assert still.looked == 0


async def test_lists_leave_out_what_is_hidden(still: Any, opened: Any) -> None:
    """Neither rows nor counts tell of it."""
    async with opened(still, BLUE_ONLY, auth=("bob", "pw")) as client:
        vpns = (await client.get(MONITOR)).json()
        bridges = (await client.get("/vpnrouter/v1/bridges")).json()
    assert [row["msgVpnName"] for row in vpns["data"]] == ["blue"]
    assert vpns["meta"]["count"] == 1
    assert {row["msgVpnName"] for row in bridges["data"]} == {"blue"}
    assert bridges["meta"]["count"] == 2


async def test_what_is_seen(still: Any, opened: Any) -> None:
    """The message VPN that the user may see is answered in full."""
    async with opened(still, BLUE_ONLY, auth=("bob", "pw")) as client:
        assert (await client.get(f"{MONITOR}/blue/bridges/to-a,auto")).status_code == 200
