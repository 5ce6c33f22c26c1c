from dataclasses import fields
from typing import Any

from vpnrouter.management.msg_vpns import MsgVpnStatus
from vpnrouter.management.responses import camel, names_of

PATH = "/SEMP/v2/monitor/msgVpns"


async def test_list(still: Any, opened: Any) -> None:
    """All message VPNs by name, each with where it is and what it has."""
    async with opened(still) as client:
        answer = (await client.get(PATH)).json()
    assert [row["msgVpnName"] for row in answer["data"]] == ["a/b", "blue", "empty"]
    uri = f"http://localhost:8080{PATH}/a%2Fb"
    assert answer["links"][0] == {"uri": uri} | {
        f"{name}Uri": f"{uri}/{name}"
        for name in (
            *("aclProfiles", "bridges", "clientProfiles", "clientUsernames", "clients"),
            *("mqttSessions", "queues", "topicEndpoints"),
        )
    }
    assert answer["meta"]["count"] == 3


async def test_one(still: Any, opened: Any) -> None:
    """One message VPN with what was counted, discards by reason."""
    vpn = still.router.vpns["blue"]
    async with opened(still) as client:
        before = (await client.get(f"{PATH}/blue")).json()["data"]
        vpn.discards.add("loop-detected", 3)
        vpn.discards.add("client-not-connected", 2)
        vpn.enabled = False
        answer = (await client.get(f"{PATH}/blue")).json()
    data = answer["data"]
    assert (before["state"], before["discarded"], data["state"]) == ("up", {}, "down")
    assert (data["bridgeCount"], data["msgVpnConnections"], data["rxMsgCount"]) == (2, 3, 0)
    assert data["discarded"] == {"loop-detected": 3, "client-not-connected": 2}
    assert (data["discardedMsgCount"], data["rxDiscarded"]) == (5, {"loop-detected": 3})
    assert (data["rxDiscardedMsgCount"], data["txDiscardedMsgCount"]) == (3, 2)
    assert data["txDiscarded"] == {"client-not-connected": 2}
    assert answer["links"]["uri"].endswith(f"{PATH}/blue")


async def test_links_lead_on(still: Any, opened: Any) -> None:
    """Every link of every row answers."""
    async with opened(still) as client:
        for links in (await client.get(PATH)).json()["links"]:
            for uri in links.values():
                assert (await client.get(uri)).status_code == 200, uri


def test_every_attribute_is_shown() -> None:
    """A message VPN has no attribute that a row would leave out."""
    assert names_of(MsgVpnStatus) == tuple(camel(field.name) for field in fields(MsgVpnStatus))
