from typing import Any

from vpnrouter import __version__


async def test_whoever_asks_learns_what_may_be_done(still: Any, opened: Any) -> None:
    """A viewer is told that it is one, and what the router is called."""
    users = {"ann": {"password": "pw", "role": "read-only", "msg_vpns": ["blue"]}}
    async with opened(still, users, auth=("ann", "pw")) as client:
        answer = (await client.get("/vpnrouter/v1/router")).json()
    assert answer["data"] == {
        "routerName": "here",
        "version": __version__,
        "ready": True,
        "user": "ann",
        "role": "read-only",
        "allMsgVpns": False,
    }


async def test_this_machine_may_change(still: Any, opened: Any) -> None:
    """Without users, whoever is let in is an admin of everything."""
    async with opened(still) as client:
        answer = (await client.get("/vpnrouter/v1/router")).json()
    assert (answer["data"]["role"], answer["data"]["allMsgVpns"]) == ("admin", True)
