from typing import Any

import pytest

from vpnrouter.management.responses import names_of
from vpnrouter.management.status.profiles import (
    AclProfileStatus,
    ClientProfileStatus,
    ClientUsernameStatus,
)

VPN = "/SEMP/v2/monitor/msgVpns/blue"
READER = {"rob": {"password": "right", "msg_vpns": ["a/b"]}}
COLLECTIONS = [
    ("clientUsernames", "clientUsername", ["ann", "d/e"], ClientUsernameStatus),
    ("clientProfiles", "clientProfileName", ["a/b", "default", "z"], ClientProfileStatus),
    ("aclProfiles", "aclProfileName", ["a/b", "default", "z"], AclProfileStatus),
]


@pytest.mark.parametrize(("collection", "key", "names", "kind"), COLLECTIONS)
async def test_list_and_get(
    still: Any, opened: Any, collection: str, key: str, names: list[str], kind: Any
) -> None:
    """Objects by name, each with its path; what does not exist is named."""
    async with opened(still) as client:
        answer = (await client.get(f"{VPN}/{collection}")).json()
        ones = [(await client.get(links["uri"])).json()["data"] for links in answer["links"]]
        missing = await client.get(f"{VPN}/{collection}/none")
    assert [row[key] for row in answer["data"]] == names
    assert set(answer["data"][0]) == set(names_of(kind))
    assert ones == answer["data"]
    assert sum(row["connectionCount"] for row in ones) == 3
    assert missing.json()["meta"]["error"]["status"] == "NOT_FOUND"
    assert "none in msgVpn blue" in missing.json()["meta"]["error"]["description"]


@pytest.mark.parametrize("collection", [each[0] for each in COLLECTIONS])
async def test_hidden(still: Any, opened: Any, collection: str) -> None:
    """Those of a message VPN that the user does not see do not exist."""
    async with opened(still, READER, auth=("rob", "right")) as client:
        answer = await client.get(f"{VPN}/{collection}")
    assert answer.json()["meta"]["error"]["description"].endswith("msgVpn blue")
