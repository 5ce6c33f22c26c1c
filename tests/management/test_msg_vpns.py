from typing import Any

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
    async with opened(still) as client:
        answer = (await client.get(f"{PATH}/blue")).json()
    assert answer["data"]["bridgeCount"] == 2
    assert answer["data"]["discarded"] == {"loop": 9}
    assert answer["links"]["uri"].endswith(f"{PATH}/blue")


async def test_links_lead_on(still: Any, opened: Any) -> None:
    """Every link of every row answers."""
    async with opened(still) as client:
        for links in (await client.get(PATH)).json()["links"]:
            for uri in links.values():
                assert (await client.get(uri)).status_code == 200, uri
