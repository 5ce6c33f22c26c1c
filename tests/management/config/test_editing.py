"""Tests of who may change what, of secrets, and of how a refused configuration is told."""

from typing import Any

import pytest

from vpnrouter.config.secrets import verify_password
from vpnrouter.errors import OperationError

BLUE = "/msgVpns/blue"
USERS = {
    "root": {"password": "p", "role": "admin"},
    "viewer": {"password": "p", "role": "read-only"},
    "mine": {"password": "p", "role": "admin", "msg_vpns": ["green"]},
}


def error_of(answer: Any) -> dict[str, Any]:
    """The error of an answer that says no."""
    assert answer.status_code >= 400, answer.text
    found: dict[str, Any] = answer.json()["meta"]["error"]
    return found


async def test_a_viewer_looks_and_changes_nothing(configuring: Any, editor: Any) -> None:
    """A viewer looks and changes nothing."""
    digest = editor.digest()
    async with configuring(editor, USERS, ("viewer", "p")) as client:
        assert (await client.get(f"{BLUE}/queues/orders")).status_code == 200
        for method, path in (
            ("POST", f"{BLUE}/queues"),
            ("PATCH", f"{BLUE}/queues/orders"),
            ("PUT", f"{BLUE}/queues/orders"),
            ("DELETE", f"{BLUE}/queues/orders"),
            ("DELETE", "/msgVpns/gone"),
        ):
            answer = await client.request(method, path, json={} if method != "DELETE" else None)
            assert answer.status_code == 403
            assert error_of(answer)["code"] == 72
    assert editor.digest() == digest


async def test_an_admin_of_one_message_vpn_stays_in_it(configuring: Any, editor: Any) -> None:
    """An admin of one message vpn stays in it."""
    async with configuring(editor, USERS, ("mine", "p")) as client:
        listed = (await client.get("/msgVpns")).json()
        assert [row["msgVpnName"] for row in listed["data"]] == ["green"]
        assert listed["meta"]["count"] == 1
        for method, path, body in (
            ("GET", BLUE, None),
            ("GET", f"{BLUE}/queues", None),
            ("GET", f"{BLUE}/queues/orders", None),
            ("POST", f"{BLUE}/queues", {"queueName": "q"}),
            ("PATCH", BLUE, {"enabled": False}),
            ("PUT", BLUE, {}),
            ("DELETE", BLUE, None),
            ("DELETE", f"{BLUE}/queues/orders", None),
        ):
            hidden = error_of(await client.request(method, path, json=body))
            gone = path.replace("/blue", "/gone")
            missing = error_of(await client.request(method, gone, json=body))
            assert hidden["code"] == 6
            # What is hidden answers as if it did not exist.
            assert str(hidden).replace("blue", "gone") == str(missing)
        for method, path, body in (
            ("POST", "/msgVpns", {"msgVpnName": "red"}),
            ("POST", "/msgVpns", {"msgVpnName": "blue"}),
            ("DELETE", "/msgVpns/green", None),
        ):
            answer = await client.request(method, path, json=body)
            assert answer.status_code == 403, answer.text
        answer = await client.post("/msgVpns/green/queues", json={"queueName": "q"})
        assert answer.status_code == 200
        for file in ("bridgingTlsServerCertCa", "authenticationClientCertCa"):
            answer = await client.patch("/msgVpns/green", json={file: "/etc/passwd"})
            assert error_of(answer)["status"] == "NOT_SUPPORTED"
    assert list(editor.overlay()["msg_vpns"]) == ["green"]


async def test_a_refusal_tells_such_an_admin_nothing_of_others(
    configuring: Any, editor: Any
) -> None:
    """A refusal tells such an admin nothing of others."""
    async with configuring(editor, USERS, ("mine", "p")) as client:
        answer = await client.patch("/msgVpns/green/queues/q", json={"maxTtl": 1})
        assert error_of(answer)["code"] == 6
        body = {"clientUsername": "u", "clientProfileName": "gone"}
        answer = await client.post("/msgVpns/green/clientUsernames", json=body)
        said = error_of(answer)["description"]
        assert said == "clientProfileName: there is no client profile gone"


async def test_client_username_passwords_become_hashes(configuring: Any, editor: Any) -> None:
    """Client username passwords become hashes."""
    users = f"{BLUE}/clientUsernames"
    async with configuring(editor) as client:
        body = {"clientUsername": "u", "password": "pass-of-u", "enabled": True}
        answer = await client.post(users, json=body)
        assert "password" not in answer.json()["data"]
        written = editor.document()["msg_vpns"]["blue"]["client_usernames"]["u"]
        stored = written["password"]
        assert stored.startswith("scram-sha-256$"), "bridges may log in with it as well"
        assert verify_password(stored, b"pass-of-u")
        # A hash stands as it is; a text that only begins like one is a password.
        await client.patch(f"{users}/u", json={"password": stored})
        now = editor.document()["msg_vpns"]["blue"]["client_usernames"]["u"]
        assert now["password"] == stored
        await client.patch(f"{users}/u", json={"password": "scrypt$like-one"})
        now = editor.document()["msg_vpns"]["blue"]["client_usernames"]["u"]
        assert verify_password(now["password"], b"scrypt$like-one")
        await client.patch(f"{users}/u", json={"password": ""})
        assert "password" not in editor.document()["msg_vpns"]["blue"]["client_usernames"]["u"]
        for wrong in ("nul\0", "ü" * 100):
            answer = await client.patch(f"{users}/u", json={"password": wrong})
            assert error_of(answer)["code"] == 11
            assert wrong not in answer.text


async def test_bridge_passwords_stay_usable_and_are_never_shown(
    configuring: Any, editor: Any
) -> None:
    """Bridge passwords stay usable and are never shown."""
    bridge = f"{BLUE}/bridges/from-red,auto"
    async with configuring(editor) as client:
        body = {
            "remoteAuthenticationBasicClientUsername": "u",
            "remoteAuthenticationBasicPassword": "pass-of-u",
        }
        answer = await client.patch(bridge, json=body)
        assert answer.json()["data"]["remoteAuthenticationBasicClientUsername"] == "u"
        for path in (
            bridge,
            f"{BLUE}/bridges",
            f"{bridge}/remoteMsgVpns",
            f"{BLUE}/clientUsernames",
        ):
            assert "pass" + "-of-u" not in (await client.get(path)).text
            assert "assword'" not in str((await client.get(path)).json()["data"])
        answer = await client.get(f"{bridge}?opaquePassword=12345678")
        assert error_of(answer)["status"] == "NOT_SUPPORTED"
    written = editor.document()["msg_vpns"]["blue"]["bridges"]["from-red"]
    assert written["remote_authentication"]["basic"]["password"] == "pass-of-u"


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        (
            f"{BLUE}/queues/orders",
            {"redeliveryDelayInitialInterval": 9, "redeliveryDelayMaxInterval": 3},
            "redeliveryDelay: redeliveryDelayInitialInterval 9 is above redeliveryDelayMaxInterval 3",
        ),
        (
            f"{BLUE}/queues/orders",
            {"partitionCount": 2},
            "partitionCount: partitions need accessType: non-exclusive",
        ),
        (
            f"{BLUE}/clientUsernames/alice",
            {"aclProfileName": "gone"},
            "aclProfileName: there is no ACL profile gone",
        ),
    ],
)
async def test_a_refused_configuration_is_told_in_attributes(
    configuring: Any, editor: Any, path: str, body: dict[str, Any], said: str
) -> None:
    """A refused configuration is told in attributes."""
    async with configuring(editor) as client:
        error = error_of(await client.patch(path, json=body))
    assert (error["code"], error["description"]) == (11, said)


async def test_a_name_that_is_none_is_told_by_its_attribute(configuring: Any, editor: Any) -> None:
    """A name that is none is told by its attribute."""
    async with configuring(editor) as client:
        for path, body in (
            (f"{BLUE}/queues", {"queueName": "a*"}),
            (f"{BLUE}/queues", {"queueName": "a\0b"}),
            (f"{BLUE}/clientProfiles", {"clientProfileName": "a/b"}),
            (f"{BLUE}/queues/orders/subscriptions", {"subscriptionTopic": "a//b"}),
        ):
            error = error_of(await client.post(path, json=body))
            assert error["code"] == 11
            assert error["description"].startswith(next(iter(body))), error
            assert ".yaml" not in error["description"]


async def test_what_cannot_be_applied_is_not_allowed(
    configuring: Any, editor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change that the router cannot apply is not allowed, and its reason is passed on."""

    def prepare(*_: Any) -> Any:
        raise OperationError("the address is taken")

    monkeypatch.setattr(editor, "_prepare", prepare)
    async with configuring(editor) as client:
        error = error_of(await client.patch(f"{BLUE}/queues/orders", json={"maxTtl": 1}))
    assert (error["code"], error["status"]) == (89, "NOT_ALLOWED")
    assert "the address is taken" in error["description"]


async def test_nothing_stays_of_what_is_deleted(configuring: Any, editor: Any) -> None:
    """With the last object its mapping leaves the overlay, unless the file has it."""
    async with configuring(editor) as client:
        for name in ("a", "b"):
            body = {"connectorName": name, "providerUrl": f"mqtt://{name}"}
            answer = await client.post("/msgVpns/blue/connectors", json=body)
            assert answer.status_code == 200, answer.text
        for name in ("a", "b"):
            assert list(editor.overlay()["msg_vpns"]["blue"]) == ["connectors"]
            answer = await client.delete(f"/msgVpns/blue/connectors/{name}")
            assert answer.status_code == 200, answer.text
        assert editor.overlay() == {}
        (name,) = editor.document()["msg_vpns"]["blue"]["bridges"]
        answer = await client.delete(f"/msgVpns/blue/bridges/{name},auto")
        assert answer.status_code == 200, answer.text
        assert editor.document()["msg_vpns"]["blue"]["bridges"] == {}
