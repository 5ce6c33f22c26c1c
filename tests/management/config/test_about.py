"""Tests of what client libraries ask first."""

from typing import Any

ROOT = "http://localhost:8080/SEMP/v2"


async def test_the_three_apis_tell_what_they_are(configuring: Any, editor: Any) -> None:
    """The three apis tell what they are."""
    async with configuring(editor) as client:
        for api in ("config", "monitor", "action"):
            row = (await client.get(f"{ROOT}/{api}/about/api")).json()["data"]
            assert row["platform"] == "vpnrouter"
            assert row["sempVersion"] == "2.49"
            answer = (await client.get(f"{ROOT}/{api}/about/user")).json()
            assert answer["data"]["globalAccessLevel"] == "admin"
            vpns = (await client.get(answer["links"]["msgVpnsUri"] + "?count=2")).json()
            assert [row["msgVpnName"] for row in vpns["data"]] == ["blue", "green"]
            assert {row["accessLevel"] for row in vpns["data"]} == {"read-write"}


async def test_the_router_tells_of_itself(configuring: Any, editor: Any) -> None:
    """The router tells of itself."""
    async with configuring(editor) as client:
        answer = (await client.get(f"{ROOT}/config")).json()
        assert answer["data"] == {
            "guaranteedMsgingEnabled": True,
            "guaranteedMsgingMaxMsgSpoolUsage": 10_000,
            "routerName": "here",
        }
        for link in answer["links"].values():
            assert (await client.get(link)).status_code == 200, link
        answer = (await client.get(f"{ROOT}/config?select=routerName")).json()
        assert answer["data"] == {"routerName": "here"}


async def test_levels_follow_the_role_and_the_message_vpns(configuring: Any, editor: Any) -> None:
    """Levels follow the role and the message vpns."""
    users = {
        "viewer": {"password": "p", "role": "read-only"},
        "mine": {"password": "p", "role": "admin", "msg_vpns": ["blue"]},
    }
    for name, level, access in (
        ("viewer", "read-only", "read-only"),
        ("mine", "none", "read-write"),
    ):
        async with configuring(editor, users, (name, "p")) as client:
            row = (await client.get("/about/user")).json()["data"]
            assert (row["globalAccessLevel"], row["userName"]) == (level, name)
            rows = (await client.get("/about/user/msgVpns")).json()["data"]
            assert {row["accessLevel"] for row in rows} == {access}
            assert len(rows) == (1 if name == "mine" else 2)
            answer = await client.get(f"{ROOT}/config")
            assert answer.status_code == (400 if name == "mine" else 200)
